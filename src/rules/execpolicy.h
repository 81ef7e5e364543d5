#pragma once
/*
 * The policy of `.rules` files: it allows a command, forbids it, or asks for a question first.
 * Files are evaluated one by one; they share one list of rules and no variables.
 *
 * Bounds: EXECPOLICY_RULES_MAX rules, EXECPOLICY_MEMORY_MAX bytes of them, and those of
 * starlark/star.h for each file.
 */

#include "base/arena.h"
#include "base/buf.h"

#define EXECPOLICY_RULES_MAX 65536
#define EXECPOLICY_MEMORY_MAX (64u << 20)

enum execpolicy_decision { EXECPOLICY_ALLOW, EXECPOLICY_PROMPT, EXECPOLICY_FORBIDDEN };

/* "allow", "prompt", "forbidden" */
const char *execpolicy_decision_name(enum execpolicy_decision d);

struct execpolicy_words {
    const struct str *list;
    size_t n;
};

/* A pattern whose first word is fixed; each further word is one of several. */
struct execpolicy_rule {
    struct str first;
    const struct execpolicy_words *rest;
    size_t n; /* of rest */
    enum execpolicy_decision decision;
    struct str justification; /* p NULL: none */
};

struct execpolicy_match {
    const struct execpolicy_rule *rule;
    const char *resolved; /* the program's path if the rule names its basename, or NULL */
};

struct execpolicy_matches {
    struct execpolicy_match *list;
    size_t n, cap;
    enum execpolicy_decision decision; /* the strictest; valid if n > 0 */
};

struct execpolicy;

/* NULL: out of memory. */
struct execpolicy *execpolicy_new(void);
void execpolicy_free(struct execpolicy *p);

/*
 * Adds the rules of a file, and checks their examples. 0; -EINVAL with the error (several lines,
 * ended by a newline) appended to `error`; -ENOMEM. After an error the policy must not be used.
 */
MUST_CHECK int execpolicy_add(struct execpolicy *p, const char *file, struct str text,
                              struct buf *error);

/* Whether a rule forbids a command, or asks about one. */
bool execpolicy_restricts(const struct execpolicy *p);

/* The context for programs named by a path. */
struct execpolicy_place {
    const char *cwd, *home; /* home may be NULL */
};

/*
 * Finds the rules that match a command of at least one word. With `place`, tries the basename of a
 * program that no rule names as written. Memory comes from `a`. 0 or -ENOMEM.
 */
MUST_CHECK int execpolicy_check(const struct execpolicy *p, const struct execpolicy_words *command,
                                const struct execpolicy_place *place, struct arena *a,
                                struct execpolicy_matches *out);

/* Appends the outcome as the JSON that `execpolicy check` prints. 0 or as buf_reserve(). */
MUST_CHECK int execpolicy_put_json(struct buf *b, const struct execpolicy_words *command,
                                   const struct execpolicy_matches *m, bool pretty);
