#pragma once
/* The server's side of sandboxes: what this host can enforce, and how the start of a confined
 * command becomes the start of a launcher (sandbox/host/launcher.h). */

#include "proc/child.h"
#include "sandbox/host/backend.h"

#define SANDBOX_PROCESSES 2    /* added to a command: the launcher and init */
#define SANDBOX_PROBE_MS 1000  /* between probes of a host that can enforce nothing */
#define SANDBOX_AGAIN_MS 60000 /* between probes of a host that can enforce some policies */

struct sandbox_host {
    int self; /* launcher_open_self(); negative: it cannot be opened */
    bool inherit_pids;
    const char *home;       /* the user's, borrowed; NULL: unknown */
    uint64_t probed;        /* monotonic ms of the last probe; 0: never */
    struct backend backend; /* its result */
    int network;            /* an empty network namespace for sandboxes to share; -1: none */
    bool network_tried;
};

/* `home` must outlive the host. */
void sandbox_host_init(struct sandbox_host *h, bool inherit_pids, const char *home);
void sandbox_host_fini(struct sandbox_host *h);

/* What this host can enforce. Probes at the first call, and again as long as the host cannot
 * enforce everything. */
const struct backend *sandbox_host_backend(struct sandbox_host *h);

/* Whether this host can enforce every policy. */
bool sandbox_host_is_full(struct sandbox_host *h);

/* A launch in preparation; owns the descriptors and the list. */
struct sandbox_launch {
    struct child_launch child;
    int proxy;   /* where the launcher sends the listeners of the proxy; -1: the plan has none */
    bool linger; /* set by the caller: what the command leaves behind lives on */
};
#define SANDBOX_LAUNCH_INIT                                                                        \
    { .child = {.program = -1, .handed = {-1, -1, -1, -1, -1, -1}, .channel = -1}, .proxy = -1 }

/*
 * Turns `spec`, which starts the command without a sandbox, into one that starts a launcher to
 * enforce the plan. `nofile` are the descriptor limits of a command that asks for none. 0, or
 * -errno with e set.
 */
MUST_CHECK int sandbox_host_prepare(struct sandbox_host *h, const struct plan *plan,
                                    struct rlimit nofile, struct child_spec *spec,
                                    struct sandbox_launch *l, struct err *e);

/* Like sandbox_host_prepare(), for a helper that makes file calls under that plan. Fills in all of
 * `spec`. */
MUST_CHECK int sandbox_host_prepare_helper(struct sandbox_host *h, const struct plan *plan,
                                           struct child_spec *spec, struct sandbox_launch *l,
                                           struct err *e);

/* Frees what the start has not taken over. */
void sandbox_host_launch_fini(struct sandbox_launch *l);

/* Frees a list in which nothing was noted. NULL is fine. */
void sandbox_host_list_free(struct placeholders *l);
