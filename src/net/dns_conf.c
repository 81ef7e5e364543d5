#include "net/dns_conf.h"

#define DNS_CONF_PORT 53

static bool dns_conf_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the next line off *text, without its end. */
static struct str dns_conf_line(struct str *text) {
    const char *end = memchr(text->p, '\n', text->n);
    struct str line = {text->p, end ? (size_t)(end - text->p) : text->n};
    (void)str_take(text, end ? line.n + 1 : line.n);
    return line;
}

/* Takes the next word off *line; empty at its end. */
static struct str dns_conf_word(struct str *line) {
    while (line->n > 0 && dns_conf_blank(line->p[0]))
        (void)str_take(line, 1);
    size_t n = 0;
    while (n < line->n && !dns_conf_blank(line->p[n]))
        n++;
    struct str word = {line->p, n};
    (void)str_take(line, n);
    return word;
}

/* -- resolv.conf -- */

/* Reads "NAME:NUMBER" into *v, within 'min' and 'max'. False if it is another option. */
static bool dns_conf_number(struct str word, const char *name, unsigned min, unsigned max,
                            unsigned *v) {
    size_t n = strlen(name);
    if (word.n <= n || memcmp(word.p, name, n) != 0)
        return false;
    unsigned number = 0;
    for (size_t i = n; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9')
            return true;
        number = MIN(number * 10 + (unsigned)(word.p[i] - '0'), 10000U);
    }
    *v = MIN(MAX(number, min), max);
    return true;
}

static void dns_conf_options(struct str line, struct dns_conf *c) {
    for (struct str word; (word = dns_conf_word(&line)).n > 0;) {
        if (dns_conf_number(word, "ndots:", 0, DNS_CONF_NDOTS_MAX, &c->ndots) ||
            dns_conf_number(word, "timeout:", 1, DNS_CONF_TIMEOUT_MAX, &c->timeout) ||
            dns_conf_number(word, "attempts:", 1, DNS_CONF_ATTEMPTS_MAX, &c->attempts))
            continue;
        c->rotate |= str_eqz(word, "rotate");
        c->use_vc |= str_eqz(word, "use-vc");
        /* Each query has its own socket anyway, so both spellings mean the same. */
        c->single_request |=
            str_eqz(word, "single-request") || str_eqz(word, "single-request-reopen");
    }
}

static void dns_conf_add_search(struct str word, struct dns_conf *c) {
    struct dns_wire_name name;
    if (c->searches == DNS_CONF_SEARCHES || dns_wire_name_parse(word, &name) < 0)
        return;
    size_t n = word.p[word.n - 1] == '.' ? word.n - 1 : word.n;
    char *p = mempcpy(c->search[c->searches++], word.p, n);
    *p = '\0';
}

/* The last line of "search" and "domain" counts; `max` is 1 for the latter. */
static void dns_conf_searches(struct str line, size_t max, struct dns_conf *c) {
    c->searches = 0;
    struct str word;
    for (size_t i = 0; i < max && (word = dns_conf_word(&line)).n > 0; i++)
        dns_conf_add_search(word, c);
}

void dns_conf_parse(struct str text, struct str hostname, struct dns_conf *c) {
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    *c = (struct dns_conf){.ndots = 1, .timeout = 5, .attempts = 2};
    bool searches = false;
    while (text.n > 0) {
        struct str line = dns_conf_line(&text);
        if (line.n == 0 || dns_conf_blank(line.p[0])) /* libc wants the keyword at the beginning */
            continue;
        struct str key = dns_conf_word(&line);
        if (str_eqz(key, "nameserver") && c->servers < DNS_CONF_SERVERS) {
            struct str word = dns_conf_word(&line);
            c->servers += sock_addr_parse(word, DNS_CONF_PORT, &c->server[c->servers]) == 0;
        } else if (str_eqz(key, "search") || str_eqz(key, "domain")) {
            searches = true;
            dns_conf_searches(line, str_eqz(key, "domain") ? 1 : SIZE_MAX, c);
        } else if (str_eqz(key, "options")) {
            dns_conf_options(line, c);
        }
    }
    if (c->servers == 0)
        c->server[c->servers++] = sock_addr_v4(loopback, DNS_CONF_PORT);
    const char *dot = hostname.n > 0 ? memchr(hostname.p, '.', hostname.n) : NULL;
    if (!searches && dot != NULL)
        dns_conf_add_search((struct str){dot + 1, hostname.n - (size_t)(dot + 1 - hostname.p)}, c);
}

/* -- hosts -- */

static bool dns_conf_ieq(struct str a, struct str b) {
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

/* Whether one of the words is the name. */
static bool dns_conf_has_name(struct str line, struct str name) {
    for (struct str word; (word = dns_conf_word(&line)).n > 0;) {
        if (dns_conf_ieq(word, name))
            return true;
    }
    return false;
}

static bool dns_conf_has_addr(const struct sock_addr *list, size_t n, const struct sock_addr *a) {
    for (size_t i = 0; i < n; i++) {
        if (sock_addr_eq(&list[i], a))
            return true;
    }
    return false;
}

size_t dns_conf_hosts(struct str text, struct str name, uint16_t port, struct sock_addr *dst,
                      size_t max) {
    size_t n = 0;
    if (name.n > 0 && name.p[name.n - 1] == '.')
        name.n--;
    while (text.n > 0 && name.n > 0 && n < max) {
        struct str line = dns_conf_line(&text);
        const char *comment = line.n > 0 ? memchr(line.p, '#', line.n) : NULL;
        if (comment != NULL)
            line.n = (size_t)(comment - line.p);
        struct str addr = dns_conf_word(&line);
        struct sock_addr a;
        if (dns_conf_has_name(line, name) && sock_addr_parse(addr, port, &a) == 0 &&
            !dns_conf_has_addr(dst, n, &a))
            dst[n++] = a;
    }
    return n;
}

bool dns_conf_is_localhost(struct str name) {
    static const char localhost[] = "localhost";
    size_t n = sizeof localhost - 1;
    if (name.n > 0 && name.p[name.n - 1] == '.')
        name.n--;
    if (name.n < n || strncasecmp(name.p + name.n - n, localhost, n) != 0)
        return false;
    return name.n == n || name.p[name.n - n - 1] == '.';
}
