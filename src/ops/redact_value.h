#pragma once
/*
 * Where a value ends that must not be shown: words, quotes and substitutions of a shell. What is
 * not closed goes on to the end of the text, so that rather too much is hidden than too little.
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

/* A backslash and a quote, as in a script inside of quotes. */
static inline bool redact_is_escaped_quote(struct str s, size_t i) {
    return i + 1 < s.n && s.p[i] == '\\' && redact_is_quote(s.p[i + 1]);
}

/* Behind what begins at `i`: a quoted text, a substitution, a group, an escape; or a character. */
size_t redact_value_skip(struct str s, size_t i);

/* The end of the word at `i`, inside of quotes of the kind `quote` (0: none). */
size_t redact_value_word_end(struct str s, size_t i, char quote);

/* The end of the line at `i`, or of the quotes we are in. */
size_t redact_value_line_end(struct str s, size_t i, char quote);

/* The end of all lines, or of the quotes we are in. */
size_t redact_value_text_end(struct str s, size_t i, char quote);

/* Behind blanks and continued lines. */
size_t redact_value_skip_blanks(struct str s, size_t i);
