#pragma once
/* SHA-1, for the WebSocket handshake only (not a security use). */

#include <stddef.h>
#include <stdint.h>

struct sha1_state {
    uint32_t h[5];
    uint64_t total;    /* bytes hashed so far */
    uint8_t block[64]; /* bytes not yet hashed: total % 64 of them */
};

/* The digest of n bytes. */
void sha1(const void *data, size_t n, uint8_t out[20]);

/* The digest of data that comes in pieces. */
void sha1_init(struct sha1_state *s);
void sha1_update(struct sha1_state *s, const void *data, size_t n);
void sha1_final(struct sha1_state *s, uint8_t out[20]);
