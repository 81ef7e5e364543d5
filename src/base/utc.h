#pragma once
/* Time of day in UTC; the C library's would link all time zones. */

#include <stdint.h>
#include <time.h>

struct utc {
    int64_t year;
    unsigned month, day;           /* 1 to 12, 1 to 31 */
    unsigned hour, minute, second; /* no leap seconds */
    unsigned weekday;              /* 0 = Sunday */
};

/* The UTC time `t` seconds after the start of 1970 (before it, if negative). */
struct utc utc_of(int64_t t);

/* The time of day now, in milliseconds. */
int64_t utc_now_ms(void);

#define UTC_TEXT_LEN 24 /* of "2026-11-16T01:02:03.456Z" */

/* Writes that form, to the millisecond; years 0 to 9999. NUL-terminated. */
void utc_text(char dst[UTC_TEXT_LEN + 1], const struct timespec *ts);
