#include "client/exec_text.h"

#include "client/exec_buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* The second byte of a sequence that begins with `lead` lies in [*low, *high]; the number of bytes
 * in all, 0 if no sequence begins so. */
static size_t sequence(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF) {
        *low = lead == 0xE0 ? 0xA0 : 0x80;
        *high = lead == 0xED ? 0x9F : 0xBF;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *low = lead == 0xF0 ? 0x90 : 0x80;
        *high = lead == 0xF4 ? 0x8F : 0xBF;
        return 4;
    }
    return 0;
}

/* The bytes at p (n > 0) that belong together: a code point, or the longest beginning of one, or a
 * stray byte. *whole tells whether they are a code point, *open whether only more bytes are
 * missing. */
static size_t piece(const char *p, size_t n, bool *whole, bool *open) {
    const unsigned char *s = (const unsigned char *)p;
    unsigned char low, high;
    size_t want = sequence(s[0], &low, &high), have = 1;
    while (have < want && have < n && s[have] >= low && s[have] <= high) {
        have++;
        low = 0x80;
        high = 0xBF;
    }
    *whole = have == want;
    *open = have < want && have == n;
    return have;
}

int exec_text_mend(struct buf *out, const char *p, size_t n) {
    bool whole, open;
    if (n == 0)
        return 0;
    int r = buf_reserve(out, n);
    size_t good = 0; /* bytes at p that need no change */
    for (size_t i = 0; r == 0 && i < n;) {
        size_t size = piece(p + i, n - i, &whole, &open);
        i += size;
        if (whole) {
            good += size;
            continue;
        }
        r = buf_put(out, p + i - size - good, good);
        if (r == 0)
            r = buf_putz(out, REPLACEMENT);
        good = 0;
    }
    return r == 0 ? buf_put(out, p + n - good, good) : r;
}

size_t exec_text_whole(const char *p, size_t n) {
    bool whole, open;
    for (size_t back = 1; back <= MIN(n, (size_t)3); back++) {
        if (((unsigned char)p[n - back] & 0xC0) == 0x80)
            continue;
        piece(p + n - back, back, &whole, &open);
        return open ? n - back : n;
    }
    return n;
}

static uint64_t lines(struct str s) {
    uint64_t count = s.n > 0 && s.p[s.n - 1] != '\n';
    const char *end = s.p + s.n;
    for (const char *p = s.p; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        count++;
    return count;
}

static bool is_inside(const char *p, size_t at) {
    return ((unsigned char)p[at] & 0xC0) == 0x80;
}

/* Appends the valid UTF-8 of s without its middle: at most `max` bytes of it, half from each end,
 * and a note between. */
static int put_ends(struct str s, size_t max, struct buf *out) {
    size_t left = max / 2, right = s.n - (max - max / 2);
    while (left > 0 && is_inside(s.p, left))
        left--;
    while (right < s.n && is_inside(s.p, right))
        right++;
    int r = buf_put(out, s.p, left);
    if (r == 0)
        r = buf_putf(out, "…%" PRIu64 " tokens truncated…", exec_text_tokens(s.n - max));
    return r == 0 ? buf_put(out, s.p + right, s.n - right) : r;
}

static bool contains(const struct buf *b, const char *needle, size_t n) {
    return b->len > 0 && memmem(b->p, b->len, needle, n) != NULL;
}

/* Above the budget: a warning, then the ends. The second line names the omitted bytes if the ends
 * do not show that note. */
static int put_truncated(const struct exec_text *t, struct str text, size_t max, struct buf *out) {
    _cleanup_buf_ struct buf ends = BUF_INIT(out->max);
    char marker[EXEC_BUFFER_MARKER_MAX];
    size_t size = exec_buffer_marker(marker, t->omitted);
    int r = put_ends(text, max, &ends);
    if (r == 0)
        r = buf_putf(out, "Warning: truncated output (original token count: %" PRIu64 ")\n",
                     exec_text_tokens(t->omitted > 0 ? t->bytes : text.n));
    if (r == 0 && t->omitted == 0)
        r = buf_putf(out, "Total output lines: %" PRIu64 "\n", lines(text));
    else if (r == 0 && !contains(&ends, marker, size))
        r = buf_putf(out, "%s\n", marker);
    if (r == 0)
        r = buf_putc(out, '\n');
    return r == 0 ? buf_put(out, ends.p, ends.len) : r;
}

int exec_text_output(const struct exec_text *t, struct buf *out) {
    _cleanup_buf_ struct buf text = BUF_INIT(3 * t->raw.n + 1);
    size_t max = (size_t)MIN(t->max_tokens, (uint64_t)EXEC_TEXT_TOKENS) * 4;
    char marker[EXEC_BUFFER_MARKER_MAX];
    int r = exec_text_mend(&text, t->raw.p, t->raw.n);
    if (r < 0)
        return r;
    if (text.len > max)
        return put_truncated(t, buf_str(&text), max, out);
    if (t->omitted > 0 && !contains(&text, marker, exec_buffer_marker(marker, t->omitted)))
        r = buf_putf(out, "%s\n", marker);
    return r == 0 ? buf_put(out, text.p, text.len) : r;
}

int exec_text_result(const struct exec_text *t, struct str output, struct buf *out) {
    int r = buf_putf(out, "Chunk ID: %s\nWall time: %.4f seconds\n", t->chunk_id, t->wall_s);
    if (r == 0 && t->exited)
        r = buf_putf(out, "Process exited with code %d\n", t->code);
    if (r == 0 && t->session != 0)
        r = buf_putf(out, "Process running with session ID %d\n", t->session);
    if (r == 0)
        r = buf_putf(out, "Original token count: %" PRIu64 "\nOutput:\n",
                     exec_text_tokens(t->bytes));
    return r == 0 ? buf_put(out, output.p, output.n) : r;
}
