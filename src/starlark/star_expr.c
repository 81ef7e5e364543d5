#include "starlark/star_parse.h"

bool star_expr_begins_test(const struct parse *p) {
    switch ((int)p->l.token) {
    case T_NAME:
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_BYTES:
    case T_FSTRING:
    case T_LAMBDA:
    case T_NOT:
    case T_PLUS:
    case T_MINUS:
    case T_TILDE:
    case T_ELLIPSIS:
    case T_LPAREN:
    case T_LBRACKET:
    case T_LBRACE: return true;
    default: return false;
    }
}

/* -- parameters, arguments -- */

static struct star_node *parse_param(struct parse *p, bool typed) {
    struct star_node *n = star_parse_node(p, N_PARAM, p->l.span);
    if (n == NULL)
        return NULL;
    if (parse_is(p, T_SLASH))
        return star_fail_at(p->s, p->l.span,
                            "/ positional-only-arguments is not allowed in this dialect");
    if (parse_is(p, T_STAR) || parse_is(p, T_STARSTAR)) {
        n->op = p->l.token;
        if (!star_parse_next(p))
            return NULL;
        if (n->op == T_STAR && !parse_is(p, T_NAME))
            return n; /* a bare one */
    }
    if (!parse_is(p, T_NAME))
        return star_parse_unexpected(p, "identifier");
    n->name = p->l.text;
    n->span.end = p->l.span.end;
    bool taken = false;
    if (!star_parse_next(p) || (typed && !star_parse_take(p, T_COLON, &taken)))
        return NULL;
    if (taken && (n->b = star_expr_test(p)) == NULL)
        return NULL;
    if (n->op == 0) {
        if (!star_parse_take(p, T_ASSIGN, &taken))
            return NULL;
        if (taken && (n->a = star_expr_test(p)) == NULL)
            return NULL;
    }
    return n;
}

/* Checks the order of parameters. */
static bool parse_check_params(struct parse *p, const struct star_node *def) {
    bool defaulted = false, star = false, starstar = false;
    for (size_t i = 0; i < def->n; i++) {
        const struct star_node *n = def->items[i];
        if (!star_work(p->s, i / 16))
            return false;
        for (size_t k = 0; k < i && n->name.n > 0; k++) {
            if (str_eq(def->items[k]->name, n->name))
                return star_fail_at(p->s, n->span, "duplicated parameter name");
        }
        if (n->op == T_STAR && (star || starstar))
            return star_fail_at(p->s, n->span,
                                "Args parameter after another args or kwargs parameter");
        if (n->op == T_STARSTAR && starstar)
            return star_fail_at(p->s, n->span, "Multiple kwargs dictionary in parameters");
        if (n->op == 0 && starstar)
            return star_fail_at(p->s, n->span,
                                n->a != NULL ? "Default parameter after args array or kwargs "
                                               "dictionary"
                                             : "positional parameter after non positional");
        if (n->op == 0 && n->a == NULL && defaulted && !star)
            return star_fail_at(p->s, n->span, "positional parameter after non positional");
        star |= n->op == T_STAR;
        starstar |= n->op == T_STARSTAR;
        defaulted |= n->a != NULL;
    }
    return true;
}

bool star_expr_params(struct parse *p, struct star_node *def, enum star_token end, bool typed) {
    while (!parse_is(p, end)) {
        bool comma;
        struct star_node *n = parse_param(p, typed);
        if (n == NULL || !star_parse_add(p, def, n) || !star_parse_take(p, T_COMMA, &comma))
            return false;
        if (!comma)
            break;
    }
    return parse_check_params(p, def);
}

/* An expression that is a plain name and precedes `=` names an argument. */
static struct star_node *parse_arg(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_ARG, p->l.span);
    bool named;
    if (n == NULL)
        return NULL;
    if (parse_is(p, T_STAR) || parse_is(p, T_STARSTAR)) {
        n->op = p->l.token;
        if (!star_parse_next(p))
            return NULL;
    }
    n->a = star_expr_test(p);
    if (n->a == NULL)
        return NULL;
    n->span.end = n->a->span.end;
    if (n->op != 0 || n->a->kind != N_NAME)
        return n;
    if (!star_parse_take(p, T_ASSIGN, &named))
        return NULL;
    if (named) {
        n->op = T_NAME;
        n->name = n->a->name;
        n->a = star_expr_test(p);
        n->span.end = n->a != NULL ? n->a->span.end : 0;
    }
    return n->a == NULL ? NULL : n;
}

static bool parse_check_args(struct parse *p, const struct star_node *call) {
    bool named = false, star = false, starstar = false;
    for (size_t i = 0; i < call->n; i++) {
        const struct star_node *n = call->items[i];
        if (!star_work(p->s, i / 16))
            return false;
        if (n->op == 0 && (named || star || starstar))
            return star_fail_at(p->s, n->span, "positional argument after non positional");
        if (n->op == T_NAME && starstar)
            return star_fail_at(p->s, n->span, "named argument after *args or **kwargs");
        if (n->op == T_STAR && (star || starstar))
            return star_fail_at(p->s, n->span, "Args array after another args or kwargs");
        if (n->op == T_STARSTAR && starstar)
            return star_fail_at(p->s, n->span, "Multiple kwargs dictionary in arguments");
        for (size_t k = 0; k < i && n->op == T_NAME; k++) {
            struct star_span name = {n->span.begin, n->span.begin + (uint32_t)n->name.n};
            if (call->items[k]->op == T_NAME && str_eq(call->items[k]->name, n->name))
                return star_fail_at(p->s, name, "repeated named argument");
        }
        named |= n->op == T_NAME;
        star |= n->op == T_STAR;
        starstar |= n->op == T_STARSTAR;
    }
    return true;
}

static struct star_node *parse_call(struct parse *p, struct star_node *fn) {
    struct star_node *n = star_parse_pair(p, N_CALL, 0, fn, NULL);
    if (n == NULL || !star_parse_next(p))
        return NULL;
    while (!parse_is(p, T_RPAREN)) {
        bool comma;
        struct star_node *arg = parse_arg(p);
        if (arg == NULL || !star_parse_add(p, n, arg) || !star_parse_take(p, T_COMMA, &comma))
            return NULL;
        if (!comma)
            break;
    }
    n->span.end = p->l.span.end;
    if (!star_parse_expect(p, T_RPAREN) || !parse_check_args(p, n))
        return NULL;
    return n;
}

/* -- displays -- */

static struct star_node *parse_or(struct parse *p);

/* `for` and `if` after the first element of a display. */
static bool parse_clauses(struct parse *p, struct star_node *n) {
    while (parse_is(p, T_FOR) || parse_is(p, T_IF)) {
        bool loop = parse_is(p, T_FOR);
        struct star_node *c = star_parse_node(p, loop ? N_FOR_CLAUSE : N_IF_CLAUSE, p->l.span);
        if (c == NULL || !star_parse_next(p))
            return false;
        c->a = loop ? star_expr_target(p) : parse_or(p);
        if (c->a == NULL)
            return false;
        if (loop && (!star_parse_expect(p, T_IN) || (c->b = parse_or(p)) == NULL))
            return false;
        if (!star_parse_add(p, n, c))
            return false;
    }
    return true;
}

static struct star_node *parse_list(struct parse *p) {
    struct star_span span = p->l.span;
    struct star_node *n = star_parse_node(p, N_LIST, span);
    if (n == NULL || !star_parse_next(p))
        return NULL;
    while (!parse_is(p, T_RBRACKET)) {
        bool comma;
        struct star_node *item = star_expr_test(p);
        if (item == NULL)
            return NULL;
        if (n->n == 0 && parse_is(p, T_FOR)) {
            n->kind = N_LISTCOMP;
            n->a = item;
            if (!parse_clauses(p, n))
                return NULL;
            break;
        }
        if (!star_parse_add(p, n, item) || !star_parse_take(p, T_COMMA, &comma))
            return NULL;
        if (!comma)
            break;
    }
    n->span.end = p->l.span.end;
    return star_parse_expect(p, T_RBRACKET) ? n : NULL;
}

static struct star_node *parse_dict(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_DICT, p->l.span);
    if (n == NULL || !star_parse_next(p))
        return NULL;
    while (!parse_is(p, T_RBRACE)) {
        bool comma;
        struct star_node *key = star_expr_test(p), *value = NULL;
        if (key == NULL || !star_parse_expect(p, T_COLON) || (value = star_expr_test(p)) == NULL)
            return NULL;
        if (n->n == 0 && parse_is(p, T_FOR)) {
            n->kind = N_DICTCOMP;
            n->a = key;
            n->b = value;
            if (!parse_clauses(p, n))
                return NULL;
            break;
        }
        if (!star_parse_add(p, n, key) || !star_parse_add(p, n, value) ||
            !star_parse_take(p, T_COMMA, &comma))
            return NULL;
        if (!comma)
            break;
    }
    n->span.end = p->l.span.end;
    return star_parse_expect(p, T_RBRACE) ? n : NULL;
}

/* A tuple or an expression in parentheses; its span leaves them out. */
static struct star_node *parse_paren(struct parse *p) {
    struct star_span span = p->l.span;
    if (!star_parse_next(p))
        return NULL;
    if (parse_is(p, T_RPAREN)) {
        span.end = p->l.span.end;
        return star_parse_next(p) ? star_parse_node(p, N_TUPLE, span) : NULL;
    }
    struct star_span inside = p->l.span;
    struct star_node *first = star_expr_test(p);
    if (first == NULL)
        return NULL;
    if (!parse_is(p, T_COMMA))
        return star_parse_expect(p, T_RPAREN) ? first : NULL;
    struct star_node *n = star_parse_node(p, N_TUPLE, inside);
    if (n == NULL || !star_parse_add(p, n, first))
        return NULL;
    while (parse_is(p, T_COMMA)) {
        n->span.end = p->l.span.end;
        if (!star_parse_next(p))
            return NULL;
        if (parse_is(p, T_RPAREN))
            break;
        struct star_node *item = star_expr_test(p);
        if (item == NULL || !star_parse_add(p, n, item))
            return NULL;
        n->span.end = item->span.end;
    }
    return star_parse_expect(p, T_RPAREN) ? n : NULL;
}

/* -- f-strings -- */

static bool parse_text_part(struct parse *p, struct star_node *n, size_t begin, size_t end,
                            bool raw) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_SOURCE_MAX);
    struct star_span span = {(uint32_t)begin, (uint32_t)end};
    if (begin == end)
        return true;
    struct star_node *part = star_parse_node(p, N_LITERAL, span);
    if (part == NULL || !star_lex_unescape(p->s, span, raw, false, &b))
        return false;
    part->value = star_take(p->s, &b, 0);
    return part->value != NULL && star_parse_add(p, n, part);
}

/* An expression in an f-string; p->l reads from its brace on. */
static bool parse_field(struct parse *p, struct star_node *n) {
    struct star_node *field = star_parse_node(p, N_FIELD, p->l.span);
    if (field == NULL || !star_parse_next(p) || (field->a = star_expr_test(p)) == NULL)
        return false;
    if (!parse_is(p, T_FSTRING_END))
        return star_parse_unexpected(p, "f-string expression end '}'");
    field->op = p->l.repr ? T_NOT : 0;
    return star_parse_add(p, n, field);
}

static bool parse_fstring_parts(struct parse *p, struct star_node *n, size_t at, size_t end,
                                bool raw) {
    const char *text = p->s->text.p;
    size_t begin = at;
    while (at < end) {
        char c = text[at];
        bool doubled = (c == '{' || c == '}') && at + 1 < end && text[at + 1] == c;
        if (c == '\\' && !raw && at + 1 < end) {
            at += 2;
        } else if (doubled) {
            if (!parse_text_part(p, n, begin, at + 1, raw))
                return false;
            begin = at += 2;
        } else if (c == '}') {
            return star_fail_at(p->s, (struct star_span){(uint32_t)at, (uint32_t)at + 1},
                                "Parse error: invalid input `}`");
        } else if (c == '{') {
            p->l = (struct star_lex){
                .s = p->s, .at = at + 1, .end = end, .field = true, .brackets = 1};
            if (!parse_text_part(p, n, begin, at, raw) || !parse_field(p, n))
                return false;
            begin = at = p->l.at;
        } else {
            at++;
        }
    }
    return parse_text_part(p, n, begin, end, raw);
}

static struct star_node *parse_fstring(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_FSTRING, p->l.span);
    size_t begin = (size_t)(p->l.text.p - p->s->text.p);
    struct star_lex outer = p->l;
    if (n == NULL || !parse_fstring_parts(p, n, begin, begin + outer.text.n, outer.raw))
        return NULL;
    p->l = outer;
    return star_parse_next(p) ? n : NULL;
}

/* -- operands -- */

static struct star_node *parse_literal(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_LITERAL, p->l.span);
    if (n == NULL)
        return NULL;
    n->value = parse_is(p, T_ELLIPSIS) ? &p->s->ellipsis : p->l.value;
    return star_parse_next(p) ? n : NULL;
}

static struct star_node *parse_operand(struct parse *p) {
    struct star_node *n;
    switch ((int)p->l.token) {
    case T_NAME:
        n = star_parse_node(p, N_NAME, p->l.span);
        if (n == NULL)
            return NULL;
        n->name = p->l.text;
        return star_parse_next(p) ? n : NULL;
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_BYTES:
    case T_ELLIPSIS: return parse_literal(p);
    case T_FSTRING: return parse_fstring(p);
    case T_LPAREN: return parse_paren(p);
    case T_LBRACKET: return parse_list(p);
    case T_LBRACE: return parse_dict(p);
    default: return star_parse_unexpected(p, "expression");
    }
}

/* a[b], a[b, c] for types, a[b:c:d] */
static struct star_node *parse_subscript(struct parse *p, struct star_node *a) {
    struct star_node *part[3] = {NULL, NULL, NULL};
    bool colon = false;
    size_t k = 0;
    if (!star_parse_next(p))
        return NULL;
    for (; k < 3 && !parse_is(p, T_RBRACKET); k++) {
        if (!parse_is(p, T_COLON) && (part[k] = star_expr_test(p)) == NULL)
            return NULL;
        bool taken;
        if (k < 2 && !star_parse_take(p, T_COLON, &taken))
            return NULL;
        if (k == 2 || !taken)
            break;
        colon = true;
    }
    if (!colon && part[0] == NULL)
        return star_parse_unexpected(p, "expression");
    if (!colon && parse_is(p, T_COMMA)) {
        struct star_node *pair = star_parse_node(p, N_TUPLE, part[0]->span);
        if (pair == NULL || !star_parse_next(p) || (part[1] = star_expr_test(p)) == NULL ||
            !star_parse_add(p, pair, part[0]) || !star_parse_add(p, pair, part[1]))
            return NULL;
        part[0] = pair;
    }
    struct star_node *n = star_parse_pair(p, colon ? N_SLICE : N_INDEX, 0, a, part[0]);
    if (n == NULL)
        return NULL;
    n->c = colon ? part[1] : NULL;
    n->d = part[2];
    n->span.end = p->l.span.end;
    return star_parse_expect(p, T_RBRACKET) ? n : NULL;
}

static struct star_node *parse_dot(struct parse *p, struct star_node *a) {
    struct star_node *n = star_parse_pair(p, N_DOT, 0, a, NULL);
    if (n == NULL || !star_parse_next(p))
        return NULL;
    if (!parse_is(p, T_NAME))
        return star_parse_unexpected(p, "identifier");
    n->name = p->l.text;
    n->span.end = p->l.span.end;
    return star_parse_next(p) ? n : NULL;
}

static struct star_node *parse_primary(struct parse *p) {
    struct star_node *n = parse_operand(p);
    for (unsigned depth = 0; n != NULL; depth++) {
        if (depth > STAR_NESTING_MAX)
            return star_fail_at(p->s, n->span, "Parse error: nested too deeply");
        if (parse_is(p, T_LPAREN))
            n = parse_call(p, n);
        else if (parse_is(p, T_LBRACKET))
            n = parse_subscript(p, n);
        else if (parse_is(p, T_DOT))
            n = parse_dot(p, n);
        else
            break;
    }
    return n;
}

/* -- operators -- */

/* Binding strength of binary operators; 0: none. */
static int parse_strength(enum star_token t) {
    switch ((int)t) {
    case T_PIPE: return 1;
    case T_CARET: return 2;
    case T_AMP: return 3;
    case T_SHL:
    case T_SHR: return 4;
    case T_PLUS:
    case T_MINUS: return 5;
    case T_STAR:
    case T_SLASH:
    case T_SLASHSLASH:
    case T_PERCENT: return 6;
    default: return 0;
    }
}

static struct star_node *parse_unary(struct parse *p) {
    if (!parse_is(p, T_PLUS) && !parse_is(p, T_MINUS) && !parse_is(p, T_TILDE))
        return parse_primary(p);
    struct star_node *n = star_parse_node(p, N_UNARY, p->l.span);
    if (n == NULL || !star_parse_enter(p))
        return NULL;
    n->op = p->l.token;
    if (!star_parse_next(p) || (n->a = parse_unary(p)) == NULL)
        return NULL;
    n->span.end = n->a->span.end;
    p->nesting--;
    return n;
}

/* Operators at least as strong as `least`, to the left; a chain is a loop but a deep tree. */
static struct star_node *parse_binary(struct parse *p, int least) {
    struct star_node *n = parse_unary(p);
    for (unsigned depth = 0; n != NULL && parse_strength(p->l.token) >= least; depth++) {
        enum star_token op = p->l.token;
        if (depth > 4 * STAR_NESTING_MAX)
            return star_fail_at(p->s, n->span, "Parse error: nested too deeply");
        struct star_node *b = star_parse_next(p) ? parse_binary(p, parse_strength(op) + 1) : NULL;
        n = b == NULL ? NULL : star_parse_pair(p, N_BINARY, op, n, b);
    }
    return n;
}

/* The comparison that the current token begins; `not in` is T_NOT. 0: none. */
static enum star_token parse_comparison_op(const struct parse *p) {
    enum star_token t = p->l.token;
    return (t >= T_EQ && t <= T_GE) || t == T_IN || t == T_NOT ? t : 0;
}

static struct star_node *parse_comparison(struct parse *p) {
    struct star_node *n = parse_binary(p, 1);
    enum star_token op = n == NULL ? 0 : parse_comparison_op(p);
    if (op == 0)
        return n;
    if (!star_parse_next(p) || (op == T_NOT && !star_parse_expect(p, T_IN)))
        return NULL;
    struct star_node *b = parse_binary(p, 1);
    if (b != NULL && parse_comparison_op(p) != 0)
        return star_parse_unexpected(
            p, "end of expression (comparisons are not associative in Starlark)");
    return b == NULL ? NULL : star_parse_pair(p, N_BINARY, op, n, b);
}

static struct star_node *parse_not(struct parse *p) {
    if (!parse_is(p, T_NOT))
        return parse_comparison(p);
    struct star_node *n = star_parse_node(p, N_NOT, p->l.span);
    if (n == NULL || !star_parse_enter(p) || !star_parse_next(p) || (n->a = parse_not(p)) == NULL)
        return NULL;
    n->span.end = n->a->span.end;
    p->nesting--;
    return n;
}

static struct star_node *parse_and(struct parse *p) {
    struct star_node *n = parse_not(p);
    while (n != NULL && parse_is(p, T_AND)) {
        struct star_node *b = star_parse_next(p) ? parse_not(p) : NULL;
        n = b == NULL || !star_parse_enter(p) ? NULL : star_parse_pair(p, N_AND, 0, n, b);
    }
    return n;
}

static struct star_node *parse_or(struct parse *p) {
    unsigned nesting = p->nesting;
    struct star_node *n = parse_and(p);
    while (n != NULL && parse_is(p, T_OR)) {
        struct star_node *b = star_parse_next(p) ? parse_and(p) : NULL;
        n = b == NULL || !star_parse_enter(p) ? NULL : star_parse_pair(p, N_OR, 0, n, b);
    }
    p->nesting = nesting;
    return n;
}

static struct star_node *parse_lambda(struct parse *p) {
    struct star_node *n = star_parse_node(p, N_LAMBDA, p->l.span);
    if (n == NULL || !star_parse_next(p))
        return NULL;
    if (!parse_is(p, T_COLON) && !star_expr_params(p, n, T_COLON, false))
        return NULL;
    n->name = STR_LIT("lambda");
    if (!star_parse_expect(p, T_COLON) || (n->a = star_expr_test(p)) == NULL)
        return NULL;
    n->span.end = n->a->span.end;
    return n;
}

static struct star_node *parse_choice(struct parse *p) {
    struct star_node *n = parse_or(p);
    if (n == NULL || !parse_is(p, T_IF))
        return n;
    struct star_node *choice = star_parse_pair(p, N_CHOICE, 0, n, NULL);
    if (choice == NULL || !star_parse_next(p) || (choice->b = parse_or(p)) == NULL ||
        !star_parse_expect(p, T_ELSE) || (choice->c = star_expr_test(p)) == NULL)
        return NULL;
    choice->span.end = choice->c->span.end;
    return choice;
}

struct star_node *star_expr_test(struct parse *p) {
    if (!star_parse_enter(p))
        return NULL;
    struct star_node *n = parse_is(p, T_LAMBDA) ? parse_lambda(p) : parse_choice(p);
    p->nesting--;
    return n;
}

/* Items separated by commas become a tuple; `one` reads each. */
static struct star_node *parse_series(struct parse *p, struct star_node *(*one)(struct parse *)) {
    struct star_span span = p->l.span;
    struct star_node *n = one(p);
    if (n == NULL || !parse_is(p, T_COMMA))
        return n;
    struct star_node *tuple = star_parse_node(p, N_TUPLE, span);
    if (tuple == NULL || !star_parse_add(p, tuple, n))
        return NULL;
    while (parse_is(p, T_COMMA)) {
        tuple->span.end = p->l.span.end;
        if (!star_parse_next(p))
            return NULL;
        if (!star_expr_begins_test(p))
            return star_fail_at(p->s, tuple->span, "unparenthesized tuple with trailing comma");
        if ((n = one(p)) == NULL || !star_parse_add(p, tuple, n))
            return NULL;
        tuple->span.end = n->span.end;
    }
    return tuple;
}

struct star_node *star_expr_tests(struct parse *p) {
    return parse_series(p, star_expr_test);
}

/* -- targets -- */

bool star_expr_check_target(struct parse *p, const struct star_node *n, bool augmented) {
    bool several = n->kind == N_TUPLE || n->kind == N_LIST;
    if (several && augmented)
        return star_fail_at(p->s, n->span,
                            "left-hand-side of modifying assignment cannot be a list or tuple");
    for (size_t i = 0; several && i < n->n; i++) {
        if (!star_expr_check_target(p, n->items[i], false))
            return false;
    }
    if (several || n->kind == N_NAME || n->kind == N_DOT || n->kind == N_INDEX)
        return true;
    return star_fail_at(p->s, n->span,
                        "left-hand-side of assignment must take the form `a`, `a.b` or `a[b]`");
}

struct star_node *star_expr_target(struct parse *p) {
    struct star_node *n = parse_series(p, parse_primary);
    return n != NULL && star_expr_check_target(p, n, false) ? n : NULL;
}
