#pragma once
/* The structs and calls that the files of this room share. */

#include "base/hash.h"
#include "toml/toml.h"

enum toml_definition {
    TOML_CLOSED,   /* scalar, array or inline table: nothing may be added later */
    TOML_IMPLICIT, /* table: only named on the way to another one, as `a` in [a.b] */
    TOML_DOTTED,   /* table: made by a dotted key; a header may add tables below it */
    TOML_HEADER,   /* table: has its own header */
    TOML_TABLES,   /* array: made by [[headers]] */
};

/* A member of a table; the index finds it by its table and key. */
struct toml_member {
    struct toml_value value;
    struct hash_node node;
};

struct toml_parser {
    struct arena *arena; /* borrowed */
    struct str text;     /* borrowed; valid UTF-8 */
    size_t at;           /* the next byte of the text */
    uint32_t line;       /* of `at` */
    size_t values;
    struct hash index; /* of all toml_members */
    struct err *e;     /* borrowed */
    int status;        /* 0, or the failure, which e describes */
};

/* ---- toml_scan.c: the text, its blanks, and failures ---- */

/* Records a failure at a byte of the text. Returns false. */
bool toml_scan_fail(struct toml_parser *p, size_t at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Fails at the next byte: "expected WHAT, not 'x'". Returns false. */
bool toml_scan_expected(struct toml_parser *p, const char *what);
/* Records that memory ran out. Returns false. */
bool toml_scan_memory(struct toml_parser *p);

/* The byte `ahead` of the next one, or -1 behind the end. */
static inline int toml_scan_peek(const struct toml_parser *p, size_t ahead) {
    return ahead < p->text.n - p->at ? (unsigned char)p->text.p[p->at + ahead] : -1;
}

/* Whether a line end or the end of the text comes next. */
bool toml_scan_at_end(const struct toml_parser *p);
/* Passes over the next byte if it is c. */
bool toml_scan_take(struct toml_parser *p, char c);
/* Passes over blanks and tabs. */
void toml_scan_blanks(struct toml_parser *p);
/* Passes over blanks, comments and line ends. False after a failure. */
MUST_CHECK bool toml_scan_lines(struct toml_parser *p);
/* Passes over blanks, a comment, and the line end that must follow. False after a failure. */
MUST_CHECK bool toml_scan_line_end(struct toml_parser *p);

/* ---- toml_string.c ---- */

/* Reads the string whose first quote comes next, in the arena, with a NUL behind it. `lines`: it
 * may be a multi-line string. False after a failure. */
MUST_CHECK bool toml_string_read(struct toml_parser *p, bool lines, struct str *out);

/* ---- toml_number.c, toml_time.c ---- */

/* Reads what begins with a letter, a digit or a sign: a number, a boolean, a date or a time. False
 * after a failure. */
MUST_CHECK bool toml_number_read(struct toml_parser *p, struct toml_value *v);

/* Whether a word is meant as a date or a time. */
bool toml_time_is_one(struct str word);
/* Its kind in *type, and 0; else the reason why it is none. */
const char *toml_time_check(struct str word, enum toml_type *type);

/* ---- toml_value.c ---- */

/* Adds a value to a table (with a key, which is new) or an array (without), for the caller to fill.
 * NULL after a failure, which is placed at `at`. */
struct toml_value *toml_value_new(struct toml_parser *p, struct toml_value *parent,
                                  const struct str *key, enum toml_type type, size_t at);
/* Reads a value into a new child of `parent`. False after a failure. */
MUST_CHECK bool toml_value_read(struct toml_parser *p, struct toml_value *parent,
                                const struct str *key);

/* ---- toml_table.c: keys and what may be defined again ---- */

/* Reads KEY = VALUE into a table. False after a failure. */
MUST_CHECK bool toml_table_pair(struct toml_parser *p, struct toml_value *table);
/* Reads a header; *current is the table it opens. False after a failure. */
MUST_CHECK bool toml_table_header(struct toml_parser *p, struct toml_value *root,
                                  struct toml_value **current);
