#pragma once
/* A plan's rules on this host: what may be done at and below a path without symbolic links. The
 * rule with the longest path wins. */

#include "base/arena.h"
#include "sandbox/policy/plan.h"

#include <sys/stat.h>

/* Entries, the protected names of each, git directories, guards of missing paths. */
#define RULES_MAX (16 * PLAN_ENTRIES_MAX)

enum rules_region {
    RULES_INVISIBLE, /* does not exist in the sandbox */
    RULES_READ,
    RULES_WRITE,
    RULES_DENY,
};

struct rules_rule {
    const char *path;
    enum plan_access access;
    bool dropped; /* changes nothing */
    bool is_dir;
    bool absent; /* nothing exists there, so nothing is mounted: the rule is for what may be made */
    bool guard;  /* protects a path in a writable root from being changed or made */
    bool fold;   /* its directory ignores case */
    bool empty;  /* only a placeholder directory is there, as a mount point */
    dev_t dev;   /* of the file when it was looked up */
    ino_t ino;
};

struct rules {
    struct arena *a;
    bool full_read;
    struct rules_rule *list; /* the first `sorted` ordered by path, one each; then new ones */
    size_t count, sorted, cap;
};

/* Adds a rule for the file at `path`, which must outlive it. The rule, valid until the next call;
 * NULL without memory or above the maximum. */
MUST_CHECK struct rules_rule *rules_add(struct rules *r, const char *path, enum plan_access access,
                                        const struct stat *st);

/* Sorts new rules in. Of several for one path deny wins, then write. */
void rules_sort(struct rules *r);

/* The rule for exactly this path, or NULL. Knows only sorted rules. */
struct rules_rule *rules_exact(const struct rules *r, const char *path);

/* The rule that governs the directory of `path`, or NULL. */
struct rules_rule *rules_above(const struct rules *r, const char *path);

/* The region of `path`, and of the directory it is in. */
enum rules_region rules_region(const struct rules *r, const char *path);
enum rules_region rules_region_above(const struct rules *r, const char *path);

/* Drops rules without effect: a read below a deny. */
void rules_prune_reads(struct rules *r);
