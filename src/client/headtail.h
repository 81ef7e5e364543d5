#pragma once
/* The first and the last bytes of a stream, in bounded memory. */

#include <stddef.h>
#include <stdint.h>

struct headtail {
    char *head; /* owned */
    size_t head_len, head_cap, head_max;
    char *tail; /* owned; a ring once tail_len has reached tail_max */
    size_t tail_len, tail_cap, tail_max;
    size_t tail_at; /* where the next byte goes */
    uint64_t total; /* bytes that ever came */
};

/* Keeps max / 2 bytes of the beginning and as many of the end. Allocates nothing. */
void headtail_init(struct headtail *h, size_t max);
void headtail_fini(struct headtail *h);

/* Adds bytes. 0, or -ENOMEM: nothing was added. */
int headtail_put(struct headtail *h, const void *data, size_t n);

/* The number of bytes that headtail_copy() writes. */
size_t headtail_len(const struct headtail *h);

/* Copies head and tail, one behind the other. */
void headtail_copy(const struct headtail *h, char *dst);
