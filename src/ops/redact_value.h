#pragma once
/*
 * Finds the end of a secret value: words, quotes and substitutions of a shell. An unclosed one
 * reaches to the end of the text: better hide too much than too little.
 */

#include "base/str.h"

#define REDACT_NESTING_MAX 32 /* deeper substitutions reach to the end of the text */

/* A quote that may enclose a word. */
static inline bool redact_is_quote(char c) {
    return c == '\'' || c == '"';
}

static inline bool redact_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* A backslash and a quote, as in a script inside quotes. */
static inline bool redact_is_escaped_quote(struct str s, size_t i) {
    return i + 1 < s.n && s.p[i] == '\\' && redact_is_quote(s.p[i + 1]);
}

/* The index after the quoted text, substitution, group, escape or character at `i`. */
size_t redact_value_skip(struct str s, size_t i);

/* The end of the word at `i`, inside quotes of the kind `quote` (0: none). */
size_t redact_value_word_end(struct str s, size_t i, char quote);

/* The end of the line at `i`, or of the surrounding quotes. */
size_t redact_value_line_end(struct str s, size_t i, char quote);

/* The end of the text, or of the surrounding quotes. */
size_t redact_value_text_end(struct str s, size_t i, char quote);

/* The index after blanks and continued lines. */
size_t redact_value_skip_blanks(struct str s, size_t i);
