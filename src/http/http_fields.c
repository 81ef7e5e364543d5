#include "http/http_fields.h"

static bool http_fields_is_token_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http_fields_is_token(struct str s) {
    bool good = s.n > 0 && s.n <= HTTP_FIELDS_NAME_MAX;
    for (size_t i = 0; good && i < s.n; i++)
        good = http_fields_is_token_char(s.p[i]);
    return good;
}

bool http_fields_is_name(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return false;
    }
    return http_fields_is_token(s);
}

bool http_fields_is_value(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

bool http_fields_is_visible(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    }
    return http_fields_is_value(s);
}

void http_fields_lower(char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] | 0x20);
    }
}

const struct http_field *http_fields_find(const struct http_field *f, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (str_eqz(f[i].name, name))
            return &f[i];
    }
    return NULL;
}

size_t http_fields_drop(struct http_field *f, size_t n, const char *name) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        if (!str_eqz(f[i].name, name))
            f[left++] = f[i];
    }
    return left;
}

void http_fields_group(struct http_field *f, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t end = i + 1; /* behind the group of f[i] */
        for (size_t k = i + 1; k < n; k++) {
            if (!str_eq(f[i].name, f[k].name))
                continue;
            struct http_field moved = f[k];
            memmove(&f[end + 1], &f[end], (k - end) * sizeof *f);
            f[end++] = moved;
        }
        i = end - 1;
    }
}
