#include "rules/decide_requirements.h"

#include "json/jsonw.h"

#include <errno.h>
#include <stdio.h>

/* One rule on its way into Starlark. */
struct required {
    const char *path;
    unsigned index;
    struct buf *b;
    struct err *e;
};

static int required_fail(const struct required *q, const char *what) {
    return err_set(q->e, ERR_INTERNAL,
                   "invalid rules in requirements (set by %s): rules prefix_rule at index %u %s",
                   q->path, q->index, what);
}

/* Appends a string; it must not be blank. */
static int required_put(const struct required *q, const struct toml_value *v, const char *what) {
    if (v->type != TOML_STRING || str_trim(v->text).n == 0)
        return required_fail(q, what);
    return jsonw_str(q->b, v->text);
}

/* Appends the array of alternatives. */
static int required_any(const struct required *q, const struct toml_value *any) {
    static const char blank[] = "has an empty or blank any_of";
    if (any->type != TOML_ARRAY || any->count == 0)
        return required_fail(q, blank);
    int r = buf_putc(q->b, '[');
    toml_for_each(v, any) {
        if (r == 0)
            r = required_put(q, v, blank);
        if (r == 0)
            r = buf_putz(q->b, ", ");
    }
    return r < 0 ? r : buf_putc(q->b, ']');
}

static int required_pattern(const struct required *q, const struct toml_value *pattern) {
    if (pattern == NULL || pattern->type != TOML_ARRAY || pattern->count == 0)
        return required_fail(q, "has an empty pattern");
    int r = buf_putz(q->b, "prefix_rule(pattern=[");
    toml_for_each(v, pattern) {
        const struct toml_value *token = v->type == TOML_TABLE ? toml_get(v, "token") : NULL;
        const struct toml_value *any = v->type == TOML_TABLE ? toml_get(v, "any_of") : NULL;
        if (r == 0 && (token == NULL) == (any == NULL))
            r = required_fail(q, "has a pattern element without exactly one of token and any_of");
        if (r == 0)
            r = token != NULL ? required_put(q, token, "has a blank token") : required_any(q, any);
        if (r == 0)
            r = buf_putz(q->b, ", ");
    }
    return r < 0 ? r : buf_putz(q->b, "], decision=");
}

static int required_decision(const struct required *q, const struct toml_value *v) {
    if (v == NULL)
        return required_fail(q, "is missing a decision");
    if (v->type == TOML_STRING && str_eqz(v->text, "allow"))
        return required_fail(q, "has decision 'allow', which is not permitted in "
                                "requirements.toml: Codex merges these rules with other config "
                                "and uses the most restrictive result (use 'prompt' or "
                                "'forbidden')");
    if (v->type != TOML_STRING || (!str_eqz(v->text, "prompt") && !str_eqz(v->text, "forbidden")))
        return required_fail(q, "has an unknown decision");
    return jsonw_str(q->b, v->text);
}

static int required_rule(const struct required *q, const struct toml_value *rule) {
    if (rule->type != TOML_TABLE)
        return required_fail(q, "is not a table");
    const struct toml_value *why = toml_get(rule, "justification");
    int r = required_pattern(q, toml_get(rule, "pattern"));
    if (r == 0)
        r = required_decision(q, toml_get(rule, "decision"));
    if (r == 0 && why != NULL) {
        r = buf_putz(q->b, ", justification=");
        if (r == 0)
            r = required_put(q, why, "has a blank justification");
    }
    return r < 0 ? r : buf_putz(q->b, ")\n");
}

int decide_requirements(const char *path, struct str text, struct buf *rules, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err why = ERR_INIT;
    const struct toml_value *root;
    int r = toml_parse(&a, text, &root, &why);
    if (r < 0 && rules != NULL)
        return err_set(e, ERR_INTERNAL,
                       "Error parsing requirements file %s: TOML parse error at %s", path,
                       err_msg(&why));
    if (r < 0)
        return err_set(e, ERR_INTERNAL, "%s: %s", path, err_msg(&why));
    const struct toml_value *table = rules == NULL ? NULL : toml_get(root, "rules");
    const struct toml_value *list =
        table != NULL && table->type == TOML_TABLE ? toml_get(table, "prefix_rules") : NULL;
    if (table != NULL && (table->type != TOML_TABLE || (list != NULL && list->type != TOML_ARRAY)))
        return err_set(e, ERR_INTERNAL,
                       "Error parsing requirements file %s: rules.prefix_rules must be an array",
                       path);
    struct required q = {path, 0, rules, e};
    if (list == NULL)
        return 0;
    toml_for_each(rule, list) {
        if (r == 0)
            r = required_rule(&q, rule);
        q.index++;
    }
    return r == -ENOBUFS || r == -ENOMEM ? err_set(e, ERR_INTERNAL, "%s: too many rules", path) : r;
}
