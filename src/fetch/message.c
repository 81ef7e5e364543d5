#include "fetch/message.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>

/* -- making -- */

/* A copy with a NUL behind it. */
static struct str message_copy(struct message *m, struct str s) {
    char *p = arena_strdup(&m->arena, s);
    return (struct str){p, p != NULL ? s.n : 0};
}

int message_init(struct message *m, const struct http_wire_request *q) {
    _cleanup_err_ struct err e = ERR_INIT;
    *m = (struct message){.arena = ARENA_INIT(MESSAGE_ARENA_MAX),
                          .url = HTTP_URL_INIT,
                          .follow = q->follow,
                          .body = BUF_INIT(MESSAGE_BODY_MAX)};
    if (q->body > MESSAGE_BODY_MAX || !utf8_valid(q->url.p, q->url.n))
        return -EINVAL;
    m->body_want = (size_t)q->body;
    m->room = q->field_count + MESSAGE_FIELDS_MORE;
    m->method = arena_strdup(&m->arena, q->method);
    m->fields = arena_calloc(&m->arena, m->room, sizeof *m->fields);
    if (m->method == NULL || m->fields == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < q->field_count; i++) {
        struct http_field *f = &m->fields[m->count++];
        f->name = message_copy(m, q->fields[i].name);
        f->value = message_copy(m, q->fields[i].value);
        if (f->name.p == NULL || f->value.p == NULL)
            return -ENOMEM;
    }
    return http_url_parse(&m->url, q->url, NULL, &e);
}

void message_fini(struct message *m) {
    arena_fini(&m->arena);
    http_url_fini(&m->url);
    buf_fini(&m->body);
}

int message_add_body(struct message *m, struct str bytes) {
    if (bytes.n > m->body_want - m->body.len)
        return -EPROTO;
    return buf_put(&m->body, bytes.p, bytes.n);
}

/* -- lines -- */

/* A list being made. */
struct message_list {
    struct curl_slist *first;
    struct buf line;
    bool failed;
};

/* Appends "NAME: VALUE". curl drops a field without a value, unless it is written "NAME;". */
static void message_line(struct message_list *l, struct str name, struct str value) {
    l->line.len = 0;
    bool empty = str_trim(value).n == 0;
    int r = buf_put(&l->line, name.p, name.n);
    if (r == 0)
        r = buf_putz(&l->line, empty ? ";" : ": ");
    if (r == 0 && !empty)
        r = buf_put(&l->line, value.p, value.n);
    if (r == 0)
        r = buf_putc(&l->line, '\0');
    struct curl_slist *longer = r == 0 ? curl_slist_append(l->first, l->line.p) : NULL;
    l->failed |= longer == NULL;
    l->first = longer != NULL ? longer : l->first;
}

/* Keeps curl from adding a field of its own. */
static void message_no_line(struct message_list *l, const char *line) {
    struct curl_slist *longer = curl_slist_append(l->first, line);
    l->failed |= longer == NULL;
    l->first = longer != NULL ? longer : l->first;
}

static bool message_has(const struct message *m, const char *name) {
    return http_fields_find(m->fields, m->count, name) != NULL;
}

struct curl_slist *message_lines(const struct message *m) {
    struct message_list l = {.line = BUF_INIT(HTTP_WIRE_PAYLOAD_MAX)};
    char length[24];
    /* First, so that curl finds it before ours: it would write ours at the top, as "Host". */
    message_no_line(&l, "Host:");
    for (size_t i = 0; i < m->count; i++) {
        bool chunked = str_eqz(m->fields[i].name, "transfer-encoding");
        if (!chunked || m->body.len > 0)
            message_line(&l, m->fields[i].name, m->fields[i].value);
    }
    if (!message_has(m, "accept"))
        message_line(&l, STR_LIT("accept"), STR_LIT("*/*"));
    if (!message_has(m, "host"))
        message_line(&l, STR_LIT("host"), http_url_authority(&m->url));
    int n = snprintf(length, sizeof length, "%zu", m->body.len);
    if (m->body.len > 0 && !message_has(m, "content-length") &&
        !message_has(m, "transfer-encoding"))
        message_line(&l, STR_LIT("content-length"), (struct str){length, (size_t)n});
    if (!message_has(m, "content-type"))
        message_no_line(&l, "Content-Type:");
    if (!message_has(m, "expect"))
        message_no_line(&l, "Expect:");
    if (!message_has(m, "proxy-connection"))
        message_no_line(&l, "Proxy-Connection:");
    buf_fini(&l.line);
    if (!l.failed)
        return l.first;
    curl_slist_free_all(l.first);
    return NULL;
}

/* -- redirects -- */

static void message_drop(struct message *m, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        m->count = http_fields_drop(m->fields, m->count, names[i]);
}

static void message_drop_body(struct message *m) {
    static const char *const names[] = {"content-type", "content-length", "content-encoding",
                                        "transfer-encoding"};
    message_drop(m, names, ARRAY_LEN(names));
    m->body.len = m->body_want = 0; /* its memory stays: curl may be sending from it */
}

/* Sets a field, in the place of an old one. */
static int message_set(struct message *m, const char *name, struct str value) {
    struct http_field *f = (struct http_field *)http_fields_find(m->fields, m->count, name);
    if (f == NULL && m->count == m->room)
        return -ENOMEM;
    struct str copy = message_copy(m, value);
    if (copy.p == NULL)
        return -ENOMEM;
    if (f == NULL)
        f = &m->fields[m->count++];
    *f = (struct http_field){str_of(name), copy};
    return 0;
}

/* Where the request came from: the whole URL to the same origin, else only its origin. */
static int message_refer(struct message *m, const struct http_url *to) {
    _cleanup_buf_ struct buf from = BUF_INIT(8 * HTTP_URL_MAX);
    m->count = http_fields_drop(m->fields, m->count, "referer");
    if (m->url.https && !to->https)
        return 0;
    struct str origin = http_url_origin(&m->url);
    bool same = http_url_same_origin(&m->url, to);
    int r =
        same ? buf_put(&from, m->url.text.p, m->url.text.len) : buf_put(&from, origin.p, origin.n);
    if (r == 0 && !same)
        r = buf_putc(&from, '/');
    return r < 0 ? r : message_set(m, "referer", buf_str(&from));
}

/* `host` is the caller's word for the first origin only. User info of the new URL is dropped. */
static int message_move(struct message *m, unsigned status, struct http_url *to) {
    static const char *const secrets[] = {"authorization",       "cookie", "cookie2",
                                          "proxy-authorization", "host",   "www-authenticate"};
    bool head = strcmp(m->method, "HEAD") == 0;
    bool posted = strcmp(m->method, "POST") == 0 && (status == 301 || status == 302);
    if (posted || status == 303) {
        m->method = head ? "HEAD" : "GET";
        message_drop_body(m);
    }
    int r = message_refer(m, to);
    if (!http_url_same_origin(&m->url, to))
        message_drop(m, secrets, ARRAY_LEN(secrets));
    struct http_url old = m->url;
    m->url = *to;
    *to = old;
    m->hops++;
    return r;
}

enum message_redirect message_redirect(struct message *m, unsigned status, struct str location,
                                       struct err *e) {
    _cleanup_http_url_ struct http_url to = HTTP_URL_INIT;
    _cleanup_err_ struct err why = ERR_INIT;
    bool moved = (status >= 301 && status <= 303) || status == 307 || status == 308;
    if (!m->follow || !moved || location.p == NULL || !utf8_valid(location.p, location.n))
        return MESSAGE_STAYS;
    int r = http_url_parse(&to, location, &m->url, &why);
    if (r == -EINVAL)
        return MESSAGE_STAYS;
    if (r == -EPROTONOSUPPORT) {
        err_about(e, ERR_INTERNAL, "redirect target uses unsupported URL scheme: ", err_str(&why),
                  "");
        return MESSAGE_REFUSES;
    }
    if (m->hops == MESSAGE_HOPS_MAX) {
        err_set(e, ERR_INTERNAL, "too many redirects");
        return MESSAGE_REFUSES;
    }
    if (r == 0)
        r = message_move(m, status, &to);
    if (r == 0)
        return MESSAGE_MOVES;
    err_os(e, ERR_INTERNAL, ENOMEM);
    return MESSAGE_REFUSES;
}
