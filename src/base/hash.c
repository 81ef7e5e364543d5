#include "base/hash.h"

#include <errno.h>
#include <sodium.h>

#define HASH_FIRST 16

static uint64_t hash_of(const struct hash *h, struct str key) {
    uint64_t v;
    _Static_assert(crypto_shorthash_BYTES == sizeof v, "SipHash-2-4 gives 64 bits");
    crypto_shorthash((unsigned char *)&v, (const unsigned char *)(key.n ? key.p : ""), key.n,
                     h->seed);
    return v;
}

void hash_init(struct hash *h) {
    *h = (struct hash){0};
    randombytes_buf(h->seed, sizeof h->seed);
}

void hash_fini(struct hash *h) {
    free(h->buckets);
    h->buckets = NULL;
    h->nbuckets = h->count = 0;
}

struct hash_node *hash_find(const struct hash *h, struct str key) {
    if (h->count == 0)
        return NULL;
    uint64_t v = hash_of(h, key);
    struct hash_node *n = h->buckets[v & (h->nbuckets - 1)];
    while (n != NULL && !(n->hash == v && str_eq(n->key, key)))
        n = n->next;
    return n;
}

static int hash_grow(struct hash *h) {
    size_t want = h->nbuckets ? h->nbuckets * 2 : HASH_FIRST;
    struct hash_node **fresh = calloc(want, sizeof *fresh);
    if (fresh == NULL)
        return h->nbuckets ? 0 : -ENOMEM; /* longer chains beat failing */
    for (size_t i = 0; i < h->nbuckets; i++) {
        for (struct hash_node *n = h->buckets[i], *next; n != NULL; n = next) {
            next = n->next;
            n->next = fresh[n->hash & (want - 1)];
            fresh[n->hash & (want - 1)] = n;
        }
    }
    free(h->buckets);
    h->buckets = fresh;
    h->nbuckets = want;
    return 0;
}

int hash_add(struct hash *h, struct hash_node *node, struct str key) {
    if (h->count >= h->nbuckets) {
        int r = hash_grow(h);
        if (r < 0)
            return r;
    }
    node->key = key;
    node->hash = hash_of(h, key);
    struct hash_node **slot = &h->buckets[node->hash & (h->nbuckets - 1)];
    node->next = *slot;
    *slot = node;
    h->count++;
    return 0;
}

void hash_remove(struct hash *h, struct hash_node *node) {
    struct hash_node **at = &h->buckets[node->hash & (h->nbuckets - 1)];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->next = NULL;
    if (--h->count == 0)
        hash_fini(h);
}
