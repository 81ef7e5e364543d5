#pragma once
/* Slices: a borrowed run of bytes, not NUL-terminated. */

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct str {
    const char *p; /* borrowed; may be NULL when n is 0 */
    size_t n;
};

#define STR_LIT(s) ((struct str){(s), sizeof(s) - 1})

static inline struct str str_of(const char *z) {
    return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_eqz(struct str a, const char *z) {
    return str_eq(a, str_of(z));
}

/* ASCII case-insensitive equality. */
static inline bool str_ieqz(struct str a, const char *z) {
    return a.n == strlen(z) && (a.n == 0 || strncasecmp(a.p, z, a.n) == 0);
}

/* A NUL-terminated copy to be freed, or NULL. */
static inline char *str_dup(struct str s) {
    char *z = malloc(s.n + 1);
    if (z != NULL && s.n > 0)
        memcpy(z, s.p, s.n);
    if (z != NULL)
        z[s.n] = '\0';
    return z;
}

/* Cuts n bytes off the front and returns them; NULL if there are fewer. */
static inline const char *str_take(struct str *s, size_t n) {
    if (s->n < n)
        return NULL;
    const char *p = s->p;
    s->p += n;
    s->n -= n;
    return p;
}

/* Cuts the next line off *rest, without its end (LF or CR LF). False if it has no end. */
static inline bool str_take_line(struct str *rest, struct str *line) {
    const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    if (end == NULL)
        return false;
    size_t n = (size_t)(end - rest->p);
    *line = (struct str){rest->p, n > 0 && rest->p[n - 1] == '\r' ? n - 1 : n};
    rest->p += n + 1;
    rest->n -= n + 1;
    return true;
}

static inline bool str_has_nul(struct str s) {
    return s.n > 0 && memchr(s.p, 0, s.n) != NULL;
}

/* Without the leading and trailing ASCII white space. */
static inline struct str str_trim(struct str s) {
    while (s.n > 0 && strchr(" \t\r\n\v\f", s.p[0]) != NULL && s.p[0] != '\0') {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && strchr(" \t\r\n\v\f", s.p[s.n - 1]) != NULL && s.p[s.n - 1] != '\0')
        s.n--;
    return s;
}
