#include "toml/toml_write.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* -- strings -- */

/* What a string consists of, as far as the choice of quotes depends on it. */
struct write_look {
    bool newline, backslash, control;
    size_t singles, doubles; /* the longest run of such quotes */
};

static struct write_look write_look(struct str s) {
    struct write_look l = {0};
    size_t singles = 0, doubles = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        singles = c == '\'' ? singles + 1 : 0;
        doubles = c == '"' ? doubles + 1 : 0;
        l.singles = MAX(l.singles, singles);
        l.doubles = MAX(l.doubles, doubles);
        l.newline |= c == '\n';
        l.backslash |= c == '\\';
        l.control |= (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    }
    return l;
}

static int write_escape(struct buf *b, unsigned char c) {
    switch (c) {
    case '\b': return buf_putz(b, "\\b");
    case '\t': return buf_putz(b, "\\t");
    case '\n': return buf_putz(b, "\\n");
    case '\f': return buf_putz(b, "\\f");
    case '\r': return buf_putz(b, "\\r");
    case '"': return buf_putz(b, "\\\"");
    case '\\': return buf_putz(b, "\\\\");
    default: return buf_putf(b, "\\u%04X", c);
    }
}

/* The inside of a basic string. One of several lines may hold two quotes in a row. */
static int write_basic(struct buf *b, struct str s, bool lines) {
    size_t quotes = 0, most = lines ? 2 : 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        quotes = c == '"' ? quotes + 1 : 0;
        bool plain = c >= 0x20 ? c != '\\' && c != 0x7F && quotes <= most : lines && c == '\n';
        r = plain ? buf_putc(b, (char)c) : write_escape(b, c);
        if (!plain)
            quotes = 0;
    }
    return r;
}

/* The form with the fewest escapes: basic, literal, then those of several lines. */
static int write_string(struct buf *b, struct str s) {
    struct write_look l = write_look(s);
    const char *quote = "\"";
    bool literal = false;
    if (l.control || l.backslash || l.doubles > 0 || l.newline) {
        if (!l.control && l.singles == 0 && !l.newline)
            quote = "'", literal = true;
        else if (!l.control && !l.backslash && l.doubles <= 2)
            quote = "\"\"\"";
        else if (!l.control && l.singles <= 2)
            quote = "'''", literal = true;
        else if (l.newline)
            quote = "\"\"\"";
    }
    bool lines = quote[1] != '\0';
    int r = buf_putz(b, quote);
    if (r == 0 && lines && l.newline)
        r = buf_putc(b, '\n');
    if (r == 0)
        r = literal ? buf_put(b, s.p, s.n) : write_basic(b, s, lines);
    return r < 0 ? r : buf_putz(b, quote);
}

static bool write_is_bare(struct str key) {
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
        if (!ok)
            return false;
    }
    return key.n > 0;
}

/* A bare key if possible; else a string on one line. */
static int write_key(struct buf *b, struct str key) {
    if (write_is_bare(key))
        return buf_put(b, key.p, key.n);
    struct write_look l = write_look(key);
    bool literal = (l.backslash || l.doubles > 0) && !l.control && !l.newline && l.singles == 0;
    int r = buf_putc(b, literal ? '\'' : '"');
    if (r == 0)
        r = literal ? buf_put(b, key.p, key.n) : write_basic(b, key, false);
    return r < 0 ? r : buf_putc(b, literal ? '\'' : '"');
}

/* -- other values -- */

/* The shortest digits that read back as the number, without an exponent. */
static int write_float(struct buf *b, double number) {
    char text[40];
    const char *sign = signbit(number) ? "-" : "";
    if (!isfinite(number))
        return buf_putf(b, "%s%s", isnan(number) ? "" : sign, isnan(number) ? "nan" : "inf");
    for (int digits = 0; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, fabs(number));
        if (strtod(text, NULL) == fabs(number))
            break;
    }
    char *e = strchr(text, 'e');
    int point = (int)strtol(e + 1, NULL, 10) + 1; /* digits before it */
    char digits[24] = {text[0]};
    size_t n = 1;
    for (const char *p = text + 2; text[1] == '.' && p < e; p++)
        digits[n++] = *p;
    int r = buf_putf(b, "%s%s", sign, point <= 0 ? "0." : "");
    for (int i = point; r == 0 && i < 0; i++)
        r = buf_putc(b, '0');
    for (int i = 0; r == 0 && (i < (int)n || i < point); i++) {
        if (i == point && i > 0)
            r = buf_putc(b, '.');
        if (r == 0)
            r = buf_putc(b, i < (int)n ? digits[i] : '0');
    }
    return r == 0 && point >= (int)n ? buf_putz(b, ".0") : r;
}

/* A date or time: a fraction of nanoseconds at most, without needless digits; no offset -00:00. */
static int write_time(struct buf *b, struct str s) {
    const char *dot = memchr(s.p, '.', s.n);
    size_t head = dot != NULL ? (size_t)(dot - s.p) : s.n, digits = 0, end = head;
    if (dot != NULL) {
        for (end++; end < s.n && s.p[end] >= '0' && s.p[end] <= '9';)
            end++;
        for (digits = MIN(end - head - 1, (size_t)9); digits > 0 && dot[digits] == '0';)
            digits--;
    }
    struct str rest = {s.p + end, s.n - end};
    if (dot == NULL && s.n > 6 && strcmp(s.p + s.n - 6, "-00:00") == 0)
        head = s.n - 6, rest = STR_LIT("+00:00");
    else if (str_eqz(rest, "-00:00"))
        rest = STR_LIT("+00:00");
    int r = buf_put(b, s.p, head);
    if (r == 0 && digits > 0)
        r = buf_put(b, dot, digits + 1);
    return r < 0 ? r : buf_put(b, rest.p, rest.n);
}

static int write_value(struct buf *b, const struct toml_value *v);

/* An array, or a table inside of one. */
static int write_inline(struct buf *b, const struct toml_value *v) {
    bool table = v->type == TOML_TABLE;
    const char *begin = table ? "{ " : "[", *end = table ? " }" : "]";
    if (v->count == 0)
        begin = table ? "{" : "[", end = table ? "}" : "]";
    int r = buf_putz(b, begin);
    toml_for_each(child, v) {
        if (r == 0 && child != v->children.first)
            r = buf_putz(b, ", ");
        if (r == 0 && table)
            r = write_key(b, child->key);
        if (r == 0 && table)
            r = buf_putz(b, " = ");
        if (r == 0)
            r = write_value(b, child);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : buf_putz(b, end);
}

static int write_value(struct buf *b, const struct toml_value *v) {
    switch ((enum toml_type)v->type) {
    case TOML_STRING: return write_string(b, v->text);
    case TOML_INTEGER: return buf_putf(b, "%" PRId64, v->integer);
    case TOML_FLOAT: return write_float(b, v->number);
    case TOML_BOOLEAN: return buf_putz(b, v->boolean ? "true" : "false");
    case TOML_OFFSET_DATETIME:
    case TOML_LOCAL_DATETIME:
    case TOML_LOCAL_DATE:
    case TOML_LOCAL_TIME: return write_time(b, v->text);
    case TOML_ARRAY:
    case TOML_TABLE: break;
    }
    return write_inline(b, v);
}

/* -- tables -- */

/* Whether the array is written with a header for each element. */
static bool write_is_tables(const struct toml_value *v) {
    if (v->type != TOML_ARRAY || v->count == 0)
        return false;
    toml_for_each(child, v) {
        if (child->type != TOML_TABLE)
            return false;
    }
    return true;
}

static bool write_is_plain(const struct toml_value *v) {
    return v->type != TOML_TABLE && !write_is_tables(v);
}

/* The way from the root to a table. */
struct write_path {
    const struct write_path *parent; /* NULL: of a member of the root */
    struct str key;
};

static int write_names(struct buf *b, const struct write_path *path) {
    int r = 0;
    if (path->parent != NULL) {
        r = write_names(b, path->parent);
        if (r == 0)
            r = buf_putc(b, '.');
    }
    return r < 0 ? r : write_key(b, path->key);
}

static int write_header(struct buf *b, const struct write_path *path, bool element, size_t start) {
    int r = b->len > start ? buf_putc(b, '\n') : 0;
    if (r == 0)
        r = buf_putz(b, element ? "[[" : "[");
    if (r == 0)
        r = write_names(b, path);
    return r < 0 ? r : buf_putz(b, element ? "]]\n" : "]\n");
}

static int write_pairs(struct buf *b, const struct toml_value *table) {
    int r = 0;
    toml_for_each(v, table) {
        if (!write_is_plain(v))
            continue;
        r = write_key(b, v->key);
        if (r == 0)
            r = buf_putz(b, " = ");
        if (r == 0)
            r = write_value(b, v);
        if (r == 0)
            r = buf_putc(b, '\n');
        if (r < 0)
            return r;
    }
    return r;
}

/* Whether a header is needed: for pairs, or because nothing else tells of the table. */
static bool write_needs_header(const struct toml_value *table) {
    toml_for_each(v, table) {
        if (write_is_plain(v))
            return true;
    }
    return table->count == 0;
}

static int write_table(struct buf *b, const struct toml_value *table, const struct write_path *path,
                       bool element, size_t start) {
    int r = 0;
    if (path != NULL && (element || write_needs_header(table)))
        r = write_header(b, path, element, start);
    if (r == 0)
        r = write_pairs(b, table);
    toml_for_each(v, table) {
        if (r < 0)
            return r;
        struct write_path to = {path, v->key};
        if (v->type == TOML_TABLE)
            r = write_table(b, v, &to, false, start);
        if (!write_is_tables(v))
            continue;
        toml_for_each(child, v) {
            if (r == 0)
                r = write_table(b, child, &to, true, start);
        }
    }
    return r;
}

int toml_write(struct buf *b, const struct toml_value *root) {
    return write_table(b, root, NULL, false, b->len);
}
