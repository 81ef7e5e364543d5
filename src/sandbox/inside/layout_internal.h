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
 * Files of procfs and the like check for root, not for capabilities. So file systems of this kind
 * below a writable root become read-only: for root's sandboxes, and for everybody's if the whole
 * root is writable.
 */
MUST_CHECK int layout_kernel_mounts(struct layout_maker *m);

/* Turns rules into steps. */
MUST_CHECK int layout_steps(struct layout_maker *m);
