#pragma once
/* Splits a text into shell words, and quotes words so that a shell reads them back. */

#include "base/arena.h"
#include "base/buf.h"

/* The words of a text, NUL-terminated (a word may hold NUL bytes: `n` counts). */
struct shlex_words {
    struct str *list;
    size_t n, cap;
};

/*
 * Splits like a shell, by quotes, backslashes and comments; expands nothing and takes operators as
 * letters. 0; -EINVAL: a quote is not closed, or a backslash ends the text; -ENOMEM.
 */
MUST_CHECK int shlex_split(struct str text, struct arena *a, struct shlex_words *out);

/* Appends words with a space between them, quoted where needed. 0 or as buf_reserve(). */
MUST_CHECK int shlex_join(struct buf *b, const struct str *words, size_t n);
