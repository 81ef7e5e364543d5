#pragma once
/* Running a set of patterns: shared by glob.c, which makes the nodes, and glob_run.c. */

#include "sandbox/policy/glob.h"

enum glob_op {
    GLOB_CHAR,      /* the character `arg` */
    GLOB_ANY,       /* a character but the slash */
    GLOB_CLASS,     /* a character within one of `arg` ranges */
    GLOB_NOT_CLASS, /* a character but the slash outside these ranges */
    GLOB_STAR,      /* any number of characters but the slash */
    GLOB_DEEP,      /* any number of any characters */
    GLOB_SPLIT,     /* the next node, and also `arg` */
    GLOB_JUMP,      /* node `arg` */
    GLOB_END,       /* a match */
};

struct glob_node {
    enum glob_op op;
    uint32_t arg;
    uint32_t *ranges; /* owned; pairs */
};

/* The nodes at which a match may be. */
struct glob_at {
    uint32_t *nodes; /* owned */
    size_t count;
};

/* A run over one path: its current nodes, and the round in which each node was last entered. */
struct glob_run {
    const struct glob_set *set;
    uint32_t *now, *next; /* lists of nodes */
    size_t now_count, next_count;
    uint32_t *seen; /* by node: the round */
    uint32_t *todo; /* nodes to follow without reading */
    uint32_t round;
};

/* The next character of [*p, end), *p < end; invalid bytes get numbers of their own. */
uint32_t glob_char(const char **p, const char *end);

MUST_CHECK int glob_run_init(struct glob_run *r, const struct glob_set *s);
void glob_run_fini(struct glob_run *r);

/* Moves to the beginning of all patterns. */
void glob_run_start(struct glob_run *r);

void glob_run_read(struct glob_run *r, const char *text);

/* Whether some pattern ends here; whether more text could still match. */
bool glob_run_matched(const struct glob_run *r);
static inline bool glob_run_alive(const struct glob_run *r) {
    return r->now_count > 0;
}

/* Saves the current nodes (0 or -ENOMEM; the caller owns the memory); restores them. */
MUST_CHECK int glob_run_save(const struct glob_run *r, struct glob_at *out);
void glob_run_load(struct glob_run *r, const struct glob_at *at);
