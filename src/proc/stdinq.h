#pragma once
/*
 * Input on its way to a process: a bounded queue in front of a non-blocking descriptor, and the
 * write ids that it has seen. Maxima: the queue takes a chunk while fewer than STDINQ_CHUNKS_MAX
 * chunks and STDINQ_BYTES_MAX bytes wait, so it holds at most STDINQ_BYTES_MAX and one chunk;
 * STDINQ_IDS_MAX write ids of 16 bytes, of which the oldest goes first.
 */

#include "base/list.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define STDINQ_CHUNKS_MAX 128
#define STDINQ_BYTES_MAX (1024 * 1024)
#define STDINQ_IDS_MAX 4096

/* Digest of a write id, keyed by the server. */
struct stdinq_id {
    uint64_t lo, hi;
};

struct stdinq {
    struct list chunks; /* struct stdinq_chunk, oldest first */
    size_t count, bytes;
    uint64_t *ids;           /* `ids_cap` low words, then as many high words; owned */
    size_t ids_len, ids_cap; /* a ring once ids_len == STDINQ_IDS_MAX */
    size_t ids_next;         /* slot the next id goes to */
};

void stdinq_init(struct stdinq *q);
void stdinq_fini(struct stdinq *q);

struct stdinq_id stdinq_digest(const uint8_t key[16], struct str write_id);

/* Whether it has seen that id. */
bool stdinq_seen(const struct stdinq *q, struct stdinq_id id);

/* Remembers an id. 0 or -ENOMEM. */
MUST_CHECK int stdinq_remember(struct stdinq *q, struct stdinq_id id);

/* Whether it takes no further chunk now. */
static inline bool stdinq_full(const struct stdinq *q) {
    return q->count >= STDINQ_CHUNKS_MAX || q->bytes >= STDINQ_BYTES_MAX;
}

/*
 * Takes a copy of n bytes: if nothing waits, writes as much as `fd` accepts; queues the rest. 0;
 * -EPIPE: nobody will ever read, the queue is dropped; -ENOMEM: nothing was written.
 */
MUST_CHECK int stdinq_write(struct stdinq *q, int fd, const char *data, size_t n);

/* Writes while `fd` accepts. 0 (see q->count), or -EPIPE with the queue dropped. */
MUST_CHECK int stdinq_flush(struct stdinq *q, int fd);

/* Drops all waiting input. */
void stdinq_drop(struct stdinq *q);
