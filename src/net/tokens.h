#pragma once
/*
 * Several capability tokens with names: a line for each, "NAME TOKEN" or "NAME sha256:HEX". Empty
 * lines and lines that begin with '#' do not count. Two lines may have one name, so that the old
 * and the new token are valid while clients change over. The server keeps digests only.
 */

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define TOKENS_MAX 64      /* lines */
#define TOKENS_NAME_MAX 64 /* bytes of a name: letters, digits, '.', '_', '-' */

struct tokens {
    size_t count; /* >= 1 */
    struct token {
        char name[TOKENS_NAME_MAX + 1];
        uint8_t digest[32]; /* SHA-256 */
    } item[TOKENS_MAX];
};

/* 0 and *out, to be freed; or -errno with e set ("line N: ..."). The text of e holds no token. */
MUST_CHECK int tokens_parse(struct str text, struct tokens **out, struct err *e);

/* The name of the token with that digest, or NULL. Takes as long for any digest. */
const char *tokens_find(const struct tokens *t, const uint8_t digest[32]);

/* Reads 64 hexadecimal digits. */
bool tokens_hex(struct str text, uint8_t digest[32]);
