#include "mcp/mcp_output.h"

#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>

#define OUTPUT_NEAR 4 /* a line end within this part of a half counts as near */

void mcp_output_init(struct mcp_output *o, size_t limit, bool first_only) {
    size_t head = first_only ? limit : limit - limit / 2;
    *o = (struct mcp_output){
        .head = BUF_INIT(MAX(head, (size_t)1)), .head_max = head, .tail_max = limit - head};
}

void mcp_output_fini(struct mcp_output *o) {
    buf_fini(&o->head);
    free(steal_ptr(&o->tail));
    o->tail_cap = o->tail_len = o->tail_at = 0;
}

void mcp_output_reset(struct mcp_output *o) {
    mcp_output_fini(o);
    o->total = 0;
    o->failed = false;
}

/* Makes the ring larger while it has not gone round. */
static void output_grow(struct mcp_output *o, size_t more) {
    size_t want = MIN(MAX(o->tail_len + more, 2 * o->tail_cap), o->tail_max);
    if (o->tail_len + more <= o->tail_cap || o->tail_cap == o->tail_max)
        return;
    char *p = realloc(o->tail, want);
    if (p == NULL) { /* the ring stays as small as it is */
        o->failed = true;
        o->tail_max = o->tail_cap;
        return;
    }
    o->tail = p;
    o->tail_cap = want;
}

static void output_add_tail(struct mcp_output *o, const char *p, size_t n) {
    output_grow(o, MIN(n, o->tail_max));
    if (n > o->tail_max) {
        p += n - o->tail_max;
        n = o->tail_max;
    }
    for (; n > 0 && o->tail_cap > 0;) {
        size_t at = o->tail_len < o->tail_cap ? o->tail_len : o->tail_at;
        size_t part = MIN(n, o->tail_cap - at);
        memcpy(o->tail + at, p, part);
        if (o->tail_len < o->tail_cap)
            o->tail_len += part;
        else
            o->tail_at = (at + part) % o->tail_cap;
        p += part;
        n -= part;
    }
}

void mcp_output_add(struct mcp_output *o, const char *p, size_t n) {
    o->total += n;
    size_t first = MIN(n, o->head_max - o->head.len);
    if (first > 0 && buf_put(&o->head, p, first) < 0) {
        o->failed = true;
        return;
    }
    if (n > first)
        output_add_tail(o, p + first, n - first);
}

/* The tail in order. */
static int output_tail(const struct mcp_output *o, struct buf *b) {
    if (o->tail_len < o->tail_cap || o->tail_at == 0)
        return buf_put(b, o->tail, o->tail_len);
    int r = buf_put(b, o->tail + o->tail_at, o->tail_cap - o->tail_at);
    return r < 0 ? r : buf_put(b, o->tail, o->tail_at);
}

int mcp_output_mend(struct buf *b, struct str s) {
    int r = 0;
    while (r == 0 && s.n > 0) {
        size_t bad;
        size_t good = utf8_fault(s.p, s.n, &bad);
        r = buf_put(b, s.p, good);
        str_take(&s, good);
        if (r == 0 && s.n > 0) {
            r = buf_putz(b, "\xEF\xBF\xBD");
            str_take(&s, bad == 0 ? s.n : bad);
        }
    }
    return r;
}

/* The first half up to a line end, if one is near its end; never within a character. */
static struct str output_cut_head(struct str s) {
    const char *nl = s.n == 0 ? NULL : memrchr(s.p, '\n', s.n);
    size_t n = nl == NULL ? 0 : (size_t)(nl + 1 - s.p);
    if (n == 0 || s.n - n > s.n / OUTPUT_NEAR) {
        n = s.n;
        for (int i = 0; i < 3 && n > 0 && ((unsigned char)s.p[n - 1] & 0xC0) == 0x80; i++)
            n--;
        if (n > 0 && ((unsigned char)s.p[n - 1] & 0xC0) == 0xC0) {
            size_t bad;
            struct str last = {s.p + n - 1, s.n - n + 1};
            n = utf8_fault(last.p, last.n, &bad) == last.n ? s.n : n - 1;
        } else {
            n = s.n;
        }
    }
    return (struct str){s.p, n};
}

static struct str output_cut_tail(struct str s) {
    const char *nl = s.n == 0 ? NULL : memchr(s.p, '\n', s.n / OUTPUT_NEAR);
    if (nl != NULL)
        str_take(&s, (size_t)(nl + 1 - s.p));
    else
        for (int i = 0; i < 3 && s.n > 0 && ((unsigned char)s.p[0] & 0xC0) == 0x80; i++)
            str_take(&s, 1);
    return s;
}

int mcp_output_text(const struct mcp_output *o, struct buf *b, uint64_t *omitted) {
    _cleanup_buf_ struct buf whole = BUF_INIT(MCP_OUTPUT_MAX + 4096);
    struct str head = buf_str(&o->head);
    *omitted = 0;
    int r = 0;
    if (o->total <= o->head.len + o->tail_len) { /* a character may lie on both sides */
        r = buf_put(&whole, head.p, head.n);
        if (r == 0)
            r = output_tail(o, &whole);
        return r < 0 ? r : mcp_output_mend(b, buf_str(&whole));
    }
    r = output_tail(o, &whole);
    if (r < 0)
        return r;
    struct str tail = output_cut_tail(buf_str(&whole));
    head = output_cut_head(head);
    *omitted = o->total - head.n - tail.n;
    r = mcp_output_mend(b, head);
    if (r == 0)
        r = buf_putf(b, "%s[\xE2\x80\xA6 %" PRIu64 " bytes omitted \xE2\x80\xA6]\n",
                     head.n > 0 && head.p[head.n - 1] != '\n' ? "\n" : "", *omitted);
    return r < 0 ? r : mcp_output_mend(b, tail);
}

/* The byte `i` from the end, counted from 0; -1: not kept. */
static int output_from_end(const struct mcp_output *o, size_t i) {
    if (i < o->tail_len)
        return (unsigned char)o->tail[(o->tail_at + o->tail_len - 1 - i) % o->tail_cap];
    i -= o->tail_len;
    return i < o->head.len ? (unsigned char)o->head.p[o->head.len - 1 - i] : -1;
}

static bool output_is_blank(int c) {
    return c == '\n' || c == ' ' || c == '\t' || c == '\r';
}

bool mcp_output_last_line(const struct mcp_output *o, struct buf *b) {
    size_t end = 0, n = 0;
    char line[MCP_OUTPUT_LINE];
    while (output_is_blank(output_from_end(o, end)))
        end++;
    size_t start = end;
    while (output_from_end(o, start) >= 0 && output_from_end(o, start) != '\n')
        start++;
    while (start > end && n < sizeof line)
        line[n++] = (char)output_from_end(o, --start);
    return n > 0 && mcp_output_mend(b, (struct str){line, n}) == 0;
}
