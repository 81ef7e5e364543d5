#pragma once
/*
 * A table of objects keyed by bytes: intrusive nodes in chained buckets. The hash is keyed
 * (SipHash) so that chosen keys cannot degrade it.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdint.h>

struct hash_node {
    struct hash_node *next;
    uint64_t hash;
    struct str key; /* borrowed: the embedding object keeps the bytes alive */
};

struct hash {
    struct hash_node **buckets; /* owned; NULL while empty */
    size_t nbuckets;            /* a power of two, or 0 */
    size_t count;
    uint8_t seed[16];
};

/* An empty table with a random seed. Allocates nothing. */
void hash_init(struct hash *h);

/* Frees the buckets; the caller owns the nodes. */
void hash_fini(struct hash *h);

/* The node with that key, or NULL. */
struct hash_node *hash_find(const struct hash *h, struct str key);

/* Adds a node; the key must not be present. 0 or -ENOMEM. */
MUST_CHECK int hash_add(struct hash *h, struct hash_node *node, struct str key);

/* Removes a node that is in the table. */
void hash_remove(struct hash *h, struct hash_node *node);
