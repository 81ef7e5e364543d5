#include "toml/toml_internal.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define SCAN_REASON_MAX 512 /* bytes of a reason; longer ones are cut */

bool toml_scan_fail(struct toml_parser *p, size_t at, const char *fmt, ...) {
    char reason[SCAN_REASON_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        if (p->text.p[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)p->text.p[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    p->status = err_set(p->e, ERR_INVALID_PARAMS, "line %u, column %u: %s", line, column, reason);
    return false;
}

bool toml_scan_memory(struct toml_parser *p) {
    err_set(p->e, ERR_INTERNAL, "the text needs too much memory");
    p->status = -ENOMEM;
    return false;
}

bool toml_scan_expected(struct toml_parser *p, const char *what) {
    int c = toml_scan_peek(p, 0);
    if (c < 0)
        return toml_scan_fail(p, p->at, "expected %s, not the end of the file", what);
    if (toml_scan_at_end(p))
        return toml_scan_fail(p, p->at, "expected %s, not the end of the line", what);
    if (c < 0x20 || c == 0x7F)
        return toml_scan_fail(p, p->at, "expected %s, not control character U+%04X", what,
                              (unsigned)c);
    uint32_t point;
    size_t n = utf8_decode(p->text.p + p->at, p->text.n - p->at, &point);
    return toml_scan_fail(p, p->at, "expected %s, not `%.*s`", what, (int)n, p->text.p + p->at);
}

bool toml_scan_at_end(const struct toml_parser *p) {
    int c = toml_scan_peek(p, 0);
    return c < 0 || c == '\n' || (c == '\r' && toml_scan_peek(p, 1) == '\n');
}

bool toml_scan_take(struct toml_parser *p, char c) {
    bool found = toml_scan_peek(p, 0) == (unsigned char)c;
    p->at += found;
    return found;
}

void toml_scan_blanks(struct toml_parser *p) {
    while (toml_scan_peek(p, 0) == ' ' || toml_scan_peek(p, 0) == '\t')
        p->at++;
}

/* Passes over a comment, if there is one. */
static bool scan_comment(struct toml_parser *p) {
    if (!toml_scan_take(p, '#'))
        return true;
    for (; !toml_scan_at_end(p); p->at++) {
        int c = toml_scan_peek(p, 0);
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return toml_scan_fail(p, p->at, "control character U+%04X in a comment", (unsigned)c);
    }
    return true;
}

/* Passes over a line end, if there is one. */
static bool scan_newline(struct toml_parser *p) {
    if (toml_scan_peek(p, 0) < 0 || !toml_scan_at_end(p))
        return false;
    toml_scan_take(p, '\r');
    toml_scan_take(p, '\n');
    p->line++;
    return true;
}

bool toml_scan_lines(struct toml_parser *p) {
    do {
        toml_scan_blanks(p);
        if (!scan_comment(p))
            return false;
    } while (scan_newline(p));
    return true;
}

bool toml_scan_line_end(struct toml_parser *p) {
    toml_scan_blanks(p);
    if (!scan_comment(p))
        return false;
    if (!toml_scan_at_end(p))
        return toml_scan_expected(p, "the end of the line");
    scan_newline(p);
    return true;
}
