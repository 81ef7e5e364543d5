#pragma once
/* The texts of unified exec, byte for byte those of the reference's client. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define EXEC_TEXT_CHUNK_ID 6    /* hex digits */
#define EXEC_TEXT_TOKENS 10000u /* default budget, and the highest one */

/* What a result says. `raw` is the output as exec_buffer_flatten() marks it; `bytes` counts the
 * omitted ones too. */
struct exec_text {
    const char *chunk_id; /* EXEC_TEXT_CHUNK_ID digits, NUL-terminated */
    double wall_s;
    bool exited; /* `code` is known */
    int code;    /* of the ended process */
    int session; /* number of the running process, 0 = none */
    struct str raw;
    uint64_t bytes, omitted;
    uint64_t max_tokens; /* budget of the output */
};

/* Estimated tokens of so many bytes. */
static inline uint64_t exec_text_tokens(uint64_t bytes) {
    return bytes / 4 + (bytes % 4 != 0);
}

/* Appends the n bytes at p with each broken sequence replaced by U+FFFD. 0 or as buf_put(). */
MUST_CHECK int exec_text_mend(struct buf *out, const char *p, size_t n);

/* Appends the output: `raw` mended, and if it is above the budget without its middle. */
MUST_CHECK int exec_text_output(const struct exec_text *t, struct buf *out);

/* Appends everything that a model is shown: the lines above "Output:", then `output`. */
MUST_CHECK int exec_text_result(const struct exec_text *t, struct str output, struct buf *out);

/* Bytes before a code point that begins in the n bytes at p and does not end there; n if there is
 * none. */
size_t exec_text_whole(const char *p, size_t n);
