#pragma once
/* An evaluation and its parts: for the files of starlark/ alone. */

#include "starlark/star.h"

#include <stdint.h>

/* -- source positions and errors -- */

struct star_span {
    uint32_t begin, end; /* bytes */
};

/* A call that is under way. */
struct star_call {
    struct star_span span;
    const char *where; /* the name of the function that makes it */
};

/* -- syntax -- */

enum star_token {
    T_EOF,
    T_NEWLINE,
    T_INDENT,
    T_DEDENT,
    T_NAME,
    T_RESERVED,
    T_INT,
    T_FLOAT,
    T_STRING,
    T_BYTES,
    T_FSTRING,
    T_FSTRING_END, /* the end of an expression in an f-string */
    /* keywords */
    T_AND,
    T_BREAK,
    T_CONTINUE,
    T_DEF,
    T_ELIF,
    T_ELSE,
    T_FOR,
    T_IF,
    T_IN,
    T_LAMBDA,
    T_LOAD,
    T_NOT,
    T_OR,
    T_PASS,
    T_RETURN,
    /* symbols */
    T_ASSIGN,
    T_EQ,
    T_NE,
    T_LT,
    T_LE,
    T_GT,
    T_GE,
    T_PLUS,
    T_MINUS,
    T_STAR,
    T_STARSTAR,
    T_SLASH,
    T_SLASHSLASH,
    T_PERCENT,
    T_AMP,
    T_PIPE,
    T_CARET,
    T_TILDE,
    T_SHL,
    T_SHR,
    T_PLUS_ASSIGN,
    T_MINUS_ASSIGN,
    T_STAR_ASSIGN,
    T_SLASH_ASSIGN,
    T_SLASHSLASH_ASSIGN,
    T_PERCENT_ASSIGN,
    T_AMP_ASSIGN,
    T_PIPE_ASSIGN,
    T_CARET_ASSIGN,
    T_SHL_ASSIGN,
    T_SHR_ASSIGN,
    T_DOT,
    T_ELLIPSIS,
    T_COMMA,
    T_SEMICOLON,
    T_COLON,
    T_ARROW,
    T_LPAREN,
    T_RPAREN,
    T_LBRACKET,
    T_RBRACKET,
    T_LBRACE,
    T_RBRACE,
};

enum star_kind {
    /* expressions */
    N_NAME,       /* name; resolved: up, slot, or value */
    N_LITERAL,    /* value */
    N_LIST,       /* items */
    N_TUPLE,      /* items */
    N_DICT,       /* items: keys and values in turn */
    N_UNARY,      /* op, a */
    N_BINARY,     /* op, a, b; T_NOT as op: `not in` */
    N_AND,        /* a, b */
    N_OR,         /* a, b */
    N_NOT,        /* a */
    N_CHOICE,     /* a if b else c */
    N_CALL,       /* a; items: N_ARG */
    N_ARG,        /* a; op: T_NAME (named), T_STAR, T_STARSTAR, or 0 */
    N_INDEX,      /* a[b] */
    N_SLICE,      /* a[b:c:d], each may be NULL */
    N_DOT,        /* a.name */
    N_LAMBDA,     /* as N_DEF, a: the result */
    N_LISTCOMP,   /* a; items: N_FOR_CLAUSE, N_IF_CLAUSE */
    N_DICTCOMP,   /* a: b; items likewise */
    N_FOR_CLAUSE, /* a in b */
    N_IF_CLAUSE,  /* a */
    N_FSTRING,    /* items: N_LITERAL, N_FIELD */
    N_FIELD,      /* a; op: T_NOT for !r */
    /* statements */
    N_BLOCK,   /* items */
    N_EXPR,    /* a */
    N_ASSIGN,  /* a = b, c: the type or NULL */
    N_AUGMENT, /* a op= b */
    N_DEF,     /* name, items: N_PARAM, a: the return type or NULL, b: the body, scope */
    N_PARAM,   /* name, a: the default or NULL, b: the type or NULL, op: T_STAR, T_STARSTAR, 0 */
    N_RETURN,  /* a or NULL */
    N_BREAK,
    N_CONTINUE,
    N_PASS,
    N_IF,   /* a: condition, b: block, c: block or NULL */
    N_FOR,  /* a in b, c: block */
    N_LOAD, /* name: the module; items: the symbols */
};

struct star_node {
    enum star_kind kind;
    enum star_token op;
    struct star_span span;
    struct star_node *a, *b, *c, *d;
    struct star_node **items;
    size_t n;
    struct str name;
    struct star_value *value;
    unsigned up;    /* N_NAME: how many functions out */
    uint32_t slot;  /* N_NAME, N_PARAM, N_DEF: in that function's frame */
    uint32_t slots; /* N_DEF, N_LAMBDA: of its frame */
};

/* -- values -- */

#define STAR_SHOWN (1u << 31) /* in `iterating`: the value is being shown, further out */

struct star_entry {
    struct star_value *key, *value;
    uint64_t hash;
};

struct star_dict {
    struct star_entry *entries; /* in the order of insertion */
    size_t n, cap;
    uint32_t *index; /* of entries, plus 1; 0: free */
    size_t slots;    /* of index: a power of two, or 0 */
    unsigned iterating;
};

struct star_frame {
    struct star_frame *up; /* of the function around it */
    struct star_value **slots;
};

struct star_function {
    const char *name; /* "lambda" for one */
    const struct star_node *node;
    struct star_frame *frame; /* where it was made */
    struct star_value **defaults;
    struct star_value **types; /* of parameters, NULL: none; the last: of the result */
};

struct star {
    struct arena arena;
    const struct star_source *source;
    struct str text; /* the source with line ends as '\n' */
    const struct star_native *natives;
    size_t native_count;
    void *user;

    size_t steps;
    unsigned depth; /* of recursion in values: repr, equality, comparison */
    struct star_call calls[STAR_CALLS_MAX];
    size_t call_count;
    const char *where; /* the function that is being run */
    struct star_frame *frame;
    struct star_value *result; /* of a return */
    struct star_span returned; /* that return */

    bool failed;
    bool no_memory;
    struct star_span at; /* of the error */
    bool at_known;
    const char *message;

    struct star_value none, yes, no, ellipsis;
};

/* -- star.c: errors, memory -- */

/* Fails at a place in the source. Returns NULL. */
void *star_fail_at(struct star *s, struct star_span at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Says where, if an error was noted without a place. */
void star_locate(struct star *s, struct star_span at);
/* Zeroed memory, or NULL after a failure. */
void *star_alloc(struct star *s, size_t n);
void *star_calloc(struct star *s, size_t n, size_t size);
/* Counts work. False after a failure: too much of it. */
MUST_CHECK bool star_work(struct star *s, size_t n);
/* A copy of formatted text, or NULL after a failure. */
char *star_text(struct star *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Keeps the contents of a buffer as a string. */
struct star_value *star_take(struct star *s, struct buf *b, int r);

/* -- star_error.c -- */

/* Renders the error that was noted. 0 or as buf_reserve(). */
MUST_CHECK int star_error_put(const struct star *s, struct buf *b);

/* -- star_lex.c, star_parse.c, star_scope.c -- */

struct star_node *star_parse(struct star *s);
/* Binds names to slots; the slots of the module's frame, or -1 after a failure. */
int star_scope(struct star *s, struct star_node *module);

/* -- star_value.c -- */

struct star_value *star_value_new(struct star *s, enum star_type type);
struct star_value *star_value_bool(struct star *s, bool b);
struct star_value *star_value_integer(struct star *s, struct star_int i);
struct star_value *star_value_number(struct star *s, int64_t i);
struct star_value *star_value_real(struct star *s, double d);
/* Strings and bytes borrow the text: it lives as long as the evaluation. */
struct star_value *star_value_string(struct star *s, struct str text);
struct star_value *star_value_text(struct star *s, enum star_type type, struct str text);
struct star_value *star_value_list(struct star *s, enum star_type type, size_t cap);
/* Appends; false after a failure. */
MUST_CHECK bool star_value_append(struct star *s, struct star_list *l, struct star_value *v);
void star_value_reverse(struct star_list *l);
bool star_value_truth(const struct star_value *v);
/* The value of an int or a float. */
double star_value_to_real(const struct star_value *v);
/* 1, 0, or -1 after a failure. */
MUST_CHECK int star_value_equal(struct star *s, const struct star_value *x,
                                const struct star_value *y);
/* False after a failure; else *out is <0, 0, >0. */
MUST_CHECK bool star_value_compare(struct star *s, const struct star_value *x,
                                   const struct star_value *y, int *out);
/* Appends repr() or str(). False after a failure. */
MUST_CHECK bool star_value_put(struct star *s, struct buf *b, const struct star_value *v,
                               bool repr);
/* False after a failure: it has no hash. */
MUST_CHECK bool star_value_hash(struct star *s, const struct star_value *v, uint64_t *out);
/* The number of items; -1: it has none. */
int64_t star_value_length(const struct star_value *v);
int64_t star_value_range_length(const struct star_range *r);
/* All items as a list that is nobody else's; false after a failure. */
MUST_CHECK bool star_value_items(struct star *s, struct star_value *v, struct star_list *out);
/* Fails while a loop runs over the list or dictionary with this count. */
MUST_CHECK bool star_value_may_change(struct star *s, unsigned iterating);
/* Code points of valid UTF-8. */
size_t star_value_chars(struct str text);
/* The byte at which character n begins, or text.n. */
size_t star_value_char_at(struct str text, size_t n);

/* -- star_dict.c -- */

struct star_value *star_dict_new(struct star *s);
/* The entry, NULL: none; check s->failed. */
struct star_entry *star_dict_find(struct star *s, const struct star_dict *d,
                                  const struct star_value *key);
MUST_CHECK bool star_dict_set(struct star *s, struct star_dict *d, struct star_value *key,
                              struct star_value *value);
void star_dict_remove(struct star_dict *d, struct star_entry *e);

/* -- star_ops.c -- */

struct star_value *star_ops_binary(struct star *s, enum star_token op, struct star_value *x,
                                   struct star_value *y);
struct star_value *star_ops_unary(struct star *s, enum star_token op, struct star_value *x);
struct star_value *star_ops_index(struct star *s, struct star_value *v, struct star_value *key);
struct star_value *star_ops_slice(struct star *s, struct star_value *v,
                                  struct star_value *const b[3]);
MUST_CHECK bool star_ops_set_index(struct star *s, struct star_value *v, struct star_value *key,
                                   struct star_value *to);
/* A number that fits 32 bits, as indices must. */
MUST_CHECK bool star_ops_small(struct star *s, const struct star_value *v, int64_t *out);

/* -- star_format.c -- */

struct star_value *star_format_percent(struct star *s, struct str format, struct star_value *args);
struct star_value *star_format(struct star *s, const struct star_args *a);

/* -- star_type.c: annotations -- */

/* An annotation from what its expression gave; NULL after a failure. */
struct star_value *star_type_of(struct star *s, struct star_value *v);
/* Whether the value is of the type. */
bool star_type_has(const struct star_value *type, const struct star_value *v);
/* Fails unless the value is of the type (NULL: any); `what` it is for. */
MUST_CHECK bool star_type_check(struct star *s, const struct star_value *type,
                                const struct star_value *v, const char *what);
/* list[str]; str | None. */
struct star_value *star_type_index(struct star *s, struct star_value *v, struct star_value *key);
struct star_value *star_type_union(struct star *s, struct star_value *x, struct star_value *y);
MUST_CHECK bool star_type_put(struct star *s, struct buf *b, const struct star_value *type);

/* -- star_eval.c, star_call.c -- */

MUST_CHECK bool star_eval_module(struct star *s, const struct star_node *module, size_t slots);
struct star_value *star_eval(struct star *s, const struct star_node *n);
/* Runs a body; its value, or NULL after a failure. */
struct star_value *star_eval_body(struct star *s, const struct star_node *n);
MUST_CHECK bool star_eval_assign(struct star *s, const struct star_node *target,
                                 struct star_value *v);
struct star_value *star_call(struct star *s, struct star_value *fn, struct star_list *positional,
                             struct star_dict *named);
struct star_value *star_call_attribute(struct star *s, struct star_value *v, struct str name);

/* -- tables of natives, ended by one without a name -- */

extern const struct star_native star_globals[];
extern const struct star_native star_string_methods[];
extern const struct star_native star_bytes_methods[];
extern const struct star_native star_list_methods[];
extern const struct star_native star_dict_methods[];
/* The methods of a value's type, or NULL. */
const struct star_native *star_call_methods(const struct star_value *v);
