#pragma once
/*
 * What a server has of the sandbox: its own executable to start launchers from, what this host can
 * enforce, and how a start that is to be confined becomes one of a launcher
 * (sandbox/host/launcher.h).
 */

#include "proc/child.h"
#include "sandbox/host/backend.h"

#define SANDBOX_PROCESSES 2    /* that a launch adds to a command: the launcher and init */
#define SANDBOX_PROBE_MS 1000  /* between looks at a host that can enforce nothing */
#define SANDBOX_AGAIN_MS 60000 /* the same for one that can enforce something, but not all */

struct sandbox_host {
    int self; /* launcher_open_self(); negative: it cannot be opened */
    bool inherit_pids;
    const char *home;       /* of the user, borrowed; NULL: unknown */
    uint64_t probed;        /* monotonic ms of the last look at the host; 0: never */
    struct backend backend; /* what that found */
    int network;            /* an empty network namespace for sandboxes to share; -1: none */
    bool network_tried;
};

/* `home` must outlive the host. */
void sandbox_host_init(struct sandbox_host *h, bool inherit_pids, const char *home);
void sandbox_host_fini(struct sandbox_host *h);

/* What this host can enforce. Looks when first asked, and again as long as that is not all. */
const struct backend *sandbox_host_backend(struct sandbox_host *h);

/* Whether it can enforce every policy, not just some. */
bool sandbox_host_is_full(struct sandbox_host *h);

/* A start in preparation: the descriptors and the list are owned. */
struct sandbox_launch {
    struct child_launch child;
};
#define SANDBOX_LAUNCH_INIT                                                                        \
    {                                                                                              \
        .child = {.program = -1, .handed = {-1, -1, -1, -1}, .channel = -1 }                       \
    }

/*
 * Turns `spec`, which starts the command without a sandbox, into one that starts a launcher to
 * enforce the plan. `nofile` are the descriptor limits of a command that asks for none. 0, or
 * -errno with e set.
 */
MUST_CHECK int sandbox_host_prepare(struct sandbox_host *h, const struct plan *plan,
                                    struct rlimit nofile, struct child_spec *spec,
                                    struct sandbox_launch *l, struct err *e);

/* The same for a helper that makes file calls by that plan: `spec` is wholly the launcher's. */
MUST_CHECK int sandbox_host_prepare_helper(struct sandbox_host *h, const struct plan *plan,
                                           struct child_spec *spec, struct sandbox_launch *l,
                                           struct err *e);

/* Gives back what is left of it after the start, or without one. */
void sandbox_host_launch_fini(struct sandbox_launch *l);

/* Frees a list in which nothing was noted. NULL is fine. */
void sandbox_host_list_free(struct placeholders *l);
