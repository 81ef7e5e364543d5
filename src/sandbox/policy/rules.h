#pragma once
/*
 * The rules of a plan as they are on this host: what may be done at and below a path without
 * symbolic links. The rule with the longest path counts.
 */

#include "base/arena.h"
#include "sandbox/policy/plan.h"

#include <sys/stat.h>

/* Entries, the protected names of each, git directories, places of what is missing. */
#define RULES_MAX (16 * PLAN_ENTRIES_MAX)

enum rules_region {
    RULES_INVISIBLE, /* not there at all */
    RULES_READ,
    RULES_WRITE,
    RULES_DENY,
};

struct rules_rule {
    const char *path;
    enum plan_access access;
    bool dropped; /* changes nothing */
    bool is_dir;
    bool absent; /* nothing is there: the rule is for what may come, and nothing is mounted */
    bool guard;  /* keeps something in a writable root as it is, or from coming into being */
    bool fold;   /* its directory ignores case */
    bool empty;  /* there is nothing but a place that was made to be mounted on */
    dev_t dev;   /* what it was when it was looked at */
    ino_t ino;
};

struct rules {
    struct arena *a;
    bool full_read;
    struct rules_rule *list; /* the first `sorted` by path, one for each; then new ones */
    size_t count, sorted, cap;
};

/* Adds a rule for what is at `path` (kept, not copied). The rule, valid until the next is added;
 * NULL without memory or above the maximum. */
MUST_CHECK struct rules_rule *rules_add(struct rules *r, const char *path, enum plan_access access,
                                        const struct stat *st);

/* Puts new rules in their place; of several for one path deny counts, then write. */
void rules_sort(struct rules *r);

/* The rule for exactly this path, or NULL. Finds sorted ones only. */
struct rules_rule *rules_exact(const struct rules *r, const char *path);

/* The rule that counts for the directory that `path` is in, or NULL. */
struct rules_rule *rules_above(const struct rules *r, const char *path);

/* What may be done with `path`, and with an entry of its directory. */
enum rules_region rules_region(const struct rules *r, const char *path);
enum rules_region rules_region_above(const struct rules *r, const char *path);

/* Drops what changes nothing: a read below a deny. */
void rules_prune_reads(struct rules *r);
