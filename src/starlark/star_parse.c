#include "starlark/star_parse.h"

static struct star_node *parse_statement(struct parse *p);

/* -- nodes -- */

struct star_node *star_parse_node(struct parse *p, enum star_kind kind, struct star_span span) {
    struct star_node *n = star_alloc(p->s, sizeof *n);
    if (n != NULL) {
        n->kind = kind;
        n->span = span;
    }
    return n;
}

struct star_node *star_parse_pair(struct parse *p, enum star_kind kind, enum star_token op,
                                  struct star_node *a, struct star_node *b) {
    struct star_node *n = star_parse_node(p, kind, a->span);
    if (n == NULL)
        return NULL;
    n->op = op;
    n->a = a;
    n->b = b;
    if (b != NULL)
        n->span.end = b->span.end;
    return n;
}

bool star_parse_add(struct parse *p, struct star_node *n, struct star_node *item) {
    if ((n->n & (n->n - 1)) == 0) {
        size_t cap = n->n == 0 ? 1 : n->n * 2;
        struct star_node **items = star_calloc(p->s, cap, sizeof(struct star_node *));
        if (items == NULL)
            return false;
        if (n->n > 0)
            memcpy(items, n->items, n->n * sizeof(struct star_node *));
        n->items = items;
    }
    n->items[n->n++] = item;
    return true;
}

/* -- tokens -- */

bool star_parse_next(struct parse *p) {
    return star_lex_next(&p->l);
}

void *star_parse_unexpected(struct parse *p, const char *expected) {
    const char *found = star_lex_describe(&p->l);
    if (found == NULL)
        return NULL;
    return star_fail_at(p->s, p->l.span, "Parse error: unexpected %s, expected %s", found,
                        expected);
}

bool star_parse_expect(struct parse *p, enum star_token t) {
    if (parse_is(p, t))
        return star_parse_next(p);
    if (t == T_NEWLINE)
        return star_parse_unexpected(p, "new line");
    bool keyword = t >= T_AND && t <= T_RETURN;
    const char *what = star_text(p->s, "%s '%s'", keyword ? "keyword" : "symbol", star_lex_name(t));
    return what != NULL && star_parse_unexpected(p, what) != NULL;
}

bool star_parse_take(struct parse *p, enum star_token t, bool *taken) {
    *taken = parse_is(p, t);
    return !*taken || star_parse_next(p);
}

bool star_parse_enter(struct parse *p) {
    if (p->nesting++ < STAR_NESTING_MAX)
        return true;
    return star_fail_at(p->s, p->l.span, "Parse error: nested too deeply");
}

/* -- statements -- */

static bool parse_is_augment(enum star_token t) {
    return t >= T_PLUS_ASSIGN && t <= T_SHR_ASSIGN;
}

static enum star_token parse_augment_op(enum star_token t) {
    static const enum star_token ops[] = {T_PLUS,       T_MINUS,   T_STAR, T_SLASH,
                                          T_SLASHSLASH, T_PERCENT, T_AMP,  T_PIPE,
                                          T_CARET,      T_SHL,     T_SHR};
    return ops[t - T_PLUS_ASSIGN];
}

static struct star_node *parse_expression_statement(struct parse *p) {
    struct star_node *a = star_expr_tests(p), *n;
    bool taken;
    if (a == NULL)
        return NULL;
    if (parse_is_augment(p->l.token)) {
        enum star_token op = parse_augment_op(p->l.token);
        if (!star_expr_check_target(p, a, true) || !star_parse_next(p))
            return NULL;
        struct star_node *b = star_expr_tests(p);
        return b == NULL ? NULL : star_parse_pair(p, N_AUGMENT, op, a, b);
    }
    struct star_node *type = NULL;
    if (a->kind == N_NAME) {
        if (!star_parse_take(p, T_COLON, &taken))
            return NULL;
        if (taken && (type = star_expr_test(p)) == NULL)
            return NULL;
        if (taken && !parse_is(p, T_ASSIGN))
            return star_parse_unexpected(p, "symbol '='");
    }
    if (!parse_is(p, T_ASSIGN))
        return star_parse_pair(p, N_EXPR, 0, a, NULL);
    if (!star_expr_check_target(p, a, false) || !star_parse_next(p))
        return NULL;
    struct star_node *b = star_expr_tests(p);
    if (b == NULL)
        return NULL;
    n = star_parse_pair(p, N_ASSIGN, 0, a, b);
    if (n != NULL)
        n->c = type;
    return n;
}

static struct star_node *parse_word(struct parse *p, enum star_kind kind) {
    struct star_node *n = star_parse_node(p, kind, p->l.span);
    const char *word = star_lex_name(p->l.token);
    bool loop = kind == N_BREAK || kind == N_CONTINUE;
    if (n == NULL || !star_parse_next(p))
        return NULL;
    if (loop && p->loops == 0)
        return star_fail_at(p->s, n->span, "`%s` cannot be used outside of a `for` loop", word);
    return n;
}

static struct star_node *parse_return(struct parse *p) {
    struct star_node *n = parse_word(p, N_RETURN);
    if (n == NULL)
        return NULL;
    if (star_expr_begins_test(p)) {
        if ((n->a = star_expr_tests(p)) == NULL)
            return NULL;
        n->span.end = n->a->span.end;
    }
    if (p->defs == 0)
        return star_fail_at(p->s, n->span, "`return` cannot be used outside of a `def` function");
    return n;
}

/* load("module", "symbol", other = "symbol"): the syntax exists, but no module to load. */
static struct star_node *parse_load(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_LOAD, p->l.span);
    if (n == NULL || !star_parse_next(p) || !star_parse_expect(p, T_LPAREN))
        return NULL;
    if (!parse_is(p, T_STRING))
        return star_parse_unexpected(p, "string literal");
    n->name = p->l.value->text;
    struct star_span module = p->l.span;
    if (!star_parse_next(p))
        return NULL;
    size_t symbols = 0;
    while (parse_is(p, T_COMMA)) {
        if (!star_parse_next(p))
            return NULL;
        if (parse_is(p, T_RPAREN))
            break;
        if (parse_is(p, T_NAME) && (!star_parse_next(p) || !star_parse_expect(p, T_ASSIGN)))
            return NULL;
        if (!parse_is(p, T_STRING))
            return star_parse_unexpected(p, "string literal");
        symbols++;
        if (!star_parse_next(p))
            return NULL;
    }
    n->span.end = p->l.span.end;
    if (!star_parse_expect(p, T_RPAREN))
        return NULL;
    if (symbols == 0)
        return star_fail_at(p->s, module, "`load` statement requires at least two arguments");
    if (p->defs > 0 || p->loops > 0)
        return star_fail_at(p->s, n->span, "`load` must only occur at the top of a module");
    return n;
}

static struct star_node *parse_small(struct parse *p) {
    switch ((int)p->l.token) {
    case T_PASS: return parse_word(p, N_PASS);
    case T_BREAK: return parse_word(p, N_BREAK);
    case T_CONTINUE: return parse_word(p, N_CONTINUE);
    case T_RETURN: return parse_return(p);
    case T_LOAD: return parse_load(p);
    default: return parse_expression_statement(p);
    }
}

/* Adds the statements of one line to a block. */
static bool parse_line(struct parse *p, struct star_node *block) {
    for (;;) {
        bool more;
        struct star_node *n = parse_small(p);
        if (n == NULL || !star_parse_add(p, block, n) || !star_parse_take(p, T_SEMICOLON, &more))
            return false;
        if (!more || parse_is(p, T_NEWLINE))
            break;
    }
    return star_parse_expect(p, T_NEWLINE);
}

static bool parse_add_statement(struct parse *p, struct star_node *block) {
    if (parse_is(p, T_DEF) || parse_is(p, T_IF) || parse_is(p, T_FOR)) {
        struct star_node *n = parse_statement(p);
        return n != NULL && star_parse_add(p, block, n);
    }
    return parse_line(p, block);
}

/* The body after a colon: one line, or an indented block. */
static struct star_node *parse_block(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_BLOCK, p->l.span);
    bool taken;
    if (n == NULL || !star_parse_expect(p, T_COLON) || !star_parse_take(p, T_NEWLINE, &taken))
        return NULL;
    if (!taken)
        return parse_line(p, n) ? n : NULL;
    if (!parse_is(p, T_INDENT))
        return star_parse_unexpected(p, "new indentation block");
    if (!star_parse_enter(p) || !star_parse_next(p))
        return NULL;
    while (!parse_is(p, T_DEDENT)) {
        if (!parse_add_statement(p, n))
            return NULL;
    }
    p->nesting--;
    return star_parse_next(p) ? n : NULL;
}

/* A statement with a block reaches to the next one, or to its last line at the end of the file. */
static void parse_close_span(const struct parse *p, struct star_node *n,
                             const struct star_node *block) {
    if (block != NULL && block->n > 0)
        n->span.end = parse_is(p, T_EOF) ? block->items[block->n - 1]->span.end : p->l.span.begin;
}

static struct star_node *parse_if(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_IF, p->l.span);
    if (n == NULL || !star_parse_enter(p) || !star_parse_next(p) ||
        (n->a = star_expr_test(p)) == NULL || (n->b = parse_block(p)) == NULL)
        return NULL;
    parse_close_span(p, n, n->b);
    bool taken = false;
    if (parse_is(p, T_ELIF)) {
        n->c = parse_if(p);
    } else if (!star_parse_take(p, T_ELSE, &taken)) {
        return NULL;
    } else if (taken) {
        n->c = parse_block(p);
        parse_close_span(p, n, n->c);
    }
    p->nesting--;
    return p->s->failed ? NULL : n;
}

static struct star_node *parse_for(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_FOR, p->l.span);
    if (n == NULL || !star_parse_next(p) || (n->a = star_expr_target(p)) == NULL ||
        !star_parse_expect(p, T_IN) || (n->b = star_expr_tests(p)) == NULL)
        return NULL;
    p->loops++;
    n->c = parse_block(p);
    p->loops--;
    parse_close_span(p, n, n->c);
    return n->c == NULL ? NULL : n;
}

static struct star_node *parse_def(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_DEF, p->l.span);
    bool arrow;
    if (n == NULL || !star_parse_next(p))
        return NULL;
    if (!parse_is(p, T_NAME))
        return star_parse_unexpected(p, "identifier");
    n->name = p->l.text;
    if (!star_parse_next(p) || !star_parse_expect(p, T_LPAREN) ||
        !star_expr_params(p, n, T_RPAREN, true) || !star_parse_expect(p, T_RPAREN) ||
        !star_parse_take(p, T_ARROW, &arrow))
        return NULL;
    if (arrow && (n->a = star_expr_test(p)) == NULL)
        return NULL;
    unsigned loops = p->loops;
    p->loops = 0;
    p->defs++;
    n->b = parse_block(p);
    p->defs--;
    p->loops = loops;
    parse_close_span(p, n, n->b);
    return n->b == NULL ? NULL : n;
}

static struct star_node *parse_statement(struct parse *p) {
    if (parse_is(p, T_DEF))
        return parse_def(p);
    return parse_is(p, T_IF) ? parse_if(p) : parse_for(p);
}

struct star_node *star_parse(struct star *s) {
    struct parse p = {.s = s};
    struct star_node *module = star_parse_node(&p, N_BLOCK, (struct star_span){0, 0});
    if (module == NULL || !star_lex_begin(&p.l, s))
        return NULL;
    while (!parse_is(&p, T_EOF)) {
        if (parse_is(&p, T_NEWLINE) ? !star_parse_next(&p) : !parse_add_statement(&p, module))
            return NULL;
    }
    return module;
}
