#include "toml/toml_internal.h"

#include "base/utf8.h"

/* A string between its quotes. */
struct toml_string {
    size_t start; /* of the opening quote */
    char quote;
    bool lines;    /* three quotes: it may have several lines */
    size_t end;    /* where the closing quotes begin; the content ends here */
    char *out;     /* has room for the content and a NUL: no escape is shorter than its meaning */
    size_t length; /* written to out */
};

/* The number of quotes in a row at i, five at most. */
static size_t string_quotes(const struct toml_parser *p, size_t i, char quote) {
    size_t n = 0;
    while (n < 5 && i + n < p->text.n && p->text.p[i + n] == quote)
        n++;
    return n;
}

/* Finds the end of the content. Three quotes may close a string that ends with one or two. */
static bool string_find_end(struct toml_parser *p, struct toml_string *s) {
    for (size_t i = p->at; i < p->text.n; i++) {
        char c = p->text.p[i];
        if (c == '\\' && s->quote == '"') {
            i++;
        } else if (c == '\n' && !s->lines) {
            break;
        } else if (c == s->quote) {
            size_t n = string_quotes(p, i, s->quote);
            if (!s->lines || n >= 3) {
                s->end = s->lines ? i + n - 3 : i;
                return true;
            }
            i += n - 1;
        }
    }
    return toml_scan_fail(p, s->start, "the string is not closed");
}

/* Reads the digits of \u or \U. */
static bool string_code_point(struct toml_parser *p, struct toml_string *s, size_t digits) {
    size_t start = p->at - 2; /* the backslash */
    uint32_t point = 0;
    for (size_t i = 0; i < digits; i++, p->at++) {
        int c = p->at < s->end ? (unsigned char)p->text.p[p->at] : -1;
        int lower = c | 0x20;
        if (c >= '0' && c <= '9')
            point = point << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f' && c > 0)
            point = point << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return toml_scan_fail(p, start, "\\%c needs %zu hexadecimal digits",
                                  digits == 4 ? 'u' : 'U', digits);
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return toml_scan_fail(p, start, "U+%04X is not a Unicode scalar value", point);
    s->length += utf8_encode(s->out + s->length, point);
    return true;
}

/* Passes over a backslash at the end of a line, the line end, and blank space up to the next text.
 * False if something else follows the backslash. */
static bool string_line_continues(struct toml_parser *p, const struct toml_string *s) {
    size_t i = p->at;
    uint32_t lines = 0;
    for (; i < s->end; i++) {
        char c = p->text.p[i];
        if (c == '\n')
            lines++;
        else if (c != ' ' && c != '\t' && !(c == '\r' && p->text.p[i + 1] == '\n'))
            break;
    }
    if (lines == 0 || !s->lines)
        return false;
    p->at = i;
    p->line += lines;
    return true;
}

/* Reads an escape; its backslash is passed. */
static bool string_escape(struct toml_parser *p, struct toml_string *s) {
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    int c = p->at < s->end ? (unsigned char)p->text.p[p->at] : 0;
    const char *simple = c != 0 ? strchr(from, c) : NULL;
    if (simple != NULL) {
        s->out[s->length++] = to[simple - from];
        p->at++;
        return true;
    }
    if (c == 'u' || c == 'U') {
        p->at++;
        return string_code_point(p, s, c == 'u' ? 4 : 8);
    }
    if (string_line_continues(p, s))
        return true;
    return toml_scan_fail(p, p->at - 1, "unknown escape in a string");
}

/* Reads the content into s->out. */
static bool string_content(struct toml_parser *p, struct toml_string *s) {
    while (p->at < s->end) {
        unsigned char c = (unsigned char)p->text.p[p->at++];
        if (c == '\\' && s->quote == '"') {
            if (!string_escape(p, s))
                return false;
            continue;
        }
        if (c == '\r' && s->lines && p->text.p[p->at] == '\n')
            continue; /* every line end becomes a line feed */
        bool line_end = c == '\n' && s->lines;
        if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7F)
            return toml_scan_fail(p, p->at - 1, "control character U+%04X in a string",
                                  (unsigned)c);
        p->line += line_end;
        s->out[s->length++] = (char)c;
    }
    return true;
}

bool toml_string_read(struct toml_parser *p, bool lines, struct str *out) {
    struct toml_string s = {.start = p->at, .quote = p->text.p[p->at]};
    s.lines = lines && string_quotes(p, p->at, s.quote) >= 3;
    p->at += s.lines ? 3 : 1;
    if (s.lines && toml_scan_at_end(p) && toml_scan_peek(p, 0) >= 0) {
        p->at += toml_scan_peek(p, 0) == '\r' ? 2 : 1; /* a line end right behind the quotes */
        p->line++;
    }
    if (!string_find_end(p, &s))
        return false;
    s.out = arena_alloc(p->arena, s.end - p->at + 1);
    if (s.out == NULL)
        return toml_scan_memory(p);
    if (!string_content(p, &s))
        return false;
    p->at += s.lines ? 3 : 1;
    *out = (struct str){s.out, s.length};
    return true;
}
