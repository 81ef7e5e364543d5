#include "toml/toml_internal.h"

#include <math.h>
#include <stdlib.h>

#define NUMBER_SHOWN 64 /* bytes of a word that a message quotes */

static bool number_is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool number_is_alpha(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The word that comes next. A blank between a date and a digit belongs to a date with time. */
static struct str number_word(const struct toml_parser *p) {
    size_t n = 0;
    for (;; n++) {
        int c = toml_scan_peek(p, n);
        bool blank = c == ' ' && n == 10 && number_is_digit(toml_scan_peek(p, 11)) &&
                     toml_scan_peek(p, 4) == '-' && toml_scan_peek(p, 7) == '-';
        if (!number_is_digit(c) && !number_is_alpha(c) && !blank &&
            (c <= 0 || strchr("+-_.:", c) == NULL))
            return (struct str){p->text.p + p->at, n};
    }
}

static bool number_fail(struct toml_parser *p, struct str word, const char *why) {
    return toml_scan_fail(p, p->at, "`%.*s%s` %s", (int)MIN(word.n, (size_t)NUMBER_SHOWN), word.p,
                          word.n > NUMBER_SHOWN ? "..." : "", why);
}

static int number_digit(char c) {
    if (number_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Passes over digits of a base, which single underscores may separate; the number of bytes, or 0
 * if there are none or an underscore is misplaced. */
static size_t number_digits(struct str s, int base) {
    size_t n = 0;
    for (; n < s.n; n++) {
        bool between = n > 0 && s.p[n - 1] != '_';
        if (number_digit(s.p[n]) >= base && !(s.p[n] == '_' && between))
            break;
    }
    return n > 0 && s.p[n - 1] == '_' ? 0 : n;
}

/* Reads digits of a base, all of `s`. */
static bool number_integer(struct str s, int base, bool negative, int64_t *out) {
    int64_t value = 0; /* kept negative, since the smallest one has no positive counterpart */
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '_' && (__builtin_mul_overflow(value, base, &value) ||
                              __builtin_sub_overflow(value, number_digit(s.p[i]), &value)))
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *out = negative ? value : -value;
    return true;
}

/* Whether `s` (without a sign) has the form of a float: digits with a fraction, an exponent, or
 * both. */
static bool number_is_float(struct str s) {
    size_t n = number_digits(s, 10);
    if (n == 0 || (n > 1 && s.p[0] == '0'))
        return false;
    str_take(&s, n);
    bool fraction = s.n > 0 && s.p[0] == '.';
    if (fraction) {
        str_take(&s, 1);
        n = number_digits(s, 10);
        if (n == 0)
            return false;
        str_take(&s, n);
    }
    if (s.n == 0)
        return fraction;
    if (s.p[0] != 'e' && s.p[0] != 'E')
        return false;
    str_take(&s, 1);
    if (s.n > 0 && (s.p[0] == '+' || s.p[0] == '-'))
        str_take(&s, 1);
    return s.n > 0 && number_digits(s, 10) == s.n;
}

/* Converts a float. The program never leaves the C locale, so strtod() reads a point. */
static bool number_float(struct toml_parser *p, struct str word, struct toml_value *v) {
    char *digits = arena_alloc(p->arena, word.n + 1);
    if (digits == NULL)
        return toml_scan_memory(p);
    size_t n = 0;
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] != '_')
            digits[n++] = word.p[i];
    }
    v->type = TOML_FLOAT;
    v->number = strtod(digits, NULL);
    if (isinf(v->number))
        return number_fail(p, word, "is too large for a float");
    return true;
}

/* Reads a word with or without a sign. */
static bool number_plain(struct toml_parser *p, struct str word, struct toml_value *v) {
    struct str s = word;
    bool negative = s.p[0] == '-', sign = negative || s.p[0] == '+';
    int base = 10;
    if (sign)
        str_take(&s, 1);
    if (str_eqz(s, "inf") || str_eqz(s, "nan")) {
        v->type = TOML_FLOAT;
        v->number = copysign(s.p[0] == 'i' ? (double)INFINITY : (double)NAN, negative ? -1 : 1);
        return true;
    }
    if (number_is_float(s))
        return number_float(p, word, v);
    if (!sign && s.n > 2 && s.p[0] == '0' && strchr("xob", s.p[1]) != NULL) {
        base = s.p[1] == 'x' ? 16 : s.p[1] == 'o' ? 8 : 2;
        str_take(&s, 2);
    }
    if (s.n == 0 || number_digits(s, base) != s.n)
        return number_fail(p, word, "is not a valid value; strings need quotes");
    if (base == 10 && s.n > 1 && s.p[0] == '0')
        return number_fail(p, word, "has leading zeros");
    v->type = TOML_INTEGER;
    if (!number_integer(s, base, negative, &v->integer))
        return number_fail(p, word, "does not fit 64 bits");
    return true;
}

/* Keeps the text of a date or time, with 'T' and 'Z' as separators. */
static bool number_time(struct toml_parser *p, struct str word, struct toml_value *v) {
    enum toml_type type;
    const char *why = toml_time_check(word, &type);
    if (why != NULL)
        return number_fail(p, word, why);
    char *text = arena_strdup(p->arena, word);
    if (text == NULL)
        return toml_scan_memory(p);
    if (type == TOML_OFFSET_DATETIME || type == TOML_LOCAL_DATETIME)
        text[10] = 'T';
    if (text[word.n - 1] == 'z')
        text[word.n - 1] = 'Z';
    v->type = (uint8_t)type;
    v->text = (struct str){text, word.n};
    return true;
}

bool toml_number_read(struct toml_parser *p, struct toml_value *v) {
    struct str word = number_word(p);
    bool good = true;
    if (word.n == 0)
        return toml_scan_expected(p, "a value");
    if (str_eqz(word, "true") || str_eqz(word, "false")) {
        v->type = TOML_BOOLEAN;
        v->boolean = word.p[0] == 't';
    } else if (toml_time_is_one(word)) {
        good = number_time(p, word, v);
    } else {
        good = number_plain(p, word, v);
    }
    p->at += word.n;
    return good;
}
