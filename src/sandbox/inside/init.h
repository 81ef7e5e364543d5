#pragma once
/*
 * The first process inside: builds the view, drops its privileges, starts the command, reaps
 * orphans, passes signals on, and ends with the command. In its own pid namespace everything else
 * ends with it.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/inside/launch.h"
#include "sandbox/inside/layout.h"

#include <stdatomic.h>

/* Shared by the launcher, init and, until its exec, the command. */
struct init_shared {
    struct fault fault;
    _Atomic bool reported; /* the server has its report */
    _Atomic bool ended;    /* the command has ended, and `outcome` is set */
    struct launch_outcome outcome;
};

struct init_args {
    const struct launch_request *q;
    const struct layout *l;
    struct arena *a;
    struct init_shared *shared;
    launch_helper_fn *helper;
    unsigned long namespaces; /* CLONE_NEW...: the namespaces made for us */
    uid_t uid;                /* effective, outside */
    gid_t gid;
    int launcher; /* pidfd of the launcher */
    int done;     /* a byte goes here when everything inside has ended */
    bool cleaner; /* the launcher must clean up on the host before anybody reports the end */
    int bridge;   /* socket to the launcher for listeners (bridge.h), or -1 */
    struct rlimit nofile; /* the command's, unless the request has others */
};

/* Runs as the launcher's child; ends the process. */
_Noreturn void init_main(const struct init_args *args);

/* Tells the server how the command ended. */
void init_tell_end(const struct init_shared *s);

/* Sends the report, once; with a descriptor unless `fd` is -1. */
void init_report(struct init_shared *s, enum launch_report_kind kind, int fd);
