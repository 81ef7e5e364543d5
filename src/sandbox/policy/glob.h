#pragma once
/*
 * Patterns of paths to deny, and their expansion.
 *
 * A pattern is matched below a fixed directory: `*` and `?` stop at slashes, `**` as a whole
 * component stands for any number of directories, `[ab]`, `[!ab]` and `[a-z]` for one character,
 * `{a,b}` for one of its parts; a backslash takes the next character literally; an unclosed `[` is
 * a character like others. A pattern without a slash matches at every depth. Characters are those
 * of UTF-8; a byte that is none counts as one.
 *
 * Matching is a simulation of all ways at once: its time is bounded by the length of the name times
 * the length of the pattern.
 */

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define GLOB_PATTERN_MAX 8192    /* bytes of the patterns of one set together */
#define GLOB_MATCHES_MAX 8192    /* paths one set may match */
#define GLOB_ENTRIES_MAX 4000000 /* directory entries looked at in one expansion */
#define GLOB_NEST_MAX 16         /* braces in braces */

struct glob_node;

/* Patterns below one directory; a path matches when one of them does. */
struct glob_set {
    struct glob_node *nodes;
    size_t node_count, node_cap;
    uint32_t *starts; /* first node of each pattern */
    size_t start_count, start_cap;
    size_t bytes; /* of the patterns so far */
    bool fold;    /* texts are compared in small letters; the patterns must be in such */
};

void glob_set_fini(struct glob_set *s);

/*
 * Adds a pattern, relative to the directory. 0; -EINVAL with *why, a constant text, when it is
 * malformed or the set is full; -ENOMEM.
 */
MUST_CHECK int glob_add(struct glob_set *s, const char *pattern, const char **why);

/* Whether the relative path matches: 0 or 1; -ENOMEM. */
MUST_CHECK int glob_run_match(const struct glob_set *s, const char *path);

/* A match. */
struct glob_run_match {
    int dir;          /* the directory it is in, open; AT_FDCWD with a full path as `name` */
    const char *name; /* in that directory */
    const char *path; /* absolute; how it was reached, whatever its directories are called by now */
    bool is_link;
    bool unlistable; /* a directory that may be entered, or is ours, but cannot be read, or not
                        searched: what is below it is unknown, or out of reach */
};

/* Not 0 ends the expansion with that result. */
typedef int glob_found_fn(void *arg, const struct glob_run_match *m);

/* A directory, open as fd, is about to be read. 0; 1: it is left out; -errno ends the expansion. */
typedef int glob_enter_fn(void *arg, int fd, const char *path);

struct glob_visit {
    uint32_t max_depth; /* levels below the directory; 0: no limit */
    size_t *budget;     /* counts down the entries that may be looked at */
    glob_found_fn *found;
    glob_enter_fn *enter; /* or NULL */
    void *arg;
};

/*
 * Finds all files and symbolic links (not directories) below `dir` that match. Symbolic links are
 * not entered. 0, what a callback returned, -E2BIG when the budget is used up, or -errno for a
 * directory that cannot be read otherwise. With `below`, a path relative to dir or NULL, only what
 * is in that directory.
 */
MUST_CHECK int glob_expand(const struct glob_set *s, const char *dir, const char *below,
                           const struct glob_visit *v);
