#pragma once
/* A layout being made: shared by layout.c, layout_globs.c and layout_steps.c. */

#include "sandbox/layout.h"
#include "sandbox/rules.h"

/* An entry of the plan, looked up. */
struct layout_item {
    const char *given;
    enum plan_access access;
    struct locate_result at;
};

struct layout_maker {
    const struct launch_request *q;
    const struct plan *plan;
    struct synthlist *list;
    struct arena *a;
    struct layout *out;
    struct fault *f;
    struct rules rules;
    struct layout_item *items;
    size_t item_count;
};

/* Refuses an entry that leads over a link the command can replace, or cannot be followed. */
MUST_CHECK int layout_check_links(struct layout_maker *m, const struct layout_item *item);

/* Adds a read-only rule below a writable root, which takes a mount; `empty` as of the rule. */
MUST_CHECK int layout_carve(struct layout_maker *m, const char *path, const struct stat *st,
                            bool empty);

/*
 * Files of procfs and the like check for root where others check for capabilities: where they are
 * mounted below a writable root they become read-only for a sandbox of root, and below a root that
 * is wholly writable for anybody's.
 */
MUST_CHECK int layout_kernel_mounts(struct layout_maker *m);

/* Compiles the patterns, and finds the directory that each is below. */
MUST_CHECK int layout_globs(struct layout_maker *m);

/* Turns rules into steps. */
MUST_CHECK int layout_steps(struct layout_maker *m);
