#pragma once
/*
 * Input on its way to a process: a bounded queue in front of a non-blocking descriptor, and the
 * memory of write ids for de-duplication.
 * Maxima: a chunk is taken while fewer than INQ_CHUNKS_MAX chunks and INQ_BYTES_MAX bytes wait (so
 * at most INQ_BYTES_MAX and one chunk); INQ_IDS_MAX write ids of 16 bytes, oldest forgotten first.
 */

#include "base/list.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define INQ_CHUNKS_MAX 128
#define INQ_BYTES_MAX (1024 * 1024)
#define INQ_IDS_MAX 4096

/* Digest of a write id, made with a key of the server. */
struct inq_id {
    uint64_t lo, hi;
};

struct inq {
    struct list chunks; /* struct inq_chunk, oldest first */
    size_t count, bytes;
    uint64_t *ids;           /* `ids_cap` low words, then as many high words; owned */
    size_t ids_len, ids_cap; /* a ring once ids_len == INQ_IDS_MAX */
    size_t ids_next;         /* slot the next id goes to */
};

void inq_init(struct inq *q);
void inq_fini(struct inq *q);

struct inq_id inq_digest(const uint8_t key[16], struct str write_id);

/* Whether that id was remembered. */
bool inq_seen(const struct inq *q, struct inq_id id);

/* Remembers an id. 0 or -ENOMEM. */
MUST_CHECK int inq_remember(struct inq *q, struct inq_id id);

/* Whether another chunk is taken now. */
static inline bool inq_full(const struct inq *q) {
    return q->count >= INQ_CHUNKS_MAX || q->bytes >= INQ_BYTES_MAX;
}

/*
 * Takes n bytes (copied): writes to `fd` what it accepts at once when nothing waits, queues the
 * rest. 0; -EPIPE when nobody will ever read (queue dropped); -ENOMEM (nothing was written).
 */
MUST_CHECK int inq_write(struct inq *q, int fd, const char *data, size_t n);

/* Writes on while fd accepts. 0 (look at q->count), or -EPIPE with the queue dropped. */
MUST_CHECK int inq_flush(struct inq *q, int fd);

/* Forgets what waits. */
void inq_drop(struct inq *q);
