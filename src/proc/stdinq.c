#include "proc/stdinq.h"

#include <errno.h>
#include <sodium.h>

struct stdinq_chunk {
    struct list node;
    size_t at, n; /* bytes [at, n) wait */
    char data[];
};

void stdinq_init(struct stdinq *q) {
    *q = (struct stdinq){0};
    list_init(&q->chunks);
}

void stdinq_drop(struct stdinq *q) {
    for (struct list *n; (n = list_first(&q->chunks)) != NULL;) {
        list_remove(n);
        free(list_entry(n, struct stdinq_chunk, node));
    }
    q->count = q->bytes = 0;
}

void stdinq_fini(struct stdinq *q) {
    stdinq_drop(q);
    free(q->ids);
    q->ids = NULL;
    q->ids_len = q->ids_cap = q->ids_next = 0;
}

/* -- write ids -- */

struct stdinq_id stdinq_digest(const uint8_t key[16], struct str write_id) {
    struct stdinq_id id;
    _Static_assert(crypto_shorthash_siphashx24_BYTES == sizeof id, "128-bit SipHash");
    crypto_shorthash_siphashx24((unsigned char *)&id,
                                (const unsigned char *)(write_id.n ? write_id.p : ""), write_id.n,
                                key);
    return id;
}

bool stdinq_seen(const struct stdinq *q, struct stdinq_id id) {
    for (size_t i = 0; i < q->ids_len; i++) {
        if (q->ids[i] == id.lo && q->ids[q->ids_cap + i] == id.hi)
            return true;
    }
    return false;
}

static int stdinq_grow_ids(struct stdinq *q) {
    size_t cap = q->ids_cap ? q->ids_cap * 2 : 16;
    uint64_t *ids = reallocarray(NULL, cap * 2, sizeof *ids);
    if (ids == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < q->ids_len; i++) {
        ids[i] = q->ids[i];
        ids[cap + i] = q->ids[q->ids_cap + i];
    }
    free(q->ids);
    q->ids = ids;
    q->ids_cap = cap;
    return 0;
}

int stdinq_remember(struct stdinq *q, struct stdinq_id id) {
    if (q->ids_len == q->ids_cap && q->ids_cap < STDINQ_IDS_MAX) {
        int r = stdinq_grow_ids(q);
        if (r < 0)
            return r;
    }
    q->ids[q->ids_next] = id.lo;
    q->ids[q->ids_cap + q->ids_next] = id.hi;
    q->ids_next = (q->ids_next + 1) % STDINQ_IDS_MAX;
    q->ids_len = MAX(q->ids_len, q->ids_next ? q->ids_next : (size_t)STDINQ_IDS_MAX);
    return 0;
}

/* -- bytes -- */

/* Bytes written, 0 when fd takes no more now, -EPIPE when it never will again. */
static ssize_t stdinq_try(int fd, const char *p, size_t n) {
    ssize_t w;
    do
        w = write(fd, p, n);
    while (w < 0 && errno == EINTR);
    if (w >= 0)
        return w;
    return errno == EAGAIN ? 0 : -EPIPE;
}

int stdinq_write(struct stdinq *q, int fd, const char *data, size_t n) {
    struct stdinq_chunk *c = malloc(sizeof *c + n);
    if (c == NULL)
        return -ENOMEM;
    size_t done = 0;
    if (q->count == 0) {
        ssize_t w = stdinq_try(fd, data, n);
        if (w < 0) {
            free(c);
            return (int)w;
        }
        done = (size_t)w;
    }
    if (done == n) {
        free(c);
        return 0;
    }
    c->at = 0;
    c->n = n - done;
    memcpy(c->data, data + done, n - done);
    list_append(&q->chunks, &c->node);
    q->count++;
    q->bytes += n - done;
    return 0;
}

int stdinq_flush(struct stdinq *q, int fd) {
    for (struct list *node; (node = list_first(&q->chunks)) != NULL;) {
        struct stdinq_chunk *c = list_entry(node, struct stdinq_chunk, node);
        ssize_t w = stdinq_try(fd, c->data + c->at, c->n - c->at);
        if (w < 0) {
            stdinq_drop(q);
            return (int)w;
        }
        c->at += (size_t)w;
        q->bytes -= (size_t)w;
        if (c->at < c->n)
            return 0;
        list_remove(node);
        free(c);
        q->count--;
    }
    return 0;
}
