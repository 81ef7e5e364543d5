#pragma once
/* Tokens of a source text: for star_parse.c. */

#include "starlark/star_internal.h"

#define LEX_INDENTS_MAX 100

struct star_lex {
    struct star *s;
    size_t at, end; /* in s->text */
    bool field;     /* reads an expression of an f-string */
    unsigned brackets;
    uint32_t indents[LEX_INDENTS_MAX];
    size_t indent_count;
    size_t dedents;   /* still to be handed out */
    bool line_begins; /* indentation comes next */
    bool ended;       /* the line end before the end of the file was handed out */

    /* the current token */
    enum star_token token;
    struct star_span span;
    struct str text;          /* names; f-strings: what is between the quotes */
    struct star_value *value; /* literals */
    bool raw;                 /* T_FSTRING: backslashes are literal */
    bool repr;                /* T_FSTRING_END: with !r */
};

/* Begins with the first token. False after a failure. */
MUST_CHECK bool star_lex_begin(struct star_lex *l, struct star *s);

/* Goes on to the next token. False after a failure. */
MUST_CHECK bool star_lex_next(struct star_lex *l);

/* Describes the current token for an error; NULL after a failure. */
const char *star_lex_describe(struct star_lex *l);
/* The name of a token for an error. */
const char *star_lex_name(enum star_token t);

/* Appends the meaning of literal text, with escapes unless `raw`. False after a failure. */
MUST_CHECK bool star_lex_unescape(struct star *s, struct star_span span, bool raw, bool bytes,
                                  struct buf *out);
