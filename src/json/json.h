#pragma once
/*
 * JSON reader. One pass over the text makes a flat array of nodes in document order, so a walk
 * needs no pointers. Strings are slices of the text; strings with escapes are decoded into the
 * document's arena, so `p`/`n` of a string or key is always the decoded value.
 *
 * Accepted: RFC 8259 with the protocol's limits (JSON_MAX_VALUES, JSON_MAX_DEPTH). Refused besides
 * syntax errors: duplicate keys in one object (compared decoded), lone surrogate escapes, raw
 * control characters in strings. Of numbers only the syntax is checked; json_u64() checks ranges.
 */

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define JSON_MAX_VALUES 262144 /* values per message; keys do not count */
#define JSON_MAX_DEPTH 127     /* nested containers */

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER, /* p/n: the text of the number */
    JSON_STRING, /* p/n: the decoded string */
    JSON_ARRAY,  /* count: elements */
    JSON_OBJECT, /* count: members; children alternate key (a JSON_STRING node), value */
};

struct json_node {
    const char *p;  /* text of a number or string; borrowed from the text or the arena */
    size_t n;       /* its length */
    uint32_t skip;  /* nodes in this subtree, itself included: node + skip follows it */
    uint32_t count; /* elements or members of a container */
    enum json_type type;
};

struct json_doc {
    struct json_node *nodes; /* owned, reused by the next parse; nodes[0] is the root */
    size_t len, cap;
    struct arena arena;    /* decoded strings of the last parse */
    uint64_t seed;         /* for the duplicate-key hash; best random */
    bool keeps_duplicates; /* of keys, instead of refusing them; set it after json_doc_init() */
};

/* `max_text` is the longest text to parse; it bounds the arena. Allocates nothing. */
void json_doc_init(struct json_doc *d, size_t max_text, uint64_t seed);
void json_doc_fini(struct json_doc *d);

/* Frees memory beyond the needs of small messages. Call after a message was handled. */
void json_doc_trim(struct json_doc *d);

/*
 * Parses n bytes of valid UTF-8 (the caller checked). The nodes borrow from `text`, which must
 * outlive their use. 0; -EINVAL with the reason and position in e (code ERR_INVALID_REQUEST);
 * -ENOMEM. Nodes of an earlier parse become invalid.
 */
MUST_CHECK int json_parse(struct json_doc *d, const char *text, size_t n, struct err *e);

static inline const struct json_node *json_root(const struct json_doc *d) {
    return &d->nodes[0];
}

/* The node after this subtree (next sibling, or next key after a value). */
static inline const struct json_node *json_next(const struct json_node *v) {
    return v + v->skip;
}

static inline struct str json_str(const struct json_node *v) {
    return (struct str){v->p, v->n};
}

/* The value of member `key` of an object, or NULL. */
const struct json_node *json_get(const struct json_node *object, const char *key);

/* Like json_get() for a document that keeps duplicates. False: the key is there twice. */
MUST_CHECK bool json_get_only(const struct json_node *object, const char *key,
                              const struct json_node **value);

/*
 * Walk: json_for_each(v, array) over elements; json_for_each_member(k, object) over keys, the
 * value being k + 1.
 */
#define json_for_each(v, array)                                                                    \
    for (const struct json_node *v = (array) + 1, *v##_end = json_next(array); v < v##_end;        \
         v = json_next(v))
#define json_for_each_member(k, object)                                                            \
    for (const struct json_node *k = (object) + 1, *k##_end = json_next(object); k < k##_end;      \
         k = json_next(k + 1))

/* A JSON integer without fraction or exponent ("-0" is 0). 0, or -EINVAL / -ERANGE. */
MUST_CHECK int json_u64(const struct json_node *v, uint64_t *out);
MUST_CHECK int json_i64(const struct json_node *v, int64_t *out);
