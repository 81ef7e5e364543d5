#pragma once
/* What the files start*.c share: a start being put together. */

#include "process/network.h"
#include "process/process.h"
#include "process/start.h"
#include "sandbox/host/sandbox_host.h"

struct start {
    struct arena strings;   /* of the spec; the process takes it over */
    struct child_spec spec; /* its limits are owned */
    struct limits limits;
    bool confined;
    struct plan plan;    /* if confined; in the params' arena, or in `policy` */
    struct arena policy; /* of the plan, when the start outlives its params */
    struct sandbox_launch launch;
    struct network *network; /* owned, or NULL */
};

void start_fini(struct start *s);

/*
 * Confines the command of a listed process and starts it. 0; or -errno with e set, and the caller
 * frees the process.
 */
MUST_CHECK int start_launch(struct process *j, struct start *s, struct err *e);

/* Checks the `shellSnapshot` member. 0, or -EINVAL with e set. */
MUST_CHECK int start_snapshot_check(const struct start_params *p, struct err *e);

/*
 * Lets a start use a snapshot of its shell, if it asks for one. False: it goes on, maybe with
 * another command in s->spec. True: it waits; *s was taken, and what the params own of it.
 */
bool start_snapshot_take(struct process *j, struct start_params *p, struct start *s);
