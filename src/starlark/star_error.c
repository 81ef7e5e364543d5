#include "starlark/star_internal.h"

#define ERROR_LINE_MAX 77 /* characters of a source line in a traceback */

/* A place in the source. */
struct error_place {
    size_t line;       /* from 1 */
    size_t column;     /* from 0, in characters */
    struct str source; /* the whole line */
};

static struct error_place error_place(struct str text, size_t at) {
    struct error_place p = {.line = 1};
    size_t begin = 0;
    at = MIN(at, text.n);
    for (size_t i = 0; i < at; i++) {
        if (text.p[i] == '\n') {
            p.line++;
            begin = i + 1;
        }
    }
    size_t end = begin;
    while (end < text.n && text.p[end] != '\n')
        end++;
    p.source = (struct str){text.p + begin, end - begin};
    p.column = star_value_chars((struct str){text.p + begin, at - begin});
    return p;
}

static int error_repeat(struct buf *b, char c, size_t n) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = buf_putc(b, c);
    return r;
}

static int error_call(const struct star *s, struct buf *b, const struct star_call *c) {
    struct error_place p = error_place(s->text, c->span.begin);
    struct str line = p.source;
    while (line.n > 0 && line.p[0] == ' ')
        str_take(&line, 1);
    while (line.n > 0 && line.p[line.n - 1] == ' ')
        line.n--;
    bool cut = star_value_chars(line) > ERROR_LINE_MAX + 3;
    size_t n = cut ? star_value_char_at(line, ERROR_LINE_MAX) : line.n;
    return buf_putf(b, "  * %s:%zu, in %s\n      %.*s%s\n", s->source->file, p.line, c->where,
                    (int)n, line.p, cut ? "..." : "");
}

static int error_gutter(struct buf *b, size_t width) {
    int r = error_repeat(b, ' ', width + 1);
    return r < 0 ? r : buf_putz(b, "| ");
}

static size_t error_digits(size_t n) {
    size_t digits = 1;
    for (; n >= 10; n /= 10)
        digits++;
    return digits;
}

static int error_source(struct buf *b, size_t width, const struct error_place *p,
                        const char *mark) {
    return buf_putf(b, "%*zu | %s%.*s\n", (int)width, p->line, mark, (int)p->source.n, p->source.p);
}

static int error_one_line(const struct star *s, struct buf *b, size_t width,
                          const struct error_place *p) {
    size_t line_end = (size_t)(p->source.p - s->text.p) + p->source.n;
    size_t begin = MIN((size_t)s->at.begin, line_end), end = MIN((size_t)s->at.end, line_end);
    size_t carets =
        end > begin ? star_value_chars((struct str){s->text.p + begin, end - begin}) : 0;
    for (size_t i = begin; i < end; i++) /* control characters have no width */
        carets -= (unsigned char)s->text.p[i] < ' ';
    int r = error_source(b, width, p, "");
    if (r == 0)
        r = error_gutter(b, width);
    if (r == 0)
        r = error_repeat(b, ' ', p->column);
    if (r == 0)
        r = error_repeat(b, '^', carets);
    return r < 0 ? r : buf_putc(b, '\n');
}

/* Several lines: a bar at their left leads from the first to the last character. */
static int error_many_lines(const struct star *s, struct buf *b, size_t width,
                            struct error_place first, struct error_place last) {
    bool whole = first.column == 0;
    int r = error_source(b, width, &first, whole ? "/ " : "  ");
    if (r == 0 && !whole) {
        r = error_gutter(b, width);
        if (r == 0)
            r = buf_putc(b, ' ');
        if (r == 0)
            r = error_repeat(b, '_', first.column + 1);
        if (r == 0)
            r = buf_putz(b, "^\n");
    }
    size_t at = (size_t)(first.source.p - s->text.p) + first.source.n + 1;
    for (size_t line = first.line + 1; r == 0 && line <= last.line; line++) {
        struct error_place p = error_place(s->text, at);
        r = error_source(b, width, &p, "| ");
        at += p.source.n + 1;
    }
    if (r == 0)
        r = error_gutter(b, width);
    if (r == 0)
        r = buf_putc(b, '|');
    if (r == 0)
        r = error_repeat(b, '_', MAX(last.column, (size_t)1)); /* an end before the line counts */
    return r < 0 ? r : buf_putz(b, "^\n");
}

static int error_excerpt(const struct star *s, struct buf *b) {
    struct error_place first = error_place(s->text, s->at.begin);
    size_t line_end = (size_t)(first.source.p - s->text.p) + first.source.n;
    bool one = s->at.end <= line_end + 1;
    struct error_place last = one ? first : error_place(s->text, s->at.end);
    size_t width = error_digits(last.line);
    int r = error_repeat(b, ' ', width);
    if (r == 0)
        r = buf_putf(b, "--> %s:%zu:%zu\n", s->source->file, first.line, first.column + 1);
    if (r == 0)
        r = error_repeat(b, ' ', width + 1);
    if (r == 0)
        r = buf_putz(b, "|\n");
    if (r == 0)
        r = one ? error_one_line(s, b, width, &first) : error_many_lines(s, b, width, first, last);
    if (r == 0)
        r = error_repeat(b, ' ', width + 1);
    return r < 0 ? r : buf_putz(b, "|\n");
}

int star_error_put(const struct star *s, struct buf *b) {
    int r = 0;
    if (s->call_count > 0)
        r = buf_putz(b, "Traceback (most recent call last):\n");
    for (size_t i = 0; r == 0 && i < s->call_count; i++)
        r = error_call(s, b, &s->calls[i]);
    if (r == 0)
        r = buf_putf(b, "error: %s\n", s->message != NULL ? s->message : "out of memory");
    size_t begin = b->len;
    if (r == 0 && s->at_known && error_excerpt(s, b) < 0)
        b->len = begin; /* lines that are too long to be shown */
    return r;
}
