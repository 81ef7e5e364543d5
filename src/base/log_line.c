#include "base/log_line.h"

#include "base/utc.h"
#include "base/utf8.h"

#include <stdio.h>
#include <time.h>

#define LOG_CUT "..."
#define LOG_ESCAPE_MAX 6 /* bytes that one may become: \u0001 */
#define LOG_LINE_END 8   /* kept for the end: ..."}\n */
#define LOG_ROOM ((size_t)LOG_LINE_MAX - LOG_LINE_END)

static const char *const line_names[] = {
    [LOG_LEVEL_OFF] = "off",   [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
};

static const char *const line_tags[] = {
    [LOG_LEVEL_OFF] = "OFF",   [LOG_LEVEL_ERROR] = "ERROR", [LOG_LEVEL_WARN] = "WARN",
    [LOG_LEVEL_INFO] = "INFO", [LOG_LEVEL_DEBUG] = "DEBUG",
};

/* As syslog numbers them. */
static const char *const line_priorities[] = {
    [LOG_LEVEL_OFF] = "",     [LOG_LEVEL_ERROR] = "<3>", [LOG_LEVEL_WARN] = "<4>",
    [LOG_LEVEL_INFO] = "<6>", [LOG_LEVEL_DEBUG] = "<7>",
};

/* Adds what is known to fit. */
static void line_add(struct log_line *l, const char *p, size_t n) {
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

static void line_addz(struct log_line *l, const char *z) {
    line_add(l, z, strlen(z));
}

void log_line_start(struct log_line *l, enum log_format format, bool journal,
                    enum log_level level) {
    struct timespec ts;
    char stamp[UTC_TEXT_LEN + 1];
    l->n = 0;
    l->format = format;
    l->fields = l->cut = false;
    clock_gettime(CLOCK_REALTIME, &ts);
    utc_text(stamp, &ts);
    if (journal)
        line_addz(l, line_priorities[level]);
    if (format == LOG_FORMAT_JSON) {
        line_addz(l, "{\"ts\":\"");
        line_addz(l, stamp);
        line_addz(l, "\",\"level\":\"");
        line_addz(l, line_names[level]);
        line_addz(l, "\"");
    } else if (!journal) {
        line_addz(l, stamp);
        line_addz(l, " ");
        line_addz(l, line_tags[level]);
        line_addz(l, " ");
    }
}

/* Bytes of the printable UTF-8 sequence of two or more bytes at p (n are left); 0 = none there. */
static size_t line_sequence(const char *p, size_t n) {
    unsigned char c = (unsigned char)p[0];
    size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
    if (len == 0 || len > n || !utf8_valid(p, len))
        return 0;
    bool c1_control = c == 0xC2 && (unsigned char)p[1] < 0xA0;
    return c1_control ? 0 : len;
}

/* Whether a sequence of three bytes ends a line for some readers (U+2028, U+2029), or turns what
 * follows around. */
static bool line_misleads(const char *p, size_t len, uint32_t *c) {
    if (len != 3 || utf8_decode(p, len, c) != len)
        return false;
    return *c == 0x200E || *c == 0x200F || (*c >= 0x2028 && *c <= 0x202E) ||
           (*c >= 0x2066 && *c <= 0x2069);
}

/* The escape of one byte. JSON has no escape for a byte that is not UTF-8: it becomes U+FFFD. */
static size_t line_escape(enum log_format format, char c, char dst[LOG_ESCAPE_MAX + 1]) {
    unsigned char u = (unsigned char)c;
    const char *named = c == '\n'   ? "\\n"
                        : c == '\r' ? "\\r"
                        : c == '\t' ? "\\t"
                        : c == '\\' ? "\\\\"
                        : c == '"'  ? "\\\""
                                    : NULL;
    if (named != NULL)
        memcpy(dst, named, 3);
    else if (format == LOG_FORMAT_JSON && u >= 0x80)
        memcpy(dst, "\xEF\xBF\xBD", 4);
    else
        snprintf(dst, LOG_ESCAPE_MAX + 1, format == LOG_FORMAT_JSON ? "\\u%04x" : "\\x%02x", u);
    return strlen(dst);
}

/* Appends a text, escaped. False if not all of it fits. */
static bool line_escaped(struct log_line *l, struct str s, bool quoted) {
    while (s.n > 0) {
        char out[LOG_ESCAPE_MAX + 1];
        size_t take = 1, len = 1;
        bool plain = *s.p >= 0x20 && *s.p < 0x7F && *s.p != '\\' && !(*s.p == '"' && quoted);
        if (plain) {
            out[0] = *s.p;
        } else if ((take = line_sequence(s.p, s.n)) > 0) {
            uint32_t c;
            memcpy(out, s.p, take);
            len = line_misleads(s.p, take, &c)
                      ? (size_t)snprintf(out, sizeof out, "\\u%04x", (unsigned)c)
                      : take;
        } else {
            take = 1;
            len = line_escape(l->format, *s.p, out);
        }
        if (l->n + len > LOG_ROOM)
            return false;
        line_add(l, out, len);
        s.p += take;
        s.n -= take;
    }
    return true;
}

void log_line_message(struct log_line *l, struct str message, bool whole) {
    bool json = l->format == LOG_FORMAT_JSON;
    if (json)
        line_addz(l, ",\"message\":\"");
    l->cut = !line_escaped(l, message, json) || !whole;
    if (l->cut)
        line_addz(l, LOG_CUT);
    if (json)
        line_addz(l, "\"");
}

/* Whether a value can stand in a text without quotes. */
static bool line_is_word(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] <= ' ' || s.p[i] >= 0x7F || strchr("\"\\=,", s.p[i]) != NULL)
            return false;
    }
    return s.n > 0;
}

void log_line_field(struct log_line *l, const char *name, struct str value) {
    bool json = l->format == LOG_FORMAT_JSON, quoted = json || !line_is_word(value);
    size_t head = strlen(name) + 7, n = value.n;
    if (l->cut || l->n + head > LOG_ROOM) {
        l->cut = true;
        return;
    }
    if (n > LOG_VALUE_MAX)
        value.n = utf8_cut(value.p, n, LOG_VALUE_MAX);
    line_addz(l, json ? ",\"" : l->fields ? " " : ": ");
    l->fields = true;
    line_addz(l, name);
    line_addz(l, json ? "\":" : "=");
    if (quoted)
        line_addz(l, "\"");
    l->cut = !line_escaped(l, value, quoted);
    if (l->cut || value.n < n)
        line_addz(l, LOG_CUT);
    if (quoted)
        line_addz(l, "\"");
}

void log_line_end(struct log_line *l) {
    line_addz(l, l->format == LOG_FORMAT_JSON ? "}\n" : "\n");
}
