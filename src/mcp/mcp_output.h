#pragma once
/*
 * The output of a command on its way into a result: the first and the last bytes, half of a limit
 * each. Memory is bounded by the limit, whatever the command prints.
 */

#include "base/buf.h"

#include <stdbool.h>

#define MCP_OUTPUT_MAX (1u << 20) /* bytes, the highest limit */
#define MCP_OUTPUT_LINE 200       /* bytes of the last line */

struct mcp_output {
    struct buf head; /* the first bytes, up to head_max */
    char *tail;      /* a ring of the last ones; owned */
    size_t tail_cap; /* bytes allocated, at most tail_max */
    size_t tail_at;  /* where the oldest is, once the ring is full */
    size_t tail_len;
    size_t head_max, tail_max;
    uint64_t total; /* bytes that came */
    bool failed;    /* memory was short: bytes are missing */
};

/* `first_only` keeps no last bytes: the first ones get the whole limit. Allocates nothing. */
void mcp_output_init(struct mcp_output *o, size_t limit, bool first_only);
void mcp_output_fini(struct mcp_output *o);

void mcp_output_add(struct mcp_output *o, const char *p, size_t n);

/* Forgets what came. */
void mcp_output_reset(struct mcp_output *o);

/*
 * Appends what is kept as valid UTF-8: invalid bytes become U+FFFD. With *omitted > 0 a line says
 * so between the first and the last bytes, which are cut at line ends where one is near.
 * 0 or as buf_reserve(). Three times the limit and 100 bytes are enough room.
 */
MUST_CHECK int mcp_output_text(const struct mcp_output *o, struct buf *b, uint64_t *omitted);

/* Appends bytes as valid UTF-8: every faulty sequence becomes U+FFFD. 0 or as buf_reserve(). */
MUST_CHECK int mcp_output_mend(struct buf *b, struct str s);

/* The last line that is not blank, cut at MCP_OUTPUT_LINE bytes, as valid UTF-8. False: none. */
bool mcp_output_last_line(const struct mcp_output *o, struct buf *b);
