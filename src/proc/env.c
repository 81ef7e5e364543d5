#include "proc/env.h"

#include "base/unicase.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>

struct env_var {
    struct str name, value;
    size_t order; /* later wins among equal names */
};

/* Variables under construction; memory from the arena. */
struct env_set {
    struct arena *arena;
    struct env_var *vars;
    size_t len, cap;
    uint64_t steps; /* of matching that are left */
    bool failed;    /* out of memory */
};

static void env_add(struct env_set *s, struct str name, struct str value) {
    struct env_var *vars = arena_grow(s->arena, s->vars, s->len, &s->cap, 64, sizeof *vars);
    if (vars == NULL) {
        s->failed = true;
        return;
    }
    s->vars = vars;
    s->vars[s->len] = (struct env_var){name, value, s->len};
    s->len++;
}

static void env_add_map(struct env_set *s, const struct json_node *map) {
    json_for_each_member(k, map) {
        env_add(s, json_str(k), json_str(k + 1));
    }
}

/* Bytes of the UTF-8 character at p (n > 0). */
static size_t env_char_len(const char *p, size_t n) {
    size_t len = 1;
    while (len < n && ((unsigned char)p[len] & 0xC0) == 0x80)
        len++;
    return len;
}

/* Whether the characters at *p and *i are equal but for case; then both move on. */
static bool env_same_char(struct str pattern, size_t *p, struct str name, size_t *i) {
    uint32_t a = (unsigned char)pattern.p[*p], b = (unsigned char)name.p[*i];
    if (a < 0x80 && b < 0x80 && tolower((int)a) != tolower((int)b))
        return false; /* the usual case, fast */
    size_t a_len = utf8_decode(pattern.p + *p, pattern.n - *p, &a);
    size_t b_len = utf8_decode(name.p + *i, name.n - *i, &b);
    if (a != b && unicase_lower(a) != unicase_lower(b))
        return false;
    *p += a_len;
    *i += b_len;
    return true;
}

/* Like env_match(); counts *steps down, and at 0 nothing matches any more. */
static bool env_match_within(struct str pattern, struct str name, uint64_t *steps) {
    size_t p = 0, i = 0;
    size_t star = SIZE_MAX, mark = 0; /* the last `*`, and the end of its run so far */
    while (i < name.n) {
        if (*steps == 0)
            return false;
        --*steps;
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = i;
        } else if (p < pattern.n && pattern.p[p] == '?') {
            p++;
            i += env_char_len(name.p + i, name.n - i);
        } else if (p < pattern.n && env_same_char(pattern, &p, name, &i)) {
            continue;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            mark += env_char_len(name.p + mark, name.n - mark);
            i = mark;
        } else {
            return false;
        }
    }
    for (; p < pattern.n && pattern.p[p] == '*' && *steps > 0; --*steps)
        p++;
    return p == pattern.n && pattern.n > 0;
}

bool env_match(struct str pattern, struct str name) {
    uint64_t steps = UINT64_MAX;
    return env_match_within(pattern, name, &steps);
}

static bool env_match_any(struct env_set *s, const struct json_node *patterns, struct str name) {
    json_for_each(v, patterns) {
        if (s->steps == 0)
            return false;
        s->steps--; /* also for those that fail at once */
        if (env_match_within(json_str(v), name, &s->steps))
            return true;
    }
    return false;
}

static bool env_is_core(struct str name) {
    static const char *const core[] = {"PATH", "SHELL",  "TMPDIR",   "TEMP",    "TMP", "HOME",
                                       "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"};
    for (size_t i = 0; i < ARRAY_LEN(core); i++) {
        if (str_ieqz(name, core[i]))
            return true;
    }
    return false;
}

static bool env_is_secret(struct str name) {
    return env_match(STR_LIT("*KEY*"), name) || env_match(STR_LIT("*SECRET*"), name) ||
           env_match(STR_LIT("*TOKEN*"), name);
}

/* Names that never reach a command, from no source. */
static bool env_is_restricted(struct str name) {
    static const char *const any_case[] = {
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN", "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",          "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",   "CODEX_GUARDIAN_DECISIONS_API_KEY",
    };
    for (size_t i = 0; i < ARRAY_LEN(any_case); i++) {
        if (str_ieqz(name, any_case[i]))
            return true;
    }
    return str_eqz(name, "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE") ||
           str_eqz(name, "CODEX_TOOL_CALL_ID");
}

static void env_inherit(struct env_set *s, const struct env_policy *p, char *const *inherited) {
    for (; p->inherit != ENV_NONE && *inherited != NULL; inherited++) {
        const char *eq = strchr(*inherited + (**inherited != '\0'), '=');
        if (eq == NULL)
            continue;
        struct str name = {*inherited, (size_t)(eq - *inherited)};
        struct str value = str_of(eq + 1);
        if (p->inherit == ENV_CORE && !env_is_core(name))
            continue;
        if (!p->ignore_default_excludes && env_is_secret(name))
            continue;
        if (env_match_any(s, p->exclude, name) || !utf8_valid(*inherited, strlen(*inherited)))
            continue;
        env_add(s, name, value);
    }
}

/* Keeps what `keep` says, preserving order. */
static void env_filter(struct env_set *s, const struct json_node *include_only) {
    size_t kept = 0;
    for (size_t i = 0; i < s->len && s->steps > 0; i++) {
        struct str name = s->vars[i].name;
        if (env_is_restricted(name) || (include_only && !env_match_any(s, include_only, name)))
            continue;
        s->vars[kept++] = s->vars[i];
    }
    s->len = kept;
}

static void env_remove(struct env_set *s, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < s->len; i++) {
        if (!str_eqz(s->vars[i].name, name))
            s->vars[kept++] = s->vars[i];
    }
    s->len = kept;
}

static void env_collect(struct env_set *s, const struct env_request *r, char *const *inherited) {
    const struct env_policy *p = r->policy;
    if (p != NULL) {
        env_inherit(s, p, inherited);
        env_add_map(s, p->set);
        env_filter(s, p->include_only->count > 0 ? p->include_only : NULL);
    }
    env_add_map(s, r->env);
    env_filter(s, NULL);
    if (r->no_thread_id)
        env_remove(s, "CODEX_THREAD_ID");
    if (r->thread_id.p != NULL)
        env_add(s, STR_LIT("CODEX_THREAD_ID"), r->thread_id);
    if (r->tool_call_id.p != NULL && !str_has_nul(r->tool_call_id))
        env_add(s, STR_LIT("CODEX_TOOL_CALL_ID"), r->tool_call_id);
    for (size_t i = 0; i < r->extra_count; i++)
        env_add(s, str_of(r->extra[i].name), str_of(r->extra[i].value));
    for (size_t i = 0; i < s->len && !s->failed; i++)
        s->vars[i].order = i;
}

static int env_compare(const void *pa, const void *pb) {
    const struct env_var *a = pa, *b = pb;
    size_t n = MIN(a->name.n, b->name.n);
    int c = n > 0 ? memcmp(a->name.p, b->name.p, n) : 0;
    if (c == 0)
        c = (a->name.n > b->name.n) - (a->name.n < b->name.n);
    return c != 0 ? c : (a->order > b->order) - (a->order < b->order);
}

static char *env_join(struct arena *a, const struct env_var *v) {
    char *s = arena_alloc(a, v->name.n + v->value.n + 2);
    if (s == NULL)
        return NULL;
    char *p = v->name.n ? mempcpy(s, v->name.p, v->name.n) : s;
    *p++ = '=';
    if (v->value.n > 0)
        memcpy(p, v->value.p, v->value.n);
    return s;
}

int env_build(struct arena *a, const struct env_request *r, char *const *inherited, char ***out) {
    struct env_set s = {.arena = a, .steps = ENV_MATCH_STEPS};
    env_collect(&s, r, inherited);
    if (s.steps == 0)
        return -E2BIG;
    bool has_shell = false;
    for (size_t i = 0; i < s.len; i++)
        has_shell |= str_eqz(s.vars[i].name, "SHELL");
    if (r->shell != NULL && !has_shell)
        env_add(&s, STR_LIT("SHELL"), str_of(r->shell));
    if (s.len > 0)
        qsort(s.vars, s.len, sizeof *s.vars, env_compare);
    char **envp = arena_calloc(a, s.len + 1, sizeof *envp);
    if (envp == NULL || s.failed)
        return -ENOMEM;
    size_t n = 0;
    bool has_nul = false;
    for (size_t i = 0; i < s.len; i++) {
        if (i + 1 < s.len && str_eq(s.vars[i].name, s.vars[i + 1].name))
            continue; /* overridden */
        has_nul |= str_has_nul(s.vars[i].name) || str_has_nul(s.vars[i].value);
        envp[n] = env_join(a, &s.vars[i]);
        if (envp[n++] == NULL)
            return -ENOMEM;
    }
    *out = envp;
    return has_nul ? -EINVAL : 0;
}

const char *env_get(char *const *envp, const char *name) {
    size_t n = strlen(name);
    for (; *envp != NULL; envp++) {
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    }
    return NULL;
}
