#include "rules/execpolicy_internal.h"

#include "rules/shlex.h"

#include <errno.h>

/* Functions for `.rules` files. Errors belong to the file and have the reference's texts. */

static struct execpolicy *natives_policy(struct star *s) {
    return star_user(s);
}

static void *natives_no_memory(struct star *s) {
    return star_fail(s, "the policy needs more than 64 MiB of memory");
}

/* Copies text into the policy; p NULL after a failure. */
static struct str natives_keep(struct star *s, struct str text) {
    const char *p = arena_strdup(&natives_policy(s)->arena, text);
    if (p == NULL)
        natives_no_memory(s);
    return (struct str){p, text.n};
}

static bool natives_is_blank(struct str text) {
    return str_trim(text).n == 0;
}

/* An optional justification; false after a failure. */
static bool natives_justification(struct star *s, const struct star_value *v, struct str *out) {
    *out = (struct str){NULL, 0};
    if (v == NULL)
        return true;
    if (!star_value_want(s, v, STAR_STRING, "str", "justification"))
        return false;
    if (natives_is_blank(v->text))
        return star_fail(s, "invalid rule: justification cannot be empty");
    *out = natives_keep(s, v->text);
    return out->p != NULL;
}

/* -- prefix_rule() -- */

static bool prefix_decision(struct star *s, const struct star_value *v,
                            enum execpolicy_decision *out) {
    *out = EXECPOLICY_ALLOW;
    if (v == NULL)
        return true;
    if (!star_value_want(s, v, STAR_STRING, "str", "decision"))
        return false;
    for (int i = EXECPOLICY_ALLOW; i <= EXECPOLICY_FORBIDDEN; i++) {
        *out = (enum execpolicy_decision)i;
        if (str_eqz(v->text, execpolicy_decision_name(*out)))
            return true;
    }
    return star_fail(s, "invalid decision: %.*s", (int)v->text.n, v->text.p);
}

/* One word of a pattern: a text, or a list of alternatives. */
static bool prefix_element(struct star *s, struct star_value *v, struct execpolicy_words *out) {
    bool several = v->type == STAR_LIST;
    if (!several && v->type != STAR_STRING)
        return star_fail(s,
                         "invalid pattern element: pattern element must be a string or list of "
                         "strings (got %s)",
                         star_value_type_name(v));
    size_t n = several ? v->list.n : 1;
    if (n == 0)
        return star_fail(s, "invalid pattern element: pattern alternatives cannot be empty");
    struct str *list = arena_calloc(&natives_policy(s)->arena, n, sizeof *list);
    if (list == NULL)
        return natives_no_memory(s);
    for (size_t i = 0; i < n; i++) {
        const struct star_value *item = several ? v->list.items[i] : v;
        if (item->type != STAR_STRING)
            return star_fail(s,
                             "invalid pattern element: pattern alternative must be a string "
                             "(got %s)",
                             star_value_type_name(item));
        list[i] = natives_keep(s, item->text);
        if (list[i].p == NULL)
            return false;
    }
    *out = (struct execpolicy_words){list, n};
    return true;
}

static bool prefix_pattern(struct star *s, const struct star_value *v,
                           struct execpolicy_words **out) {
    if (!star_value_want(s, v, STAR_LIST, "list", "pattern"))
        return false;
    if (v->list.n == 0)
        return star_fail(s, "invalid pattern element: pattern cannot be empty");
    *out = arena_calloc(&natives_policy(s)->arena, v->list.n, sizeof **out);
    if (*out == NULL)
        return natives_no_memory(s);
    for (size_t i = 0; i < v->list.n; i++) {
        if (!prefix_element(s, v->list.items[i], &(*out)[i]))
            return false;
    }
    return true;
}

static bool prefix_example_text(struct star *s, struct str text, struct execpolicy_words *out) {
    struct shlex_words words;
    int r = shlex_split(text, &natives_policy(s)->arena, &words);
    if (r == -ENOMEM)
        return natives_no_memory(s);
    if (r < 0)
        return star_fail(s, "invalid example: example string has invalid shell syntax");
    if (words.n == 0)
        return star_fail(s, "invalid example: example cannot be an empty string");
    *out = (struct execpolicy_words){words.list, words.n};
    return true;
}

static bool prefix_example(struct star *s, const struct star_value *v,
                           struct execpolicy_words *out) {
    if (v->type == STAR_STRING)
        return prefix_example_text(s, v->text, out);
    if (v->type != STAR_LIST)
        return star_fail(s, "invalid example: example must be a string or list of strings (got %s)",
                         star_value_type_name(v));
    if (v->list.n == 0)
        return star_fail(s, "invalid example: example cannot be an empty list");
    struct str *list = arena_calloc(&natives_policy(s)->arena, v->list.n, sizeof *list);
    if (list == NULL)
        return natives_no_memory(s);
    for (size_t i = 0; i < v->list.n; i++) {
        if (v->list.items[i]->type != STAR_STRING)
            return star_fail(s, "invalid example: example tokens must be strings (got %s)",
                             star_value_type_name(v->list.items[i]));
        list[i] = natives_keep(s, v->list.items[i]->text);
        if (list[i].p == NULL)
            return false;
    }
    *out = (struct execpolicy_words){list, v->list.n};
    return true;
}

static bool prefix_examples(struct star *s, const struct star_value *v, const char *name,
                            struct execpolicy_words **out, size_t *n) {
    *n = 0;
    if (v == NULL)
        return true;
    if (!star_value_want(s, v, STAR_LIST, "list", name))
        return false;
    *out = arena_calloc(&natives_policy(s)->arena, v->list.n + 1, sizeof **out);
    if (*out == NULL)
        return natives_no_memory(s);
    for (*n = 0; *n < v->list.n; ++*n) {
        if (!prefix_example(s, v->list.items[*n], &(*out)[*n]))
            return false;
    }
    return true;
}

static bool prefix_add(struct star *s, const struct execpolicy_rule *rule) {
    struct execpolicy *p = natives_policy(s);
    if (p->n == EXECPOLICY_RULES_MAX)
        return star_fail(s, "a policy has at most %d rules", EXECPOLICY_RULES_MAX);
    struct execpolicy_rule *rules =
        arena_grow(&p->arena, p->rules, p->n, &p->cap, 64, sizeof *rules);
    if (rules == NULL)
        return natives_no_memory(s);
    p->rules = rules;
    p->rules[p->n++] = *rule;
    return true;
}

static struct star_value *native_prefix_rule(struct star *s, const struct star_args *a) {
    struct execpolicy *p = natives_policy(s);
    struct execpolicy_rule rule = {0};
    struct execpolicy_words *pattern;
    struct execpolicy_examples *e = arena_alloc(&p->arena, sizeof *e);
    if (e == NULL)
        return natives_no_memory(s);
    static const char *const names[] = {"pattern", "decision", "match", "not_match",
                                        "justification"};
    static const enum star_type types[] = {STAR_LIST, STAR_STRING, STAR_LIST, STAR_LIST,
                                           STAR_STRING};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) { /* types come before values */
        if (a->v[i] != NULL && !star_value_want(s, a->v[i], types[i],
                                                types[i] == STAR_LIST ? "list" : "str", names[i]))
            return NULL;
    }
    if (!prefix_decision(s, a->v[1], &rule.decision) ||
        !natives_justification(s, a->v[4], &rule.justification) ||
        !prefix_pattern(s, a->v[0], &pattern) ||
        !prefix_examples(s, a->v[2], "match", &e->match, &e->match_count) ||
        !prefix_examples(s, a->v[3], "not_match", &e->not_match, &e->not_match_count))
        return NULL;
    rule.rest = pattern + 1;
    rule.n = a->v[0]->list.n - 1;
    e->first = p->n;
    e->n = pattern[0].n;
    for (size_t i = 0; i < pattern[0].n; i++) { /* one rule for each first word */
        rule.first = pattern[0].list[i];
        if (!prefix_add(s, &rule))
            return NULL;
    }
    e->next = p->examples;
    p->examples = e;
    return star_value_none(s);
}

/* -- network_rule(): checked, and not used by checks of commands -- */

static bool network_is_one_of(struct str text, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (str_eqz(text, list[i]))
            return true;
    }
    return false;
}

/* Takes `[v6]` and `[v6]:port` apart. */
static bool network_unwrap(struct star *s, struct str whole, struct str *host) {
    const char *close = memchr(host->p, ']', host->n);
    if (close == NULL)
        return star_fail(s,
                         "invalid rule: network_rule host has an invalid bracketed IPv6 literal");
    struct str rest = {close + 1, (size_t)(host->p + host->n - close) - 1};
    bool port = rest.n > 1 && rest.p[0] == ':' && strspn(rest.p + 1, "0123456789") >= rest.n - 1;
    if (rest.n > 0 && !port)
        return star_fail(s, "invalid rule: network_rule host contains an unsupported suffix: %.*s",
                         (int)whole.n, whole.p);
    *host = (struct str){host->p + 1, (size_t)(close - host->p) - 1};
    return true;
}

static bool network_host(struct star *s, struct str text) {
    struct str host = str_trim(text);
    if (host.n == 0)
        return star_fail(s, "invalid rule: network_rule host cannot be empty");
    if (memmem(host.p, host.n, "://", 3) != NULL || memchr(host.p, '/', host.n) != NULL ||
        memchr(host.p, '?', host.n) != NULL || memchr(host.p, '#', host.n) != NULL)
        return star_fail(s, "invalid rule: network_rule host must be a hostname or IP literal "
                            "(without scheme or path)");
    if (host.p[0] == '[' && !network_unwrap(s, host, &host))
        return false;
    while (host.n > 0 && host.p[host.n - 1] == '.')
        host.n--;
    if (host.n == 0)
        return star_fail(s, "invalid rule: network_rule host cannot be empty");
    if (memchr(host.p, '*', host.n) != NULL)
        return star_fail(s, "invalid rule: network_rule host must be a specific host; wildcards "
                            "are not allowed");
    for (size_t i = 0; i < host.n; i++) {
        if (strchr(" \t\r\n\v\f", host.p[i]) != NULL && host.p[i] != '\0')
            return star_fail(s, "invalid rule: network_rule host cannot contain whitespace");
    }
    return true;
}

static struct star_value *native_network_rule(struct star *s, const struct star_args *a) {
    static const char *const names[] = {"host", "protocol", "decision", "justification"};
    static const char *const protocols[] = {"http",         "https",      "https_connect",
                                            "http-connect", "socks5_tcp", "socks5_udp"};
    static const char *const decisions[] = {"allow", "prompt", "deny", "forbidden"};
    struct str justification;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (a->v[i] != NULL && !star_value_want(s, a->v[i], STAR_STRING, "str", names[i]))
            return NULL;
    }
    struct str protocol = a->v[1]->text, decision = a->v[2]->text;
    if (!network_is_one_of(protocol, protocols, ARRAY_LEN(protocols)))
        return star_fail(s,
                         "invalid rule: network_rule protocol must be one of http, https, "
                         "socks5_tcp, socks5_udp (got %.*s)",
                         (int)protocol.n, protocol.p);
    if (!network_is_one_of(decision, decisions, ARRAY_LEN(decisions)))
        return star_fail(s, "invalid decision: %.*s", (int)decision.n, decision.p);
    if (!natives_justification(s, a->v[3], &justification) || !network_host(s, a->v[0]->text))
        return NULL;
    return star_value_none(s);
}

/* -- host_executable() -- */

static bool host_path(struct star *s, const struct star_value *v, struct str name,
                      struct str *out) {
    if (v->type != STAR_STRING)
        return star_fail(s, "invalid rule: host_executable paths must be strings (got %s)",
                         star_value_type_name(v));
    struct str text = v->text;
    if (text.n == 0 || text.p[0] != '/')
        return star_fail(s, "invalid rule: host_executable paths must be absolute (got %.*s)",
                         (int)text.n, text.p);
    const char *path = execpolicy_normal(&natives_policy(s)->arena, "/", text);
    if (path == NULL)
        return natives_no_memory(s);
    if (!str_eqz(name, strrchr(path, '/') + 1))
        return star_fail(s, "invalid rule: host_executable path `%.*s` must have basename `%.*s`",
                         (int)text.n, text.p, (int)name.n, name.p);
    *out = str_of(path);
    return true;
}

static bool host_name(struct star *s, struct str name) {
    if (name.n == 0)
        return star_fail(s, "invalid rule: host_executable name cannot be empty");
    if (memchr(name.p, '/', name.n) != NULL || str_eqz(name, ".") || str_eqz(name, ".."))
        return star_fail(s,
                         "invalid rule: host_executable name must be a bare executable name "
                         "(got %.*s)",
                         (int)name.n, name.p);
    return true;
}

/* The entry of that name, made if there is none; NULL after a failure. */
static struct execpolicy_host *host_entry(struct star *s, struct str name) {
    struct execpolicy *p = natives_policy(s);
    struct execpolicy_host *host = execpolicy_host_find(p, name);
    if (host != NULL)
        return host;
    struct execpolicy_host *hosts =
        arena_grow(&p->arena, p->hosts, p->host_count, &p->host_cap, 16, sizeof *hosts);
    if (hosts == NULL)
        return natives_no_memory(s);
    p->hosts = hosts;
    host = &p->hosts[p->host_count];
    host->name = natives_keep(s, name);
    if (host->name.p == NULL)
        return NULL;
    p->host_count++;
    return host;
}

static struct star_value *native_host_executable(struct star *s, const struct star_args *a) {
    if (!star_value_want(s, a->v[0], STAR_STRING, "str", "name") ||
        !star_value_want(s, a->v[1], STAR_LIST, "list", "paths") || !host_name(s, a->v[0]->text))
        return NULL;
    const struct star_list *in = &a->v[1]->list;
    struct str *list = arena_calloc(&natives_policy(s)->arena, in->n + 1, sizeof *list);
    if (list == NULL)
        return natives_no_memory(s);
    for (size_t i = 0; i < in->n; i++) {
        if (!host_path(s, in->items[i], a->v[0]->text, &list[i]))
            return NULL;
    }
    struct execpolicy_host *host = host_entry(s, a->v[0]->text);
    if (host == NULL)
        return NULL;
    host->paths = (struct execpolicy_words){list, in->n};
    return star_value_none(s);
}

const struct star_native execpolicy_natives[] = {
    {"prefix_rule", "pattern decision? match? not_match? justification?", native_prefix_rule},
    {"network_rule", "host protocol decision justification?", native_network_rule},
    {"host_executable", "name paths", native_host_executable},
};
_Static_assert(ARRAY_LEN(execpolicy_natives) == EXECPOLICY_NATIVES, "all of them are counted");
