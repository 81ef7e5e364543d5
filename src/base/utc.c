#include "base/utc.h"

#include <stdio.h>

#define DAY 86400
#define ERA 146097 /* days of 400 years */

/* Division that rounds down, for a positive divisor. */
static int64_t utc_floor(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

struct utc utc_of(int64_t t) {
    int64_t days = utc_floor(t, DAY);
    unsigned rest = (unsigned)(t - days * DAY);
    struct utc u = {.hour = rest / 3600, .minute = rest / 60 % 60, .second = rest % 60};
    u.weekday = (unsigned)(days + 4 - utc_floor(days + 4, 7) * 7);

    /* Years begin in March here, so that the leap day is the last one. */
    int64_t shifted = days + 719468; /* since 0000-03-01 */
    int64_t era = utc_floor(shifted, ERA);
    unsigned doe = (unsigned)(shifted - era * ERA); /* day of the era */
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / (ERA - 1)) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned month = (5 * doy + 2) / 153; /* 0 = March */
    u.day = doy - (153 * month + 2) / 5 + 1;
    u.month = month < 10 ? month + 3 : month - 9;
    u.year = era * 400 + yoe + (u.month <= 2);
    return u;
}

void utc_text(char dst[UTC_TEXT_LEN + 1], const struct timespec *ts) {
    struct utc u = utc_of(ts->tv_sec);
    snprintf(dst, UTC_TEXT_LEN + 1, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)u.year % 10000,
             u.month % 100, u.day % 100, u.hour % 100, u.minute % 100, u.second % 100,
             (unsigned)(ts->tv_nsec / 1000000) % 1000);
}

int64_t utc_now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
