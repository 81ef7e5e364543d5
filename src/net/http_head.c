#include "net/http_head.h"

#include "base/util.h"

#include <errno.h>

int http_head_fail(struct http_head *h, const char *why) {
    h->why = why;
    return -EPROTO;
}

/* "HTTP/1.1 NNN" with a reason that does not matter. */
static int http_head_status(struct str line, struct http_head *h) {
    static const char version[] = "HTTP/1.1 ";
    const size_t at = sizeof version - 1;
    if (line.n < at + 3 || memcmp(line.p, version, at) != 0)
        return http_head_fail(h, "the answer is not HTTP/1.1");
    int status = 0;
    for (size_t i = at; i < at + 3; i++) {
        if (line.p[i] < '0' || line.p[i] > '9')
            return http_head_fail(h, "the status line is malformed");
        status = status * 10 + (line.p[i] - '0');
    }
    if (status < 100 || (line.n > at + 3 && line.p[at + 3] != ' '))
        return http_head_fail(h, "the status line is malformed");
    h->status = status;
    return 0;
}

static bool http_head_is_token(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int http_head_field(struct str line, struct http_head *h) {
    size_t n = 0;
    while (n < line.n && http_head_is_token(line.p[n]))
        n++;
    if (n == 0 || n == line.n || line.p[n] != ':')
        return http_head_fail(h, "a header is malformed");
    for (size_t i = n; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return http_head_fail(h, "a header has a control character");
    }
    struct str value = str_trim((struct str){line.p + n + 1, line.n - n - 1});
    return h->field == NULL ? 0 : h->field(h, (struct str){line.p, n}, value);
}

/* Cuts the next line, without its CRLF, off *rest. 1, 0: incomplete, or -EPROTO. */
static int http_head_cut(struct str *rest, struct str *line, struct http_head *h) {
    const char *lf = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    if (lf == NULL)
        return 0;
    size_t n = (size_t)(lf - rest->p);
    if (n == 0 || lf[-1] != '\r')
        return http_head_fail(h, "a line does not end with CRLF");
    *line = (struct str){rest->p, n - 1};
    str_take(rest, n + 1);
    return 1;
}

int http_head_read(const char *data, size_t n, struct http_head *h) {
    h->status = 0;
    h->why = NULL;
    struct str rest = {data, MIN(n, (size_t)HTTP_HEAD_MAX)}, line = STR_LIT("");
    for (size_t count = 0;; count++) {
        int r = http_head_cut(&rest, &line, h);
        if (r == 0)
            return n < HTTP_HEAD_MAX ? 0 : http_head_fail(h, "the head is too long");
        if (r > 0 && count > 0 && line.n == 0)
            return (int)(rest.p - data);
        if (r > 0 && count > HTTP_HEAD_FIELDS_MAX)
            r = http_head_fail(h, "the head has too many headers");
        if (r > 0)
            r = count == 0 ? http_head_status(line, h) : http_head_field(line, h);
        if (r < 0)
            return r;
    }
}

bool http_head_range(struct str value, uint64_t range[3]) {
    static const char *const before[] = {"bytes ", "-", "/"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(before[i]), digits = 0;
        if (value.n < n || memcmp(value.p, before[i], n) != 0)
            return false;
        str_take(&value, n);
        range[i] = 0;
        for (; value.n > 0 && *value.p >= '0' && *value.p <= '9' && digits < 18; digits++)
            range[i] = range[i] * 10 + (uint64_t)(*str_take(&value, 1) - '0');
        if (digits == 0)
            return false;
    }
    return value.n == 0;
}
