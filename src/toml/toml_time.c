#include "toml/toml_internal.h"

/* Reads exactly n digits, up to `max`, from the front. */
static bool time_digits(struct str *s, size_t n, unsigned max, unsigned *out) {
    *out = 0;
    if (s->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        *out = *out * 10 + (unsigned)(s->p[i] - '0');
    }
    str_take(s, n);
    return *out <= max;
}

static bool time_char(struct str *s, char c) {
    if (s->n == 0 || s->p[0] != c)
        return false;
    str_take(s, 1);
    return true;
}

/* YYYY-MM-DD */
static bool time_date(struct str *s) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned year, month, day;
    if (!time_digits(s, 4, 9999, &year) || !time_char(s, '-') || !time_digits(s, 2, 12, &month) ||
        !time_char(s, '-') || !time_digits(s, 2, 31, &day) || month == 0 || day == 0)
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (unsigned)(leap && month == 2);
}

/* HH:MM:SS, and a fraction of a second. Second 60 is a leap second. */
static bool time_of_day(struct str *s) {
    unsigned n;
    if (!time_digits(s, 2, 23, &n) || !time_char(s, ':') || !time_digits(s, 2, 59, &n) ||
        !time_char(s, ':') || !time_digits(s, 2, 60, &n))
        return false;
    if (!time_char(s, '.'))
        return true;
    if (!time_digits(s, 1, 9, &n))
        return false;
    while (s->n > 0 && s->p[0] >= '0' && s->p[0] <= '9')
        str_take(s, 1);
    return true;
}

/* Z, or +HH:MM */
static bool time_offset(struct str *s) {
    unsigned n;
    if (time_char(s, 'Z') || time_char(s, 'z'))
        return true;
    return (time_char(s, '+') || time_char(s, '-')) && time_digits(s, 2, 23, &n) &&
           time_char(s, ':') && time_digits(s, 2, 59, &n);
}

bool toml_time_is_one(struct str word) {
    unsigned n;
    struct str date = word, time = word;
    return (time_digits(&date, 4, 9999, &n) && time_char(&date, '-')) ||
           (time_digits(&time, 2, 99, &n) && time_char(&time, ':'));
}

const char *toml_time_check(struct str word, enum toml_type *type) {
    if (word.n > 2 && word.p[2] == ':') {
        *type = TOML_LOCAL_TIME;
        return time_of_day(&word) && word.n == 0 ? NULL : "is not a valid time";
    }
    *type = TOML_LOCAL_DATE;
    if (!time_date(&word))
        return "is not a valid date";
    if (word.n == 0)
        return NULL;
    *type = TOML_LOCAL_DATETIME;
    if (!(time_char(&word, 'T') || time_char(&word, 't') || time_char(&word, ' ')) ||
        !time_of_day(&word))
        return "is not a valid date and time";
    if (word.n == 0)
        return NULL;
    *type = TOML_OFFSET_DATETIME;
    return time_offset(&word) && word.n == 0 ? NULL : "has no valid offset from UTC";
}
