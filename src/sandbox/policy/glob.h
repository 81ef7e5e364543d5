#pragma once
/*
 * Patterns of denied paths, and their expansion.
 *
 * A pattern applies below a fixed directory. `*` and `?` stop at slashes; `**` as a whole component
 * matches any number of directories; `[ab]`, `[!ab]` and `[a-z]` match one character, `{a,b}` one
 * of its parts. A backslash makes the next character literal; an unclosed `[` is an ordinary
 * character. A pattern without a slash matches at every depth. Characters are UTF-8; an invalid
 * byte counts as one.
 *
 * A match follows all alternatives at once: its time is bounded by the length of the name times the
 * length of the pattern.
 */

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define GLOB_PATTERN_MAX 8192    /* bytes of the patterns of one set together */
#define GLOB_MATCHES_MAX 8192    /* paths that one set may match */
#define GLOB_ENTRIES_MAX 4000000 /* directory entries read in one expansion */
#define GLOB_NEST_MAX 16         /* braces in braces */

struct glob_node;

/* Patterns below one directory; a path matches if one of them does. */
struct glob_set {
    struct glob_node *nodes;
    size_t node_count, node_cap;
    uint32_t *starts; /* first node of each pattern */
    size_t start_count, start_cap;
    size_t bytes; /* of the patterns so far */
    bool fold;    /* texts are compared in lower case; the patterns must be lower case */
};

void glob_set_fini(struct glob_set *s);

/* Adds a pattern, relative to the directory. 0; -EINVAL with *why, a constant text, for a malformed
 * pattern or a full set; -ENOMEM. */
MUST_CHECK int glob_add(struct glob_set *s, const char *pattern, const char **why);

/* Whether the relative path matches: 0 or 1; -ENOMEM. */
MUST_CHECK int glob_run_match(const struct glob_set *s, const char *path);

struct glob_run_match {
    int dir;          /* its directory, open; or AT_FDCWD with a full path as `name` */
    const char *name; /* in that directory */
    const char *path; /* absolute, as it was reached; its directories may have other names by now */
    bool is_link;
    /* A directory that may be entered, or is ours, but cannot be listed or searched: nobody knows
     * what is below, or can reach it. */
    bool unlistable;
};

/* A result other than 0 ends the expansion. */
typedef int glob_found_fn(void *arg, const struct glob_run_match *m);

/* Called before a directory, open as fd, is read. 0; 1: skip it; -errno: end the expansion. */
typedef int glob_enter_fn(void *arg, int fd, const char *path);

struct glob_visit {
    uint32_t max_depth; /* levels below the directory; 0: no limit */
    size_t *budget;     /* counts down the entries that may be read */
    glob_found_fn *found;
    glob_enter_fn *enter; /* or NULL */
    void *arg;
};

/*
 * Finds all matching files and symbolic links (not directories) below `dir`; does not follow links.
 * With `below`, a path relative to dir or NULL, only inside that directory. 0; a callback's result;
 * -E2BIG if the budget is used up; -errno for a directory that cannot be read.
 */
MUST_CHECK int glob_expand(const struct glob_set *s, const char *dir, const char *below,
                           const struct glob_visit *v);
