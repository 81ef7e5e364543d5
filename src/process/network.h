#pragma once
/*
 * The proxy of a process: from its start to its end, the decisions of its client
 * (network/policyRequest), and the news about them (network/policyDecision, audit log, metrics).
 */

#include "base/arena.h"
#include "process/session.h"
#include "proc/env.h"
#include "proxy/proxy.h"

#define NETWORK_GRACE_MS 5000 /* added to the client's time for a decision, as the reference does */
#define NETWORK_VARIABLES 40  /* that a proxy adds to the environment */

struct process;

struct network {
    struct proxy proxy;
    struct process *process; /* NULL until the process has taken it over */
    struct loop *loop;
    struct loop_io listeners; /* where the launcher sends them; fd -1: none */
    struct list asks;         /* struct network_ask */
};

extern const struct proxy_ops network_ops;

/* A proxy for a process to be, with the config, which it takes over. NULL: out of memory. */
struct network *network_new(struct process_host *h, struct proxy_config *c);

/* The variables that lead a command to its proxy; names and values come from `a`. Their number, or
 * -ENOMEM. */
MUST_CHECK int network_environment(const struct network *n, struct arena *a,
                                   struct env_variable out[NETWORK_VARIABLES]);

/* The process has it from now on; the listeners come over `channel` (owned) unless that is -1. 0 or
 * -errno. */
MUST_CHECK int network_adopt(struct network *n, struct process *p, int channel);

/* Ends the proxy and frees it. NULL is fine. */
void network_free(struct network *n);
