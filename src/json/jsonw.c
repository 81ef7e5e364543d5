#include "json/jsonw.h"

#include "json/json_scan.h"

/* The character after the backslash; 'u' stands for the long form. */
static char jsonw_short(char c) {
    switch (c) {
    case '"':
    case '\\': return c;
    case '\b': return 'b';
    case '\t': return 't';
    case '\n': return 'n';
    case '\f': return 'f';
    case '\r': return 'r';
    default: return 'u';
    }
}

static size_t jsonw_escape(char *dst, char c) {
    static const char hex[] = "0123456789abcdef";
    dst[0] = '\\';
    dst[1] = jsonw_short(c);
    if (dst[1] != 'u')
        return 2;
    dst[2] = dst[3] = '0';
    dst[4] = hex[(unsigned char)c >> 4];
    dst[5] = hex[c & 15];
    return 6;
}

size_t jsonw_str_len(struct str s) {
    size_t len = s.n + 2;
    for (size_t i = 0; (i += json_scan(s.p + i, s.n - i)) < s.n; i++)
        len += jsonw_short(s.p[i]) == 'u' ? 5 : 1;
    return len;
}

size_t jsonw_str_to(char *dst, struct str s) {
    char *out = dst;
    *out++ = '"';
    for (size_t i = 0; i < s.n;) {
        size_t run = json_scan_copy(out, s.p + i, s.n - i);
        out += run;
        i += run;
        if (i < s.n)
            out += jsonw_escape(out, s.p[i++]);
    }
    *out++ = '"';
    return (size_t)(out - dst);
}

int jsonw_str(struct buf *b, struct str s) {
    int r = buf_reserve(b, jsonw_str_len(s));
    if (r < 0)
        return r;
    b->len += jsonw_str_to(b->p + b->len, s);
    return 0;
}
