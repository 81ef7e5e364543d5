#pragma once
/*
 * TOML 1.0.0 reader. One pass over a text makes a tree of values in the caller's arena; nothing in
 * the tree points into the text. Members keep the order of the text.
 *
 * Refused besides syntax errors: invalid UTF-8, control characters, a key or table defined twice in
 * any of the ways that TOML names, integers beyond 64 bits, floats beyond the range of a double,
 * dates and times that do not exist, and whatever exceeds the limits below.
 */

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define TOML_TEXT_MAX (1u << 20)   /* bytes of a text */
#define TOML_DEPTH_MAX 80          /* tables and arrays around a value */
#define TOML_VALUES_MAX 65536      /* values of a text; tables and arrays count too */
#define TOML_ARENA_MAX (32u << 20) /* maximum of an arena that holds any text within the limits */

enum toml_type {
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOLEAN,
    TOML_OFFSET_DATETIME,
    TOML_LOCAL_DATETIME,
    TOML_LOCAL_DATE,
    TOML_LOCAL_TIME,
    TOML_ARRAY,
    TOML_TABLE,
};

struct toml_value {
    struct toml_value *next; /* the next member of the table or element of the array; or NULL */
    struct str key;          /* of a member of a table; a NUL follows. Keys may contain NUL */
    union {
        struct str text; /* TOML_STRING; dates and times, with 'T' and 'Z'. A NUL follows */
        int64_t integer;
        double number; /* TOML_FLOAT */
        bool boolean;
        struct {
            struct toml_value *first, *last; /* members or elements; NULL if there are none */
        } children;
    };
    uint32_t line;      /* where the value or the header of the table begins; the first is 1 */
    uint32_t count;     /* members or elements */
    uint16_t depth;     /* tables and arrays around it */
    uint8_t type;       /* enum toml_type */
    uint8_t definition; /* for the reader: how the text defined a table or an array */
};

/*
 * Parses a text into *root, a table that lives as long as the arena. 0; -EINVAL with a message
 * "line L, column C: REASON" (columns count characters), code ERR_INVALID_PARAMS; -ENOMEM above
 * the arena's maximum or out of memory, with a message. After a failure *root is NULL, and the
 * arena holds garbage until it is reset.
 */
MUST_CHECK int toml_parse(struct arena *a, struct str text, const struct toml_value **root,
                          struct err *e);

/* Walks the members of a table or the elements of an array. */
#define toml_for_each(v, container)                                                                \
    for (const struct toml_value *v = (container)->children.first; v != NULL; v = v->next)

/* The member `key` of a table, or NULL. Takes time in proportion to the members. */
const struct toml_value *toml_get(const struct toml_value *table, const char *key);

/* "a string", "an integer" and so on, for messages. */
const char *toml_type_name(enum toml_type type);

/*
 * Typed reading. `name` is how the message calls the value. 0, or -EINVAL with "line L: `NAME` must
 * be a string, not an integer" or the like. toml_read_number() takes integers too.
 */
MUST_CHECK int toml_read_string(const struct toml_value *v, const char *name, struct str *out,
                                struct err *e);
MUST_CHECK int toml_read_integer(const struct toml_value *v, const char *name, int64_t *out,
                                 struct err *e);
MUST_CHECK int toml_read_number(const struct toml_value *v, const char *name, double *out,
                                struct err *e);
MUST_CHECK int toml_read_boolean(const struct toml_value *v, const char *name, bool *out,
                                 struct err *e);

/* Checks for an array or a table, as the calls above do. */
MUST_CHECK int toml_expect(const struct toml_value *v, const char *name, enum toml_type type,
                           struct err *e);

/* Refuses members of a table other than the `n` known ones: "line L: unknown key `X`, expected one
 * of ...". 0 or -EINVAL. */
MUST_CHECK int toml_only(const struct toml_value *table, const char *const *known, size_t n,
                         struct err *e);
