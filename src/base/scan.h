#pragma once
/* Numbers in texts of the kernel; scanf() would double the size of a static program. */

#include <stdbool.h>
#include <stddef.h>

/* The decimal number behind `skip` words, which blanks separate. False if there is none. A minus
 * sign gives 0: the counts here are never negative. */
static inline bool scan_word(const char *p, unsigned skip, unsigned long *v) {
    for (;; skip--) {
        while (*p == ' ' || *p == '\t' || *p == '\n')
            p++;
        if (skip == 0)
            break;
        while (*p != '\0' && *p != ' ' && *p != '\t' && *p != '\n')
            p++;
    }
    bool negative = *p == '-';
    p += negative;
    *v = 0;
    bool any = false;
    for (; *p >= '0' && *p <= '9'; p++, any = true)
        *v = *v * 10 + (unsigned long)(*p - '0');
    if (negative)
        *v = 0;
    return any;
}
