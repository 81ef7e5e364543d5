#pragma once
/* A policy and its parts: for the files of execpolicy only. */

#include "rules/execpolicy.h"
#include "starlark/star.h"

/* The paths that host_executable() allows for a program. */
struct execpolicy_host {
    struct str name;
    struct execpolicy_words paths;
};

/* Examples of one prefix_rule() call, checked at the end of its file. */
struct execpolicy_examples {
    struct execpolicy_examples *next;
    size_t first, n; /* the rules it made */
    struct execpolicy_words *match, *not_match;
    size_t match_count, not_match_count;
};

struct execpolicy {
    struct arena arena;
    struct execpolicy_rule *rules;
    size_t n, cap;
    struct execpolicy_host *hosts;
    size_t host_count, host_cap;
    struct execpolicy_examples *examples; /* of the file being read, the newest first */
};

extern const struct star_native execpolicy_natives[];
#define EXECPOLICY_NATIVES 3

/* The host_executable() of that name, or NULL. */
struct execpolicy_host *execpolicy_host_find(const struct execpolicy *p, struct str name);

/* An absolute path without ".", ".." and empty components; NULL: out of memory. */
const char *execpolicy_normal(struct arena *a, const char *dir, struct str path);
