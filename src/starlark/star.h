#pragma once
/*
 * The Starlark dialect of `.rules` files: a small, deterministic Python without I/O. One call of
 * star_run() evaluates one file; its only effects are calls of C functions (struct star_native).
 *
 * Bounds: STAR_SOURCE_MAX bytes of source, STAR_STEPS_MAX steps, STAR_MEMORY_MAX bytes,
 * STAR_NESTING_MAX levels of brackets, blocks and operators, STAR_CALLS_MAX nested calls. A file
 * that exceeds one of them fails.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "starlark/star_int.h"

#define STAR_SOURCE_MAX (4u << 20)
#define STAR_STEPS_MAX (20u << 20)
#define STAR_MEMORY_MAX (64u << 20)
#define STAR_NESTING_MAX 200
#define STAR_CALLS_MAX 49
#define STAR_ERROR_MAX (64u << 10) /* bytes of a rendered error */

enum star_type {
    STAR_NONE,
    STAR_BOOL,
    STAR_INT,
    STAR_FLOAT,
    STAR_STRING,
    STAR_BYTES,
    STAR_LIST,
    STAR_TUPLE,
    STAR_DICT,
    STAR_RANGE,
    STAR_ITERATOR, /* "abc".elems(): its items are in `list` */
    STAR_FUNCTION, /* def, lambda */
    STAR_NATIVE,
    STAR_METHOD, /* a native bound to a value */
    STAR_ELLIPSIS,
    STAR_ANNOTATION, /* a type expression that is no plain name: list[str], str | None */
};

struct star;
struct star_dict;
struct star_value;
struct star_native;
struct star_function;
struct star_annotation;

struct star_list {
    struct star_value **items;
    size_t n, cap;
    unsigned iterating; /* running loops over it: it must not change */
};

struct star_range {
    int64_t start, stop, step;
};

struct star_method {
    struct star_value *self;
    const struct star_native *native;
};

struct star_value {
    enum star_type type;
    union {
        bool boolean;
        struct star_int integer;
        double real;
        struct str text;       /* STAR_STRING: valid UTF-8; STAR_BYTES */
        struct star_list list; /* STAR_LIST, STAR_TUPLE, STAR_ITERATOR */
        struct star_dict *dict;
        struct star_range range;
        struct star_function *function;
        const struct star_native *native;
        struct star_method method;
        struct star_annotation *annotation;
    };
};

/* Arguments of a call, bound to the parameters of a native. */
struct star_args {
    struct star_value *self; /* of a method */
    struct star_value **v;   /* one per parameter; NULL: not given */
    struct star_list *rest;  /* further positional ones, if the native takes them */
    struct star_dict *named; /* further named ones, if the native takes them */
};

/*
 * A function in C. `params` has names separated by spaces; "?" after a name: optional; "/": names
 * before it are positional only; "*": names after it are named only; "*rest" and "**named" collect
 * further arguments. `fn` returns the result, or NULL after star_fail().
 */
struct star_native {
    const char *name;
    const char *params;
    struct star_value *(*fn)(struct star *s, const struct star_args *a);
};

struct star_source {
    const char *file; /* as errors name it */
    struct str text;
};

/*
 * Evaluates a file. It can call the n `natives` besides the dialect's own functions; star_user()
 * gives them `user`. 0; -EINVAL with the rendered error, several lines, appended to `error`; or
 * -ENOMEM.
 */
MUST_CHECK int star_run(const struct star_source *source, const struct star_native *natives,
                        size_t n, void *user, struct buf *error);

/* -- for natives -- */

void *star_user(const struct star *s);

/*
 * Notes an error. Returns NULL. Only the first error counts; a later one does not look at its
 * arguments, so a text that could not be made may be passed as NULL.
 */
void *star_fail(struct star *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The name of a value's type; its text as by repr(), or NULL after a failure. */
const char *star_value_type_name(const struct star_value *v);
const char *star_value_repr(struct star *s, const struct star_value *v);

/* Fails unless the value of parameter `name` has the type, which `expected` names. */
MUST_CHECK bool star_value_want(struct star *s, const struct star_value *v, enum star_type type,
                                const char *expected, const char *name);

struct star_value *star_value_none(struct star *s);
