#pragma once
/* JSON writer helpers: append compact JSON text to a bounded buffer. 0 or as buf_reserve(). */

#include "base/buf.h"

/*
 * The string with quotes; `"`, `\` and control characters escaped (\b \t \n \f \r by their short
 * names, others \u00xx), everything else as it is. The input must be valid UTF-8.
 */
MUST_CHECK int jsonw_str(struct buf *b, struct str s);

/* The number of bytes that jsonw_str() appends. */
size_t jsonw_str_len(struct str s);

/* Like jsonw_str(), to dst (room for jsonw_str_len(s) bytes); returns the bytes written. */
size_t jsonw_str_to(char *dst, struct str s);
