#include "rules/decide.h"

#include "rules/decide_danger.h"
#include "rules/decide_internal.h"
#include "rules/shlex.h"

#include <errno.h>

#define DECIDE_FORBIDDEN "Execution forbidden by policy"

struct decide {
    struct decide_options o;
    struct decide_layers layers;
};

/* -- layers -- */

int decide_new(struct decide **out, const struct decide_options *o, struct err *e) {
    struct decide *d = calloc(1, sizeof *d);
    *out = NULL;
    if (d == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return -ENOMEM;
    }
    d->o = *o;
    decide_layers_read(&d->layers, &d->o);
    if (d->layers.error != NULL) {
        err_about(e, ERR_INTERNAL, "", str_of(d->layers.error), "");
        decide_free(d);
        return -EINVAL;
    }
    *out = d;
    return 0;
}

void decide_free(struct decide *d) {
    if (d == NULL)
        return;
    decide_layers_fini(&d->layers);
    free(d);
}

bool decide_refresh(struct decide *d) {
    if (!decide_layers_changed(&d->layers))
        return false;
    decide_layers_fini(&d->layers);
    decide_layers_read(&d->layers, &d->o);
    return true;
}

const char *decide_broken(const struct decide *d) {
    return d->layers.error;
}

bool decide_restricts(const struct decide *d) {
    return d->layers.error != NULL || execpolicy_restricts(d->layers.policy);
}

/* -- one name -- */

enum decide_level { LEVEL_NONE, LEVEL_ALLOW, LEVEL_DANGER, LEVEL_PROMPT, LEVEL_FORBIDDEN };

struct decide_outcome {
    enum decide_level level;
    const struct execpolicy_match *match; /* the strictest one; NULL: no rule */
};

static struct str decide_base(struct str path) {
    const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);
    if (slash == NULL || (size_t)(slash + 1 - path.p) == path.n)
        return path;
    return (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
}

static enum decide_level decide_level_of(enum execpolicy_decision d) {
    switch (d) {
    case EXECPOLICY_ALLOW: return LEVEL_ALLOW;
    case EXECPOLICY_PROMPT: return LEVEL_PROMPT;
    case EXECPOLICY_FORBIDDEN: break;
    }
    return LEVEL_FORBIDDEN;
}

/* The first of the strictest matches. */
static const struct execpolicy_match *decide_strictest(const struct execpolicy_matches *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->list[i].rule->decision == m->decision)
            return &m->list[i];
    }
    return NULL;
}

static int decide_one(const struct decide *d, const struct decide_name *name,
                      const struct decide_query *q, struct arena *a, struct decide_outcome *out) {
    struct str *words = arena_calloc(a, name->n + 1, sizeof *words);
    struct execpolicy_matches m;
    if (words == NULL)
        return -ENOMEM;
    bool base = d->o.compat && !d->o.whole_paths;
    words[0] = base ? decide_base(name->path) : name->path;
    if (name->n > 0)
        memcpy(words + 1, name->args, name->n * sizeof *words);
    const struct execpolicy_place place = {q->cwd, d->o.home};
    const struct execpolicy_words command = {words, name->n + 1};
    bool resolve = !d->o.compat && !d->o.whole_paths;
    int r = execpolicy_check(d->layers.policy, &command, resolve ? &place : NULL, a, &m);
    if (r < 0)
        return r;
    *out = (struct decide_outcome){LEVEL_NONE, NULL};
    if (m.n > 0) {
        out->match = decide_strictest(&m);
        out->level = decide_level_of(m.decision);
    } else if (decide_danger(words, name->n + 1, d->o.compat, a)) {
        out->level = LEVEL_DANGER;
    }
    if (out->level == LEVEL_ALLOW && name->strict_only)
        out->level = LEVEL_NONE;
    return 0;
}

/* -- the verdict -- */

/* The words of the rule that matched, for logs. */
static int decide_describe(const struct decide_outcome *o, struct arena *a,
                           struct decide_verdict *v) {
    if (o->match == NULL) {
        if (o->level == LEVEL_DANGER)
            v->rule = STR_LIT("heuristic: looks dangerous");
        return 0;
    }
    const struct execpolicy_rule *rule = o->match->rule;
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    int r = buf_putf(&b, "%s: ", execpolicy_decision_name(rule->decision));
    if (r == 0)
        r = shlex_join(&b, &rule->first, 1);
    for (size_t i = 0; r == 0 && i < rule->n; i++) {
        r = buf_putc(&b, ' ');
        if (r == 0 && rule->rest[i].n == 1)
            r = shlex_join(&b, rule->rest[i].list, 1);
        else if (r == 0)
            r = buf_putz(&b, "[...]");
    }
    if (r == -ENOMEM)
        return r;
    const char *text = arena_strdup(a, buf_str(&b));
    v->rule = str_of(text);
    v->justification = rule->justification;
    return text == NULL ? -ENOMEM : 0;
}

/* What the strictest outcome means, given that of the program itself. */
static void decide_conclude(const struct decide *d, const struct decide_outcome *top,
                            const struct decide_outcome *real, struct decide_verdict *v) {
    bool granted = real->level == LEVEL_ALLOW || real->level == LEVEL_PROMPT;
    v->accepted = granted ? DECIDE_ESCALATE : DECIDE_RUN;
    v->by_path = granted && real->match != NULL && real->match->rule->first.n > 0 &&
                 real->match->rule->first.p[0] == '/';
    switch (top->level) {
    case LEVEL_FORBIDDEN:
        v->action = DECIDE_DENY;
        v->reason = d->o.compat || v->justification.p == NULL ? STR_LIT(DECIDE_FORBIDDEN)
                                                              : v->justification;
        break;
    case LEVEL_PROMPT:
    case LEVEL_DANGER: v->action = DECIDE_ASK; break;
    case LEVEL_ALLOW: v->action = granted ? DECIDE_ESCALATE : DECIDE_RUN; break;
    case LEVEL_NONE: v->action = DECIDE_RUN; break;
    }
}

static int decide_deny(struct decide_verdict *v, struct str reason, struct str rule) {
    *v = (struct decide_verdict){.action = DECIDE_DENY, .reason = reason, .rule = rule};
    return 0;
}

/* A file without a name cannot be told from a copy of a forbidden program. */
static bool decide_is_nameless(const struct decide_query *q) {
    for (size_t i = 0; i < q->n; i++) {
        if (q->names[i].path.n >= 6 && memcmp(q->names[i].path.p, "memfd:", 6) == 0)
            return true;
    }
    return false;
}

int decide_query(const struct decide *d, const struct decide_query *q, struct arena *a,
                 struct decide_verdict *v) {
    struct decide_outcome top = {LEVEL_NONE, NULL}, real = {LEVEL_NONE, NULL};
    if (d->layers.error != NULL)
        return decide_deny(v, str_of(d->layers.error), STR_LIT("the rules cannot be read"));
    if (decide_restricts(d) && decide_is_nameless(q))
        return decide_deny(v, STR_LIT(DECIDE_FORBIDDEN), STR_LIT("memfd while rules restrict"));
    *v = (struct decide_verdict){.action = DECIDE_RUN};
    for (size_t i = 0; i < q->n; i++) {
        struct decide_outcome o;
        int r = decide_one(d, &q->names[i], q, a, &o);
        if (r < 0)
            return r;
        if (i == q->real)
            real = o;
        if (o.level > top.level)
            top = o;
    }
    int r = decide_describe(&top, a, v);
    if (r == 0)
        decide_conclude(d, &top, &real, v);
    return r;
}
