#pragma once
/* The parser's state and helpers: for star_parse.c (statements) and star_expr.c (expressions). */

#include "starlark/star_lex.h"

struct parse {
    struct star *s;
    struct star_lex l;
    unsigned nesting;
    unsigned loops; /* around this place */
    unsigned defs;
};

struct star_node *star_parse_node(struct parse *p, enum star_kind kind, struct star_span span);
/* A node over a and b; b may be NULL. */
struct star_node *star_parse_pair(struct parse *p, enum star_kind kind, enum star_token op,
                                  struct star_node *a, struct star_node *b);
/* Appends an item; the room doubles, and the old one stays with the arena. */
MUST_CHECK bool star_parse_add(struct parse *p, struct star_node *n, struct star_node *item);

static inline bool parse_is(const struct parse *p, enum star_token t) {
    return p->l.token == t;
}
MUST_CHECK bool star_parse_next(struct parse *p);
/* Fails: the current token is not what was expected. Returns NULL. */
void *star_parse_unexpected(struct parse *p, const char *expected);
MUST_CHECK bool star_parse_expect(struct parse *p, enum star_token t);
/* Takes the token if it is there. *taken tells; false after a failure. */
MUST_CHECK bool star_parse_take(struct parse *p, enum star_token t, bool *taken);
MUST_CHECK bool star_parse_enter(struct parse *p);

/* Whether an expression can begin with the current token. */
bool star_expr_begins_test(const struct parse *p);
/* An expression; several with commas between them, which make a tuple. */
struct star_node *star_expr_test(struct parse *p);
struct star_node *star_expr_tests(struct parse *p);
/* Parameters of a function up to `end`; types only where `typed`. */
MUST_CHECK bool star_expr_params(struct parse *p, struct star_node *def, enum star_token end,
                                 bool typed);
/* The variables of a loop: `in` ends them. */
struct star_node *star_expr_target(struct parse *p);
/* Fails unless the node can be assigned to. */
MUST_CHECK bool star_expr_check_target(struct parse *p, const struct star_node *n, bool augmented);
