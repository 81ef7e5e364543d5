#include "base/uri_host.h"

#include "base/utf8.h"

#include <arpa/inet.h>
#include <errno.h>

#define URI_HOST_MAX 1024 /* bytes of a host, as given and in canonical form */

static int uri_host_bad_name(struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "invalid URI: invalid international domain name");
}

static int uri_host_bad_ipv4(struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "invalid URI: invalid IPv4 address");
}

/* Appends eight 16-bit groups, the longest run of two or more zeros shortened to "::". */
static int uri_host_put_ipv6(struct buf *out, const uint16_t g[8]) {
    int best = -1, best_len = 1;
    for (int i = 0, run = 0; i < 8; i++) {
        run = g[i] == 0 ? run + 1 : 0;
        if (run > best_len) {
            best_len = run;
            best = i - run + 1;
        }
    }
    int r = buf_putc(out, '[');
    for (int i = 0; r == 0 && i < 8; i++) {
        if (i == best) {
            r = buf_putz(out, i == 0 ? "::" : ":");
            i += best_len - 1;
        } else {
            r = buf_putf(out, i < 7 ? "%x:" : "%x", g[i]);
        }
    }
    return r < 0 ? r : buf_putc(out, ']');
}

/* "[...]" */
static int uri_host_ipv6(struct str in, struct buf *out, struct err *e) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    if (in.n < 2 || in.n - 2 >= sizeof text || in.p[in.n - 1] != ']')
        return err_set(e, ERR_INVALID_PARAMS, "invalid URI: invalid IPv6 address");
    memcpy(text, in.p + 1, in.n - 2);
    text[in.n - 2] = '\0';
    if (strlen(text) != in.n - 2 || inet_pton(AF_INET6, text, &addr) != 1)
        return err_set(e, ERR_INVALID_PARAMS, "invalid URI: invalid IPv6 address");
    uint16_t groups[8];
    for (size_t i = 0; i < 8; i++)
        groups[i] = (uint16_t)(addr.s6_addr[2 * i] << 8 | addr.s6_addr[2 * i + 1]);
    return uri_host_put_ipv6(out, groups);
}

/* One part of an IPv4 address: decimal, 0 octal or 0x hexadecimal. True if it is a number; values
 * above 32 bits give UINT64_MAX. */
static bool uri_host_number(struct str s, uint64_t *out) {
    unsigned base = 10;
    if (s.n >= 2 && s.p[0] == '0') {
        base = s.p[1] == 'x' ? 16 : 8;
        size_t skip = base == 16 ? 2 : 1;
        s.p += skip;
        s.n -= skip;
    } else if (s.n == 0) {
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                            : 16;
        if (d >= base)
            return false;
        v = v > UINT32_MAX ? UINT64_MAX : v * base + d;
    }
    *out = v > UINT32_MAX ? UINT64_MAX : v;
    return true;
}

/* Takes the part before the next dot off *rest. */
static struct str uri_host_part(struct str *rest) {
    const char *dot = rest->n > 0 ? memchr(rest->p, '.', rest->n) : NULL;
    size_t n = dot ? (size_t)(dot - rest->p) : rest->n;
    struct str part = {rest->p, n};
    rest->p += dot ? n + 1 : n;
    rest->n -= dot ? n + 1 : n;
    return part;
}

/* Whether a (lower-cased) domain must be an IPv4 address: its last part is a number. */
static bool uri_host_is_ipv4(struct str s) {
    if (s.n > 0 && s.p[s.n - 1] == '.')
        s.n--;
    const char *dot = s.n > 0 ? memrchr(s.p, '.', s.n) : NULL;
    struct str last = dot ? (struct str){dot + 1, s.n - (size_t)(dot + 1 - s.p)} : s;
    uint64_t v;
    size_t digits = 0;
    while (digits < last.n && last.p[digits] >= '0' && last.p[digits] <= '9')
        digits++;
    return last.n > 0 && (digits == last.n || uri_host_number(last, &v));
}

static int uri_host_ipv4(struct str s, struct buf *out, struct err *e) {
    uint64_t part[4];
    size_t count = 0;
    while (s.n > 0) {
        if (count == 4 || !uri_host_number(uri_host_part(&s), &part[count]))
            return uri_host_bad_ipv4(e);
        count++;
    }
    if (count == 0)
        return uri_host_bad_ipv4(e);
    uint64_t addr = part[count - 1];
    if (addr > UINT32_MAX >> 8 * (count - 1))
        return uri_host_bad_ipv4(e);
    for (size_t i = 0; i + 1 < count; i++) {
        if (part[i] > 255)
            return uri_host_bad_ipv4(e);
        addr |= part[i] << 8 * (3 - i);
    }
    return buf_putf(out, "%u.%u.%u.%u", (unsigned)(addr >> 24 & 255), (unsigned)(addr >> 16 & 255),
                    (unsigned)(addr >> 8 & 255), (unsigned)(addr & 255));
}

/* The next code point of valid UTF-8. */
static uint32_t uri_host_next(struct str *s) {
    unsigned char c = (unsigned char)s->p[0];
    size_t more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    uint32_t v = more == 0 ? c : c & (0x3FU >> more);
    for (size_t i = 1; i <= more; i++)
        v = v << 6 | ((unsigned char)s->p[i] & 0x3FU);
    s->p += more + 1;
    s->n -= more + 1;
    bool upper = v >= 0xC0 && v <= 0xDE && v != 0xD7;
    return upper ? v + 0x20 : v;
}

/* Bias adaptation of RFC 3492, section 6.1. */
static uint32_t uri_host_adapt(uint32_t delta, uint32_t points, bool first) {
    delta = first ? delta / 700 : delta / 2;
    delta += delta / points;
    uint32_t k = 0;
    for (; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

/* One delta as a variable-length integer (RFC 3492, section 6.3). */
static int uri_host_put_delta(struct buf *out, uint32_t q, uint32_t bias) {
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    int r = 0;
    for (uint32_t k = 36; r == 0; k += 36) {
        uint32_t t = k <= bias + 1 ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < t)
            return buf_putc(out, digits[q]);
        r = buf_putc(out, digits[t + (q - t) % (36 - t)]);
        q = (q - t) / (36 - t);
    }
    return r;
}

/* "xn--" and the Punycode of a label. */
static int uri_host_punycode(struct str label, struct buf *out) {
    uint32_t cp[URI_HOST_MAX];
    uint32_t n = 0, basic = 0;
    int r = buf_putz(out, "xn--");
    while (label.n > 0) {
        cp[n] = uri_host_next(&label);
        if (cp[n] < 0x80 && r == 0) {
            r = buf_putc(out, (char)cp[n]);
            basic++;
        }
        n++;
    }
    if (r == 0 && basic > 0)
        r = buf_putc(out, '-');
    uint32_t low = 0x80, delta = 0, bias = 72;
    for (uint32_t done = basic; r == 0 && done < n;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++)
            next = cp[i] >= low && cp[i] < next ? cp[i] : next;
        delta += (next - low) * (done + 1);
        low = next;
        for (uint32_t i = 0; r == 0 && i < n; i++) {
            delta += cp[i] < low;
            if (cp[i] != low)
                continue;
            r = uri_host_put_delta(out, delta, bias);
            bias = uri_host_adapt(delta, done + 1, done == basic);
            delta = 0;
            done++;
        }
        delta++;
        low++;
    }
    return r;
}

static int uri_host_put_domain(struct str s, struct buf *out) {
    bool dot = s.n > 0 && s.p[s.n - 1] == '.';
    int r = 0;
    for (bool first = true; r == 0 && s.n > 0; first = false) {
        struct str label = uri_host_part(&s);
        bool ascii = true;
        for (size_t i = 0; i < label.n; i++)
            ascii &= (unsigned char)label.p[i] < 0x80;
        if (!first)
            r = buf_putc(out, '.');
        if (r == 0)
            r = ascii ? buf_put(out, label.p, label.n) : uri_host_punycode(label, out);
    }
    return r == 0 && dot ? buf_putc(out, '.') : r;
}

static int uri_host_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* Decodes escapes and lower-cases ASCII into dst (room for in.n); the length. */
static size_t uri_host_decode(char *dst, struct str in) {
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        if (c == '%' && in.n - i > 2 && uri_host_hex(in.p[i + 1]) >= 0 &&
            uri_host_hex(in.p[i + 2]) >= 0) {
            c = (char)(uri_host_hex(in.p[i + 1]) * 16 + uri_host_hex(in.p[i + 2]));
            i += 2;
        }
        dst[n++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return n;
}

/* Whether every ASCII byte may stand in a domain. */
static bool uri_host_chars_ok(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == 0x7F || strchr("#/:<>?@[\\]^|%", c) != NULL)
            return false;
    }
    return true;
}

int uri_host(struct str in, struct buf *out, struct err *e) {
    if (in.n > URI_HOST_MAX)
        return uri_host_bad_name(e);
    if (in.n > 0 && in.p[0] == '[')
        return uri_host_ipv6(in, out, e);
    char text[URI_HOST_MAX] = "";
    struct str s = {text, uri_host_decode(text, in)};
    if (!utf8_valid(s.p, s.n) || !uri_host_chars_ok(s))
        return uri_host_bad_name(e);
    if (uri_host_is_ipv4(s))
        return uri_host_ipv4(s, out, e);
    size_t before = out->len;
    int r = uri_host_put_domain(s, out);
    /* Punycode is longer: a canonical host must be one that we would take. */
    return r == 0 && out->len - before > URI_HOST_MAX ? uri_host_bad_name(e) : r;
}
