#pragma once
/*
 * Reads one YAML document. Nodes and texts live in the caller's arena. A node may be reached in
 * several ways, even from below itself (aliases), so only walk to a known depth.
 *
 * Values have the types of YAML 1.2's core schema as serde_yaml reads them, because the files are
 * written for it: `yes` is a text, `010` is no number.
 */

#include "base/arena.h"

#include <stdint.h>

#define YAML_TEXT_MAX (1u << 20) /* bytes */
#define YAML_NODES_MAX 32768     /* aliases count, too */
#define YAML_DEPTH_MAX 128
#define YAML_ANCHORS_MAX 1024
/* Enough for an arena that holds any tree. */
#define YAML_ARENA_MAX (16u << 20)

enum yaml_type { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_item;

struct yaml_node {
    enum yaml_type type;
    bool plain;                    /* a scalar without quotes, not a block */
    struct str text;               /* of a scalar; UTF-8, may contain NUL */
    struct str tag;                /* as resolved; p NULL: none */
    const struct yaml_item *first; /* of a sequence; of a mapping: key, value, key, ... */
};

struct yaml_item {
    const struct yaml_node *node;
    const struct yaml_item *next;
};

/*
 * Parses a text. *root is NULL if it holds no document. 0; -EINVAL: it is not YAML, has several
 * documents, or passes a limit; -ENOMEM, also above the arena's maximum.
 */
int yaml_parse(struct arena *a, struct str text, const struct yaml_node **root);

/* Whether the value is given but empty: a plain scalar without text. */
bool yaml_is_empty(const struct yaml_node *n);

/* Whether it stands for no value: empty, ~ or null. */
bool yaml_is_null(const struct yaml_node *n);

/* -- typed reading: 0, or -EINVAL for a value of another type -- */

/*
 * The value of a key of a mapping. *value is NULL if the key is missing. An empty value counts as
 * an empty mapping. -EINVAL if this is none, a key occurs twice, or a key is no scalar.
 */
int yaml_get(const struct yaml_node *mapping, const char *key, const struct yaml_node **value);

/* A text; p is NULL if the value is missing (n is NULL) or stands for none. */
int yaml_text(const struct yaml_node *n, struct str *out);

/* true or false; *out is -1 if the value is missing or stands for none. */
int yaml_bool(const struct yaml_node *n, int *out);

/* An integer from 0 to max; *out is -1 if the value is missing or stands for none. */
int yaml_uint(const struct yaml_node *n, uint32_t max, int64_t *out);
