#include "json/json_dup.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Up to so many members comparing every pair is cheaper than hashing. */
#define JSON_DUP_PAIRWISE 16

void json_dup_fini(struct json_dup *s) {
    free(s->table);
    s->table = NULL;
    s->cap = 0;
}

/* SipHash keyed with the seed: a client that does not know it cannot prepare collisions. */
static uint64_t json_dup_hash(uint64_t seed, const struct json_node *key) {
    const uint64_t k[2] = {seed, ~seed};
    uint64_t v;
    _Static_assert(crypto_shorthash_KEYBYTES == sizeof k && crypto_shorthash_BYTES == sizeof v, "");
    crypto_shorthash((unsigned char *)&v, (const unsigned char *)key->p, key->n,
                     (const unsigned char *)k);
    return v;
}

static const struct json_node *json_dup_pairwise(const struct json_node *object) {
    json_for_each_member(k, object) {
        for (const struct json_node *q = object + 1; q < k; q = json_next(q + 1)) {
            if (q->n == k->n && memcmp(q->p, k->p, k->n) == 0)
                return k;
        }
    }
    return NULL;
}

int json_dup_find(struct json_dup *s, const struct json_node *object,
                  const struct json_node **dup) {
    *dup = NULL;
    if (object->count <= JSON_DUP_PAIRWISE) {
        if (object->count > 1)
            *dup = json_dup_pairwise(object);
        return 0;
    }
    size_t slots = (size_t)2 << (32 - __builtin_clz(object->count));
    if (slots > s->cap) {
        json_dup_fini(s);
        s->table = malloc(slots * sizeof *s->table);
        if (s->table == NULL)
            return -ENOMEM;
        s->cap = slots;
    }
    memset(s->table, 0, slots * sizeof *s->table);
    json_for_each_member(k, object) {
        size_t i = json_dup_hash(s->seed, k) & (slots - 1);
        for (; s->table[i] != 0; i = (i + 1) & (slots - 1)) {
            const struct json_node *q = object + s->table[i];
            if (q->n == k->n && memcmp(q->p, k->p, k->n) == 0) {
                *dup = k;
                return 0;
            }
        }
        s->table[i] = (uint32_t)(k - object);
    }
    return 0;
}
