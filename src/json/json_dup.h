#pragma once
/* Search for duplicate keys in a parsed object, safe against keys chosen to collide. */

#include "json/json.h"

/* Memory and key of the search. Zero it, set the seed, reuse it for all objects of a document. */
struct json_dup {
    uint32_t *table; /* owned; offsets of keys from their object, 0 is a free slot */
    size_t cap;      /* slots allocated */
    uint64_t seed;
};

void json_dup_fini(struct json_dup *s);

/*
 * Looks for two equal keys among the members of `object`. 0, with the later one in *dup or NULL; or
 * -ENOMEM. Time is linear in the length of the keys.
 */
MUST_CHECK int json_dup_find(struct json_dup *s, const struct json_node *object,
                             const struct json_node **dup);
