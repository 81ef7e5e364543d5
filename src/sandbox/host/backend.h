#pragma once
/* What this host can enforce. To find out, each backend is tried: a launcher sets a sandbox up and
 * runs nothing in it. */

#include "base/err.h"
#include "sandbox/host/cause.h"
#include "sandbox/host/launch_request.h"

struct backend_try {
    bool tried;
    bool works;
    bool shares_proc;   /* it sees the container's /proc, since it gets none of its own */
    struct fault fault; /* if it does not work: why */
};

struct backend {
    struct backend_try tries[LAUNCH_BACKENDS];
    unsigned landlock;        /* ABI, 0 for none */
    struct cause_facts facts; /* unless every policy can be enforced */
};

/* "userns", "root", "landlock". */
const char *backend_name(enum launch_backend b);

/* Tries the backends in order of preference up to the first that works, or `all` of them. `self` is
 * our own executable. Takes milliseconds; starts processes, but copies none of our memory. */
void backend_probe(int self, bool all, struct backend *out);

/*
 * Sets a plan up with a backend, lets the process inside try what the plan forbids
 * (inside/trial.h), and takes it down again. `self` as above, and clear of the launcher's
 * descriptors.
 */
void backend_try_plan(int self, enum launch_backend b, const struct plan *plan,
                      struct backend_try *out);

/*
 * An empty network namespace that all sandboxes of a backend can share (LAUNCH_NETWORK_FD): starts
 * without a network become much faster. A descriptor (close-on-exec), or -errno: then each sandbox
 * makes its own.
 */
MUST_CHECK int backend_network(int self, enum launch_backend backend);

/* The first backend that works, or -1. */
int backend_best(const struct backend *b);

/* Chooses the backend for a plan. 0, or -EINVAL with ERR_INTERNAL in e: which step failed, with
 * which errno, why, and what would allow it. */
MUST_CHECK int backend_choose(const struct backend *b, const struct plan *p,
                              enum launch_backend *out, struct err *e);

#define BACKEND_ADVICE_MAX 512

/* Why the first backend does not work and how to allow it. The text continues a refusal: it begins
 * with "; ". `out` has room for BACKEND_ADVICE_MAX bytes. */
void backend_advise(const struct backend *b, char *out);

/* Kernel settings that affect sandboxes: the i-th name, NULL behind the last. */
const char *backend_setting(size_t i);

/* A setting's value; "" if the kernel lacks it. */
void backend_setting_value(const char *name, char *value, size_t size);
