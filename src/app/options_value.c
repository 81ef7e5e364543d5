/* Values of options: numbers, times, choices and host names. */

#include "app/options_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOST_NAME_BYTES_MAX 253
#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

static const char not_a_number[] = "not a whole number";

/* Digits only, a leading plus allowed. NULL or the reason. */
static const char *parse_u64(const char *s, uint64_t *v) {
    s += *s == '+';
    if (*s == '\0')
        return not_a_number;
    uint64_t n = 0;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return not_a_number;
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n)) {
            *v = UINT64_MAX;
            return s[strspn(s, "0123456789")] == '\0' ? "the number is too large" : not_a_number;
        }
    }
    *v = n;
    return NULL;
}

/* The digits after the point as milliseconds, rounded up: only zero itself becomes zero. */
static bool parse_fraction(const char *s, uint64_t *ms) {
    uint64_t scale = 100;
    bool rest = false;
    *ms = 0;
    if (*s == '\0')
        return false;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return false;
        uint64_t digit = (uint64_t)(*s - '0');
        *ms += digit * scale;
        rest |= scale == 0 && digit != 0;
        scale /= 10;
    }
    *ms += rest;
    return true;
}

/* Seconds with a fraction as milliseconds; UINT64_MAX when there are too many. */
static bool parse_seconds(const char *value, uint64_t *v) {
    uint64_t ms = 0, seconds = 0;
    size_t n = strspn(value, "0123456789");
    if (n == 0 || (value[n] != '\0' && value[n] != '.'))
        return false;
    if (value[n] == '.' && !parse_fraction(value + n + 1, &ms))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (seconds > UINT64_MAX / 100000) {
            *v = UINT64_MAX;
            return true;
        }
        seconds = seconds * 10 + (uint64_t)(value[i] - '0');
    }
    *v = seconds * 1000 + ms;
    return true;
}

const char *options_value_range(const struct option_spec *spec, uint64_t v, bool in_ms,
                                char reason[OPTIONS_REASON_MAX]) {
    if (v >= spec->min && v <= spec->max)
        return NULL;
    uint64_t unit = spec->kind == OPTION_SECONDS && !in_ms ? 1000 : 1;
    if (spec->min == 0)
        snprintf(reason, OPTIONS_REASON_MAX, "must be at most %" PRIu64, spec->max / unit);
    else if (spec->max == UINT64_MAX)
        snprintf(reason, OPTIONS_REASON_MAX, "must be at least %" PRIu64, spec->min);
    else
        snprintf(reason, OPTIONS_REASON_MAX, "must be between %" PRIu64 " and %" PRIu64,
                 spec->min / unit, spec->max / unit);
    return reason;
}

const char *options_value_number(const struct option_spec *spec, const char *text, uint64_t *v,
                                 char reason[OPTIONS_REASON_MAX]) {
    if (spec->kind == OPTION_SECONDS)
        return parse_seconds(text, v) ? options_value_range(spec, *v, false, reason)
                                      : "not a number";
    const char *bad = parse_u64(text, v);
    if (bad == not_a_number || (bad != NULL && spec->max == UINT64_MAX))
        return bad;
    return options_value_range(spec, *v, false, reason);
}

/* Why a text is no host name, or NULL. */
static const char *value_check_host(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    size_t n = strlen(name);
    if (n == 0 || n > HOST_NAME_BYTES_MAX || strspn(name, allowed) != n)
        return "not a host name";
    return NULL;
}

const char *options_value_add(struct options_args *args, enum option_kind kind, const char *text) {
    struct options_list *list = options_value_list(args, kind);
    struct forwarded scratch = {0};
    const char *bad = kind != OPTION_NETS ? value_check_host(text)
                      : forwarded_add(&scratch, text) < 0
                          ? "not an address, a network such as 10.0.0.0/8, or `unix`"
                          : NULL;
    if (bad != NULL)
        return bad;
    if (list->count == ARRAY_LEN(list->items))
        return kind != OPTION_NETS ? "more than " TEXT_OF(OPTIONS_LIST_MAX) " names"
                                   : "more than " TEXT_OF(OPTIONS_LIST_MAX) " networks";
    list->items[list->count++] = text;
    return NULL;
}

bool options_value_is_choice(const char *value, const char *const *choices) {
    while (*choices != NULL && strcmp(value, *choices) != 0)
        choices++;
    return *choices != NULL;
}
