#include "starlark/star_lex.h"

#include "base/utf8.h"

#include <errno.h>

#define LEX_LITERAL_MAX STAR_SOURCE_MAX

static const struct {
    const char *text;
    enum star_token token;
} lex_keywords[] = {
    {"and", T_AND},   {"break", T_BREAK},   {"continue", T_CONTINUE}, {"def", T_DEF},
    {"elif", T_ELIF}, {"else", T_ELSE},     {"for", T_FOR},           {"if", T_IF},
    {"in", T_IN},     {"lambda", T_LAMBDA}, {"load", T_LOAD},         {"not", T_NOT},
    {"or", T_OR},     {"pass", T_PASS},     {"return", T_RETURN},
};

static const char *const lex_reserved[] = {
    "as",     "assert", "async", "await",    "class", "del", "except", "finally", "from",
    "global", "import", "is",    "nonlocal", "raise", "try", "while",  "with",    "yield",
};

/* Longer ones first. */
static const struct {
    const char *text;
    enum star_token token;
} lex_symbols[] = {
    {"//=", T_SLASHSLASH_ASSIGN},
    {"<<=", T_SHL_ASSIGN},
    {">>=", T_SHR_ASSIGN},
    {"...", T_ELLIPSIS},
    {"==", T_EQ},
    {"!=", T_NE},
    {"<=", T_LE},
    {">=", T_GE},
    {"**", T_STARSTAR},
    {"//", T_SLASHSLASH},
    {"<<", T_SHL},
    {">>", T_SHR},
    {"+=", T_PLUS_ASSIGN},
    {"-=", T_MINUS_ASSIGN},
    {"*=", T_STAR_ASSIGN},
    {"/=", T_SLASH_ASSIGN},
    {"%=", T_PERCENT_ASSIGN},
    {"&=", T_AMP_ASSIGN},
    {"|=", T_PIPE_ASSIGN},
    {"^=", T_CARET_ASSIGN},
    {"->", T_ARROW},
    {"=", T_ASSIGN},
    {"<", T_LT},
    {">", T_GT},
    {"+", T_PLUS},
    {"-", T_MINUS},
    {"*", T_STAR},
    {"/", T_SLASH},
    {"%", T_PERCENT},
    {"&", T_AMP},
    {"|", T_PIPE},
    {"^", T_CARET},
    {"~", T_TILDE},
    {".", T_DOT},
    {",", T_COMMA},
    {";", T_SEMICOLON},
    {":", T_COLON},
    {"(", T_LPAREN},
    {")", T_RPAREN},
    {"[", T_LBRACKET},
    {"]", T_RBRACKET},
    {"{", T_LBRACE},
    {"}", T_RBRACE},
};

const char *star_lex_name(enum star_token t) {
    for (size_t i = 0; i < ARRAY_LEN(lex_symbols); i++) {
        if (lex_symbols[i].token == t)
            return lex_symbols[i].text;
    }
    for (size_t i = 0; i < ARRAY_LEN(lex_keywords); i++) {
        if (lex_keywords[i].token == t)
            return lex_keywords[i].text;
    }
    return "?";
}

const char *star_lex_describe(struct star_lex *l) {
    struct star *s = l->s;
    const char *repr = l->value != NULL ? star_value_repr(s, l->value) : "";
    if (repr == NULL)
        return NULL;
    switch ((int)l->token) {
    case T_EOF: return "end of file";
    case T_NEWLINE: return "new line";
    case T_INDENT: return "new indentation block";
    case T_DEDENT: return "end of indentation block";
    case T_NAME: return star_text(s, "identifier '%.*s'", (int)l->text.n, l->text.p);
    case T_INT: return star_text(s, "integer literal '%s'", repr);
    case T_FLOAT: return star_text(s, "float literal '%s'", repr);
    case T_STRING: return star_text(s, "string literal %s", repr);
    case T_BYTES: return star_text(s, "byte literal %s", repr);
    case T_FSTRING: return "f-string";
    case T_FSTRING_END: return "f-string expression end '}'";
    default: break;
    }
    bool keyword = l->token >= T_AND && l->token <= T_RETURN;
    return star_text(s, "%s '%s'", keyword ? "keyword" : "symbol", star_lex_name(l->token));
}

/* -- characters -- */

static int lex_char(const struct star_lex *l, size_t ahead) {
    return l->at + ahead < l->end ? (unsigned char)l->s->text.p[l->at + ahead] : -1;
}

static bool lex_is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool lex_is_name(int c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static struct star_span lex_span(size_t begin, size_t end) {
    return (struct star_span){(uint32_t)begin, (uint32_t)end};
}

static bool lex_fail_tab(struct star_lex *l, size_t at) {
    return star_fail_at(l->s, lex_span(at, at), "Parse error: tabs are not allowed");
}

static bool lex_fail_input(struct star_lex *l) {
    const char *p = l->s->text.p + l->at;
    size_t n = 1;
    while (l->at + n < l->end && ((unsigned char)p[n] & 0xC0) == 0x80)
        n++;
    return star_fail_at(l->s, lex_span(l->at, l->at + n), "Parse error: invalid input `%.*s`",
                        (int)n, p);
}

/* -- literals -- */

static int lex_hex(int c) {
    if (lex_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int lex_put_char(struct buf *out, unsigned c, bool bytes) {
    char text[4];
    if (bytes && c < 256)
        return buf_putc(out, (char)c);
    return buf_put(out, text, utf8_encode(text, c));
}

/* The code point of the hexadecimal escape at `at`, after its letter; -1: invalid. */
static long lex_hex_escape(struct str text, size_t at, size_t end, size_t digits) {
    long c = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = at + i < end ? lex_hex((unsigned char)text.p[at + i]) : -1;
        if (digit < 0)
            return -1;
        c = c * 16 + digit;
    }
    return c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? -1 : c;
}

/* The escape whose backslash is at *at. False after a failure. */
static bool lex_escape(struct star *s, size_t *at, size_t end, bool bytes, struct buf *out) {
    static const char names[] = "abfnrtv\\'\"", meanings[] = "\a\b\f\n\r\t\v\\'\"";
    struct str text = s->text;
    size_t begin = *at;
    char c = text.p[begin + 1];
    const char *plain = c == '\0' ? NULL : strchr(names, c);
    int r = 0;
    *at = begin + 2;
    if (plain != NULL) {
        r = buf_putc(out, meanings[plain - names]);
    } else if (c >= '0' && c <= '7') {
        unsigned value = 0;
        for (*at = begin + 1; *at < end && *at < begin + 4 && (text.p[*at] & ~7) == '0'; ++*at)
            value = value * 8 + (unsigned)(text.p[*at] - '0');
        r = lex_put_char(out, value, bytes);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        long value = lex_hex_escape(text, *at, end, digits);
        size_t shown = MIN(digits + 1, text.n - begin - 1);
        if (value < 0)
            return star_fail_at(s, lex_span(begin, begin + 1 + shown),
                                "Parse error: invalid string escape sequence `%.*s`", (int)shown,
                                text.p + begin + 1);
        *at += digits;
        r = lex_put_char(out, (unsigned)value, bytes);
    } else if (c != '\n') { /* that is left out with the backslash */
        *at = begin + 1;
        r = buf_putc(out, '\\');
    }
    return r == 0 || star_take(s, out, r) != NULL;
}

bool star_lex_unescape(struct star *s, struct star_span span, bool raw, bool bytes,
                       struct buf *out) {
    const char *p = s->text.p;
    for (size_t at = span.begin; at < span.end;) {
        if (p[at] == '\\' && !raw && at + 1 < span.end) {
            if (!lex_escape(s, &at, span.end, bytes, out))
                return false;
        } else if (buf_putc(out, p[at++]) < 0) {
            return star_take(s, out, -ENOMEM) != NULL;
        }
    }
    return true;
}

/* Finds the closing quote of a literal that begins at l->at with its quote. */
static bool lex_quoted(struct star_lex *l, size_t begin, struct star_span *inside) {
    int quote = lex_char(l, 0);
    bool triple = lex_char(l, 1) == quote && lex_char(l, 2) == quote;
    l->at += triple ? 3 : 1;
    *inside = lex_span(l->at, l->at);
    for (int c; (c = lex_char(l, 0)) >= 0; l->at++) {
        bool closes =
            c == quote && (!triple || (lex_char(l, 1) == quote && lex_char(l, 2) == quote));
        if (closes) {
            inside->end = (uint32_t)l->at;
            l->at += triple ? 3 : 1;
            return true;
        }
        if (c == '\n' && !triple)
            break;
        if (c == '\\' && lex_char(l, 1) >= 0)
            l->at++;
    }
    return star_fail_at(l->s, lex_span(begin, l->at), "Parse error: unfinished string literal");
}

/* A string, whose prefix letters are `prefix`. */
static bool lex_string(struct star_lex *l, size_t begin, struct str prefix) {
    struct star_span inside;
    bool bytes = memchr(prefix.p, 'b', prefix.n) != NULL;
    l->raw = memchr(prefix.p, 'r', prefix.n) != NULL;
    if (!lex_quoted(l, begin, &inside))
        return false;
    l->text = (struct str){l->s->text.p + inside.begin, inside.end - inside.begin};
    if (memchr(prefix.p, 'f', prefix.n) != NULL) {
        l->token = T_FSTRING;
        return true;
    }
    _cleanup_buf_ struct buf b = BUF_INIT(LEX_LITERAL_MAX);
    l->token = bytes ? T_BYTES : T_STRING;
    if (!star_lex_unescape(l->s, inside, l->raw, bytes, &b))
        return false;
    l->value = star_take(l->s, &b, 0);
    if (l->value != NULL && bytes)
        l->value->type = STAR_BYTES;
    return l->value != NULL;
}

static bool lex_float(struct star_lex *l, size_t begin) {
    char text[512];
    size_t n = MIN(l->at - begin, sizeof text - 1);
    memcpy(text, l->s->text.p + begin, n);
    text[n] = '\0';
    l->token = T_FLOAT;
    l->value = star_value_real(l->s, strtod(text, NULL));
    return l->value != NULL;
}

static bool lex_int(struct star_lex *l, size_t begin, size_t prefix, unsigned base) {
    struct str all = {l->s->text.p + begin, l->at - begin};
    struct star_int value;
    if (prefix == 0 && all.n > 1 && all.p[0] == '0')
        return star_fail_at(l->s, lex_span(begin, l->at),
                            "Parse error: integer cannot have leading 0, got `%.*s`", (int)all.n,
                            all.p);
    struct str digits = {all.p + prefix, all.n - prefix};
    int r = star_int_parse(&l->s->arena, digits, base, &value);
    if (r < 0)
        return star_fail_at(l->s, lex_span(begin, l->at),
                            "Parse error: cannot parse `%.*s` as an integer", (int)all.n, all.p);
    l->token = T_INT;
    l->value = star_value_integer(l->s, value);
    return l->value != NULL;
}

static void lex_digits(struct star_lex *l) {
    while (lex_is_digit(lex_char(l, 0)))
        l->at++;
}

static bool lex_number(struct star_lex *l) {
    size_t begin = l->at;
    int kind = lex_char(l, 0) == '0' ? lex_char(l, 1) | 0x20 : 0;
    unsigned base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) {
        for (l->at += 2; lex_hex(lex_char(l, 0)) >= 0 && lex_hex(lex_char(l, 0)) < (int)base;)
            l->at++;
        return lex_int(l, begin, 2, base);
    }
    lex_digits(l);
    bool real = lex_char(l, 0) == '.';
    if (real) {
        l->at++;
        lex_digits(l);
    }
    int sign = lex_char(l, 1) == '+' || lex_char(l, 1) == '-';
    if ((lex_char(l, 0) | 0x20) == 'e' && lex_is_digit(lex_char(l, 1 + (size_t)sign))) {
        real = true;
        l->at += 1 + (size_t)sign;
        lex_digits(l);
    }
    return real ? lex_float(l, begin) : lex_int(l, begin, 0, 10);
}

/* -- words and symbols -- */

/* Whether the letters before a quote are a string prefix. */
static bool lex_is_prefix(struct str word) {
    static const char *const prefixes[] = {"r", "b", "f", "rb", "br", "rf", "fr"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (str_eqz(word, prefixes[i]))
            return true;
    }
    return false;
}

static bool lex_word(struct star_lex *l) {
    size_t begin = l->at;
    while (lex_is_name(lex_char(l, 0)) || lex_is_digit(lex_char(l, 0)))
        l->at++;
    struct str word = {l->s->text.p + begin, l->at - begin};
    if ((lex_char(l, 0) == '"' || lex_char(l, 0) == '\'') && lex_is_prefix(word))
        return lex_string(l, begin, word);
    for (size_t i = 0; i < ARRAY_LEN(lex_reserved); i++) {
        if (str_eqz(word, lex_reserved[i]))
            return star_fail_at(l->s, lex_span(begin, l->at),
                                "Parse error: cannot use reserved keyword `%s`", lex_reserved[i]);
    }
    l->token = T_NAME;
    l->text = word;
    for (size_t i = 0; i < ARRAY_LEN(lex_keywords); i++) {
        if (str_eqz(word, lex_keywords[i].text))
            l->token = lex_keywords[i].token;
    }
    return true;
}

/* The end of an expression in an f-string: `}` or `!r}`, `!s}`. */
static bool lex_field_end(struct star_lex *l) {
    int kind = lex_char(l, 0) == '!' ? lex_char(l, 1) : 0;
    bool converts = (kind == 'r' || kind == 's') && lex_char(l, 2) == '}';
    if (!l->field || l->brackets != 1 || (lex_char(l, 0) != '}' && !converts))
        return false;
    l->token = T_FSTRING_END;
    l->repr = kind == 'r';
    l->at += converts ? 3 : 1;
    return true;
}

static bool lex_symbol(struct star_lex *l) {
    if (lex_field_end(l))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(lex_symbols); i++) {
        size_t n = strlen(lex_symbols[i].text);
        if (l->end - l->at < n || memcmp(l->s->text.p + l->at, lex_symbols[i].text, n) != 0)
            continue;
        enum star_token t = lex_symbols[i].token;
        l->token = t;
        l->at += n;
        if (t == T_LPAREN || t == T_LBRACKET || t == T_LBRACE)
            l->brackets++;
        else if ((t == T_RPAREN || t == T_RBRACKET || t == T_RBRACE) && l->brackets > 0)
            l->brackets--;
        return true;
    }
    return lex_fail_input(l);
}

/* -- lines -- */

/* Skips blanks and comments, and line ends where they mean nothing. False after a failure. */
static bool lex_skip(struct star_lex *l) {
    for (int c; (c = lex_char(l, 0)) >= 0;) {
        if (c == '#') {
            while (lex_char(l, 0) >= 0 && lex_char(l, 0) != '\n')
                l->at++;
        } else if (c == '\t') {
            return lex_fail_tab(l, l->at);
        } else if (c == '\\' && lex_char(l, 1) == '\n') {
            l->at += 2;
        } else if (c == ' ' || (c == '\n' && l->brackets > 0)) {
            l->at++;
        } else {
            break;
        }
    }
    return true;
}

/* Measures the indentation of the next line that is not blank. */
static bool lex_indentation(struct star_lex *l) {
    size_t before = l->at > 0 ? l->at - 1 : 0, begin;
    for (;;) {
        begin = l->at;
        while (lex_char(l, 0) == ' ')
            l->at++;
        if (lex_char(l, 0) == '\t')
            return lex_fail_tab(l, begin > 0 ? begin - 1 : 0);
        if (lex_char(l, 0) == '#') {
            while (lex_char(l, 0) >= 0 && lex_char(l, 0) != '\n')
                l->at++;
        }
        if (lex_char(l, 0) != '\n')
            break;
        l->at++;
    }
    l->line_begins = false;
    uint32_t width = lex_char(l, 0) < 0 ? 0 : (uint32_t)(l->at - begin);
    uint32_t current = l->indent_count > 0 ? l->indents[l->indent_count - 1] : 0;
    l->span = lex_span(begin, l->at);
    if (width > current) {
        if (l->indent_count == LEX_INDENTS_MAX)
            return star_fail_at(l->s, l->span, "Parse error: blocks are nested too deeply");
        l->indents[l->indent_count++] = width;
        l->token = T_INDENT;
        return true;
    }
    for (; l->indent_count > 0 && l->indents[l->indent_count - 1] > width; l->indent_count--)
        l->dedents++;
    if (width != (l->indent_count > 0 ? l->indents[l->indent_count - 1] : 0))
        return star_fail_at(l->s, lex_span(before, l->at), "Parse error: incorrect indentation");
    return true;
}

static bool lex_end(struct star_lex *l) {
    l->span = lex_span(l->at, l->at);
    if (l->field)
        return star_fail_at(l->s, lex_span(l->at, l->at + 1),
                            "Parse error: f-string expression is missing closing `}`");
    if (!l->ended) {
        l->ended = true;
        l->token = T_NEWLINE;
        return true;
    }
    if (l->indent_count > 0 || l->dedents > 0) {
        if (l->dedents > 0)
            l->dedents--;
        else
            l->indent_count--;
        l->token = T_DEDENT;
        return true;
    }
    l->token = T_EOF;
    return true;
}

static bool lex_token(struct star_lex *l) {
    int c = lex_char(l, 0);
    if (c < 0)
        return lex_end(l);
    size_t begin = l->at;
    bool good;
    if (c == '\n') {
        l->token = T_NEWLINE;
        l->line_begins = true;
        l->at++;
        good = true;
    } else if (c == '"' || c == '\'') {
        good = lex_string(l, begin, STR_LIT(""));
    } else if (lex_is_digit(c) || (c == '.' && lex_is_digit(lex_char(l, 1)))) {
        good = lex_number(l);
    } else if (lex_is_name(c)) {
        good = lex_word(l);
    } else {
        good = lex_symbol(l);
    }
    l->span = lex_span(begin, l->at);
    return good;
}

bool star_lex_next(struct star_lex *l) {
    if (!star_work(l->s, 1))
        return false;
    l->value = NULL;
    l->token = T_EOF;
    if (l->line_begins && l->brackets == 0) {
        if (!lex_indentation(l))
            return false;
        if (l->token == T_INDENT)
            return true;
    }
    if (l->dedents > 0) {
        l->dedents--;
        l->token = T_DEDENT;
        l->span = lex_span(l->at, l->at);
        return true;
    }
    bool first = l->at == 0 || l->s->text.p[l->at - 1] == '\n';
    if (!lex_skip(l))
        return false;
    if (first && lex_char(l, 0) < 0 && !l->field) /* the last line has its end */
        l->ended = true;
    return lex_token(l);
}

bool star_lex_begin(struct star_lex *l, struct star *s) {
    *l = (struct star_lex){.s = s, .end = s->text.n, .line_begins = true};
    return star_lex_next(l);
}
