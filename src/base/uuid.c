#include "base/uuid.h"

#include <ctype.h>
#include <sodium.h>

/* 32 hex digits to the hyphenated form. */
static void uuid_format(const char hex[32], char out[UUID_LEN + 1]) {
    size_t n = 0;
    for (size_t i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[n++] = '-';
        out[n++] = (char)tolower((unsigned char)hex[i]);
    }
    out[n] = '\0';
}

void uuid_random(char out[UUID_LEN + 1]) {
    unsigned char b[16];
    randombytes_buf(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    char hex[33];
    sodium_bin2hex(hex, sizeof hex, b, sizeof b);
    uuid_format(hex, out);
}

bool uuid_parse(struct str s, char out[UUID_LEN + 1]) {
    if (s.n == 9 + UUID_LEN && memcmp(s.p, "urn:uuid:", 9) == 0)
        s = (struct str){s.p + 9, s.n - 9};
    else if (s.n == UUID_LEN + 2 && s.p[0] == '{' && s.p[s.n - 1] == '}')
        s = (struct str){s.p + 1, s.n - 2};
    if (s.n != 32 && s.n != UUID_LEN)
        return false;
    char hex[32];
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool hyphen = s.n == UUID_LEN && (i == 8 || i == 13 || i == 18 || i == 23);
        if (hyphen ? s.p[i] != '-' : !isxdigit((unsigned char)s.p[i]))
            return false;
        if (!hyphen)
            hex[n++] = s.p[i];
    }
    uuid_format(hex, out);
    return true;
}
