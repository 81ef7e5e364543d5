#include "proxy/proxy_rules.h"

#include "base/uri_host.h"

#include <errno.h>
#include <stdio.h>

#define RULES_CONFIG "invalid network proxy config: "

static int rules_refuse(struct err *e, const char *why, struct str pattern) {
    char text[128];
    snprintf(text, sizeof text, RULES_CONFIG "%s", why);
    return err_about(e, ERR_INVALID_PARAMS, text, pattern, "");
}

/* Without the port of HOST:PORT and the brackets of an IPv6 address. */
static struct str rules_bare(struct str s) {
    struct str t = str_trim(s);
    const char *end = t.n > 0 && t.p[0] == '[' ? memchr(t.p, ']', t.n) : NULL;
    if (end != NULL)
        return (struct str){t.p + 1, (size_t)(end - t.p) - 1};
    const char *colon = t.n > 0 ? memchr(t.p, ':', t.n) : NULL;
    bool one = colon != NULL && memchr(colon + 1, ':', t.n - (size_t)(colon - t.p) - 1) == NULL;
    bool digits = one && colon + 1 < t.p + t.n;
    for (const char *p = colon; digits && ++p < t.p + t.n;)
        digits = *p >= '0' && *p <= '9';
    if (digits)
        t.n = (size_t)(colon - t.p);
    while (t.n > 0 && t.p[t.n - 1] == '.')
        t.n--;
    return t;
}

static bool rules_has_wildcard(struct str s) {
    return memchr(s.p, '*', s.n) != NULL || memchr(s.p, '?', s.n) != NULL;
}

/* 0, or -EINVAL with e set. */
static int rules_check(struct str given, struct str bare, enum proxy_list list, struct err *e) {
    size_t stars = 0;
    while (stars < bare.n && bare.p[stars] == '*')
        stars++;
    bool every = stars == bare.n && bare.n > 0; /* "*." must not become "*" */
    if (bare.n == 0 || (every && given.n > stars && given.p[0] != '['))
        return err_set(e, ERR_INVALID_PARAMS, RULES_CONFIG "domain pattern is empty");
    if (bare.n > PROXY_RULES_PATTERN_MAX)
        return err_set(e, ERR_INVALID_PARAMS,
                       RULES_CONFIG "a domain pattern has more than %d bytes",
                       PROXY_RULES_PATTERN_MAX);
    bool v6 = memchr(bare.p, ':', bare.n) != NULL;
    struct proxy_name host;
    if (given.p != bare.p && !v6 && !str_eqz(bare, "*") && given.p[0] == '[')
        return rules_refuse(e, "brackets are only supported for IPv6 literals or [*]: ", given);
    for (size_t i = 0; i < bare.n; i++) {
        unsigned char c = (unsigned char)bare.p[i];
        if (c <= ' ' || c == 0x7F || strchr("/\\{}[]@%#!\"'`<>|^,;()&=+$", c) != NULL)
            return rules_refuse(e, "unsupported domain pattern syntax: ", given);
    }
    if (v6 && proxy_name_parse(bare, &host) < 0)
        return rules_refuse(e, "unsupported domain pattern syntax: ", given);
    if (memmem(bare.p, bare.n, "***", 3) != NULL)
        return rules_refuse(e, "unsupported repeated wildcard: ", given);
    if (list == PROXY_DENY && every)
        return err_about(e, ERR_INVALID_PARAMS,
                         RULES_CONFIG "invalid value for network.denied_domains: ",
                         given.p[0] == '[' ? given : STR_LIT("*"),
                         " (allowed exact hosts or scoped wildcards like *.example.com or "
                         "**.example.com)");
    return 0;
}

/* Punycode for labels beyond ASCII. 0 or -errno with e set. */
static int rules_ascii(struct str s, struct buf *b, struct err *e) {
    size_t ascii = 0, skip = 0;
    while (ascii < s.n && (unsigned char)s.p[ascii] < 0x80)
        ascii++;
    if (ascii == s.n)
        return buf_put(b, s.p, s.n);
    while (skip < s.n && strchr("*?.", s.p[skip]) != NULL)
        skip++;
    struct str rest = {s.p + skip, s.n - skip};
    int r = rules_has_wildcard(rest) ? -EINVAL : buf_put(b, s.p, skip);
    _cleanup_err_ struct err why = ERR_INIT;
    if (r == 0)
        r = uri_host(rest, b, &why);
    return r == -EINVAL ? rules_refuse(e, "unsupported domain pattern syntax: ", s) : r;
}

int proxy_rules_add(struct proxy_rules *rules, enum proxy_list list, struct str pattern,
                    struct arena *a, struct err *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(4 * PROXY_RULES_PATTERN_MAX);
    struct str given = str_trim(pattern), bare = rules_bare(pattern);
    int r = rules_check(given, bare, list, e);
    if (r == 0 && rules->count == PROXY_RULES_MAX)
        r = err_set(e, ERR_INVALID_PARAMS, RULES_CONFIG "more than %d domain patterns",
                    PROXY_RULES_MAX);
    if (r == 0 && rules_has_wildcard(bare) && bare.n > PROXY_RULES_WILD_MAX - rules->wild)
        r = err_set(e, ERR_INVALID_PARAMS, RULES_CONFIG "more than %d bytes of wildcard patterns",
                    PROXY_RULES_WILD_MAX);
    if (r == 0)
        r = rules_ascii(bare, &b, e);
    if (r < 0)
        return r == -EINVAL ? r : err_os(e, ERR_INTERNAL, ENOMEM);
    for (size_t i = 0; i < b.len; i++)
        b.p[i] = (char)(b.p[i] >= 'A' && b.p[i] <= 'Z' ? b.p[i] + 32 : b.p[i]);
    struct proxy_pattern *p = arena_alloc(a, sizeof *p);
    char *text = arena_strdup(a, buf_str(&b));
    if (p == NULL || text == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    p->exact = !rules_has_wildcard(buf_str(&b));
    if (p->exact && proxy_name_parse(buf_str(&b), &p->host) < 0)
        return rules_refuse(e, "unsupported domain pattern syntax: ", given);
    p->apex = strncmp(text, "**.", 3) == 0;
    p->text = p->apex ? text + 1 : text;
    p->next = rules->list[list];
    rules->list[list] = p;
    rules->count++;
    rules->wild += p->exact ? 0 : bare.n;
    return 0;
}

/* Matches a glob; the last `*` is the only place to go back to, so the time is bounded by the
 * product of the lengths. */
static bool rules_glob(const char *g, const char *s) {
    const char *star = NULL, *from = NULL;
    while (*s != '\0') {
        if (*g == '*') {
            star = g++;
            from = s;
        } else if (*g == '?' || *g == *s) {
            g++;
            s++;
        } else if (star != NULL) {
            g = star + 1;
            s = ++from;
        } else {
            return false;
        }
    }
    while (*g == '*')
        g++;
    return *g == '\0';
}

static bool rules_same(const struct proxy_name *a, const struct proxy_name *b) {
    return a->is_address == b->is_address && strcmp(a->text, b->text) == 0;
}

static bool rules_pattern_matches(const struct proxy_pattern *p, const struct proxy_name *host) {
    if (p->exact)
        return rules_same(&p->host, host);
    if (p->apex && rules_glob(p->text + 2, host->text))
        return true;
    /* A leading `*.` stands for at least one label. */
    return rules_glob(p->text, host->text) && !(p->text[0] == '*' && host->text[0] == '.');
}

bool proxy_rules_match(const struct proxy_rules *r, enum proxy_list list,
                       const struct proxy_name *host) {
    for (const struct proxy_pattern *p = r->list[list]; p != NULL; p = p->next) {
        if (rules_pattern_matches(p, host))
            return true;
    }
    return false;
}

bool proxy_rules_names(const struct proxy_rules *r, const struct proxy_name *host) {
    for (const struct proxy_pattern *p = r->list[PROXY_ALLOW]; p != NULL; p = p->next) {
        if (p->exact && rules_same(&p->host, host))
            return true;
    }
    return false;
}
