#pragma once
/*
 * Text of others in our messages. Names, errors and addresses come from servers that may be
 * hostile: what could drive a terminal is shown as an escape, `\x1b`.
 */

#include "base/buf.h"

/*
 * Appends s: printable UTF-8 as it is; control characters, DEL, C1 controls, invalid UTF-8, line
 * and paragraph separators, and characters that reverse the direction of text as `\xNN` or
 * `\u{NNNN}`; a backslash as it is. 0 or as buf_reserve().
 */
MUST_CHECK int cli_text_put(struct buf *b, struct str s);

/* The same as a NUL-terminated string, at most `max` bytes of s with "..." behind; NULL without
 * memory. To be freed. */
char *cli_text_dup(struct str s, size_t max);
