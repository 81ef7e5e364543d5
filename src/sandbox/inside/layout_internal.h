#pragma once
/* A layout being made: shared by layout.c, layout_kernel.c and layout_steps.c. */

#include "sandbox/inside/layout.h"

struct layout_maker {
    const struct launch_request *q;
    const struct plan *plan;
    struct placeholders *list;
    struct arena *a;
    struct layout *out;
    struct fault *f;
    struct rules *rules; /* of out->access */
};

/*
 * Files of procfs and the like check for root where others check for capabilities: where they are
 * mounted below a writable root they become read-only for a sandbox of root, and below a root that
 * is wholly writable for anybody's.
 */
MUST_CHECK int layout_kernel_mounts(struct layout_maker *m);

/* Turns rules into steps. */
MUST_CHECK int layout_steps(struct layout_maker *m);
