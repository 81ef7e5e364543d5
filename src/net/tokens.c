#include "net/tokens.h"

#include "base/util.h"

#include <errno.h>
#include <sodium.h>

#define TOKENS_DIGEST "sha256:"

static int tokens_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool tokens_hex(struct str text, uint8_t digest[32]) {
    if (text.n != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int hi = tokens_digit(text.p[2 * i]), lo = tokens_digit(text.p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        digest[i] = (uint8_t)(hi * 16 + lo);
    }
    return true;
}

static bool tokens_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The length of the name that a line begins with; 0 = none. */
static size_t tokens_name_len(struct str line) {
    size_t n = 0;
    while (n < line.n &&
           ((line.p[n] >= 'a' && line.p[n] <= 'z') || (line.p[n] >= 'A' && line.p[n] <= 'Z') ||
            (line.p[n] >= '0' && line.p[n] <= '9') || line.p[n] == '.' || line.p[n] == '_' ||
            line.p[n] == '-'))
        n++;
    return n < line.n && n <= TOKENS_NAME_MAX && tokens_is_blank(line.p[n]) ? n : 0;
}

/* Reads the token or its digest. NULL, or why it cannot be used. */
static const char *tokens_value(struct str value, uint8_t digest[32]) {
    const size_t head = sizeof TOKENS_DIGEST - 1;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] <= ' ' || value.p[i] > '~')
            return "a token is one word of printable ASCII characters";
    }
    if (value.n >= head && memcmp(value.p, TOKENS_DIGEST, head) == 0)
        return tokens_hex((struct str){value.p + head, value.n - head}, digest)
                   ? NULL
                   : "`sha256:` wants 64 hexadecimal digits";
    crypto_hash_sha256(digest, (const unsigned char *)value.p, value.n);
    return NULL;
}

static const char *tokens_line(struct tokens *t, struct str line) {
    size_t n = tokens_name_len(line);
    if (n == 0)
        return "expected `NAME TOKEN` or `NAME sha256:HEX`, the name of at most 64 letters, "
               "digits, `.`, `_` and `-`";
    if (t->count == TOKENS_MAX)
        return "more than 64 tokens";
    struct token *item = &t->item[t->count];
    memcpy(item->name, line.p, n);
    item->name[n] = '\0';
    const char *bad = tokens_value(str_trim((struct str){line.p + n, line.n - n}), item->digest);
    if (bad == NULL && tokens_find(t, item->digest) != NULL)
        bad = "the token is in the file twice";
    t->count += bad == NULL;
    return bad;
}

int tokens_parse(struct str text, struct tokens **out, struct err *e) {
    _cleanup_free_ struct tokens *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    for (size_t number = 1; text.n > 0; number++) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end != NULL ? (size_t)(end - text.p) : text.n;
        struct str line = str_trim((struct str){text.p, n});
        const char *bad = line.n > 0 && line.p[0] != '#' ? tokens_line(t, line) : NULL;
        if (bad != NULL)
            return err_set(e, ERR_INVALID_REQUEST, "line %zu: %s", number, bad);
        n += end != NULL;
        text.p += n;
        text.n -= n;
    }
    if (t->count == 0)
        return err_set(e, ERR_INVALID_REQUEST, "no token: add a line `NAME TOKEN`");
    *out = steal_ptr(&t);
    return 0;
}

const char *tokens_find(const struct tokens *t, const uint8_t digest[32]) {
    const char *name = NULL;
    for (size_t i = 0; i < t->count; i++) {
        if (sodium_memcmp(digest, t->item[i].digest, 32) == 0)
            name = t->item[i].name;
    }
    return name;
}
