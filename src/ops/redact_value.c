#include "ops/redact_value.h"

#include "base/util.h"

static size_t value_skip(struct str s, size_t i, unsigned depth);

/* Whether the character at `i` and the next one open a group: `$(`, `${` and the like. */
static bool value_opens(struct str s, size_t i) {
    if (i + 1 >= s.n)
        return false;
    char next = s.p[i + 1];
    return s.p[i] == '$' ? next == '(' || next == '{' : strchr("<>", s.p[i]) && next == '(';
}

/* Whether c ends a word of a shell, or a parameter of a URL. */
static bool value_ends_word(char c) {
    return c != '\0' && strchr(" \t\r\n;|&<>()", c) != NULL;
}

/* The index after the character that closes the group at `i`. */
static size_t value_group_end(struct str s, size_t i, unsigned depth) {
    char open = s.p[i], close = open == '(' ? ')' : '}';
    if (depth > REDACT_NESTING_MAX)
        return s.n;
    for (i++; i < s.n && s.p[i] != close;)
        i = s.p[i] == open ? value_group_end(s, i, depth + 1) : value_skip(s, i, depth + 1);
    return MIN(i + 1, s.n);
}

/* The index after the next `quote` that is not escaped. */
static size_t value_escaped_quote_end(struct str s, size_t i, char quote) {
    while (i < s.n && s.p[i] != quote)
        i += s.p[i] == '\\' ? 2 : 1;
    return MIN(i + 1, s.n);
}

static size_t value_double_quote_end(struct str s, size_t i, unsigned depth) {
    for (i++; i < s.n && s.p[i] != '"';)
        i = s.p[i] == '\'' ? i + 1 : value_skip(s, i, depth + 1);
    return MIN(i + 1, s.n);
}

static size_t value_skip(struct str s, size_t i, unsigned depth) {
    if (depth > REDACT_NESTING_MAX)
        return s.n;
    if (value_opens(s, i))
        return value_group_end(s, i + 1, depth);
    switch (s.p[i]) {
    case '\\': return MIN(i + 2, s.n);
    case '"': return value_double_quote_end(s, i, depth);
    case '`': return value_escaped_quote_end(s, i + 1, '`');
    case '\'': {
        const char *close = memchr(s.p + i + 1, '\'', s.n - i - 1);
        return close != NULL ? (size_t)(close - s.p) + 1 : s.n;
    }
    case '$':
        if (i + 1 < s.n && s.p[i + 1] == '\'') /* $'..' has escapes */
            return value_escaped_quote_end(s, i + 2, '\'');
        return i + 1;
    default: return i + 1;
    }
}

size_t redact_value_skip(struct str s, size_t i) {
    return value_skip(s, i, 0);
}

/* The index after the escaped quote that closes the one at `i`. */
static size_t value_escaped_end(struct str s, size_t i) {
    const char *close = memmem(s.p + i + 2, s.n - i - 2, s.p + i, 2);
    return close ? (size_t)(close - s.p) + 2 : s.n;
}

size_t redact_value_word_end(struct str s, size_t i, char quote) {
    size_t first = i;
    if (redact_is_escaped_quote(s, i))
        return value_escaped_end(s, i);
    if (i < s.n && s.p[i] == '(') /* a list */
        return value_group_end(s, i, 0);
    while (i < s.n && (value_opens(s, i) || !value_ends_word(s.p[i]))) {
        char c = s.p[i];
        if (redact_is_quote(c) && (c == quote || (quote != 0 && i > first)))
            break;
        if (i > first && redact_is_escaped_quote(s, i))
            break;
        i = c == '$' && i + 1 < s.n && s.p[i + 1] == quote ? i + 1 : redact_value_skip(s, i);
    }
    return i;
}

size_t redact_value_line_end(struct str s, size_t i, char quote) {
    while (i < s.n && s.p[i] != '\n' && (quote == 0 || s.p[i] != quote))
        i = s.p[i] == '\\' ? MIN(i + 2, s.n) : i + 1;
    return i;
}

size_t redact_value_text_end(struct str s, size_t i, char quote) {
    while (i < s.n && quote != 0 && s.p[i] != quote) {
        bool nested = value_opens(s, i) || s.p[i] == '`' || s.p[i] == '\\';
        i = quote == '"' && nested ? redact_value_skip(s, i) : i + 1;
    }
    return quote != 0 ? i : s.n;
}

size_t redact_value_skip_blanks(struct str s, size_t i) {
    for (;;) {
        if (i < s.n && redact_is_blank(s.p[i]))
            i++;
        else if (i + 1 < s.n && s.p[i] == '\\' && s.p[i + 1] == '\n')
            i += 2;
        else
            return i;
    }
}
