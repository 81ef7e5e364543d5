#pragma once
/*
 * Decodes request parameters by a table of fields per struct, with the protocol's error texts
 * (-32602). Members are decoded in document order, and the first bad one is the error; then missing
 * required fields are reported in table order. Unknown members are ignored. Checks that the caller
 * makes after decoding (a URI, a name) have their place in that order too: after another error a
 * field's `check` repeats them.
 */

#include "json/json.h"

enum jsondec_kind {
    JSONDEC_STR,    /* struct str: borrowed from the document */
    JSONDEC_BOOL,   /* bool */
    JSONDEC_U64,    /* uint64_t, "u64" in texts */
    JSONDEC_USIZE,  /* uint64_t, "usize" in texts */
    JSONDEC_U16,    /* uint16_t, "u16" in texts */
    JSONDEC_I64,    /* int64_t, "i64" in texts */
    JSONDEC_NODE,   /* const struct json_node *: any value, as it is */
    JSONDEC_SEQ,    /* const struct json_node *: an array */
    JSONDEC_STRS,   /* const struct json_node *: an array of strings (elements checked) */
    JSONDEC_MAP,    /* const struct json_node *: an object */
    JSONDEC_STRMAP, /* const struct json_node *: an object whose values are strings (checked) */
    JSONDEC_STRUCT  /* nested struct described by `sub`, decoded in place at `offset` */
};

enum jsondec_flags {
    JSONDEC_REQUIRED = 1, /* absence is an error */
    JSONDEC_NULLABLE = 2, /* null counts as absent */
};

struct jsondec_struct;

struct jsondec_field {
    const char *name;
    enum jsondec_kind kind;
    unsigned flags;
    size_t offset;  /* of the value in the target struct */
    size_t present; /* offset of a bool set when the field was given, or JSONDEC_NO_PRESENT */
    const struct jsondec_struct *sub; /* JSONDEC_STRUCT */
    const char *expected; /* NULL, or the word for "expected ..." (else derived from kind) */
    /* NULL, or the caller's check of a value of the right type. It runs here only after an error,
     * to find the first fault in the text. 0, or -errno with e set. */
    int (*check)(const struct json_node *v, struct err *e);
};

#define JSONDEC_NO_PRESENT ((size_t)-1)

struct jsondec_struct {
    const char *name; /* as in "expected struct NAME" */
    const struct jsondec_field *fields;
    size_t count;
};

/*
 * Decodes `v` (NULL stands for absent params, decoded as null) into `out`, which the caller has set
 * to its defaults. 0, or -EINVAL with code ERR_INVALID_PARAMS and the protocol's text.
 * An array (the reference's positional form) is refused.
 */
MUST_CHECK int jsondec(const struct jsondec_struct *s, const struct json_node *v, void *out,
                       struct err *e);

/* After an error of the caller's checks: replaces *e by the error of the first check that fails. */
void jsondec_report_first(const struct jsondec_struct *s, const struct json_node *v, struct err *e);

/* Methods without params: absent, null or {}; all else "invalid type: ..., expected unit". */
MUST_CHECK int jsondec_unit(const struct json_node *v, struct err *e);

/* Sets "invalid type: <what v is>, expected <expected>". Returns -EINVAL. */
int jsondec_type_error(const struct json_node *v, const char *expected, struct err *e);

/*
 * The index of string v among the `count` variants, or -EINVAL with "unknown variant `v`, expected
 * ...": "`a`" for one, "`a` or `b`" for two, "one of `a`, `b`, `c`" for more. A non-string is an
 * "invalid type: ..., expected string or map" error; an object is refused too, with the texts the
 * reference has for a name it does not know.
 */
MUST_CHECK int jsondec_variant(const struct json_node *v, const char *const *variants, size_t count,
                               struct err *e);
