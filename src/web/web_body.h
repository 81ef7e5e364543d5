#pragma once
/* The body of a buffered answer, encoded as it comes: a chain of segments for the output queue. */

#include "base/str.h"
#include "net/sendq.h"

struct web_body {
    struct sendq_pool *pool;
    struct sendq_seg *chain, *tail; /* owned */
    size_t bytes;                   /* taken */
    size_t encoded;
    char carry[3]; /* bytes that wait for a group of three */
    size_t carried;
};

void web_body_init(struct web_body *b, struct sendq_pool *pool);
void web_body_fini(struct web_body *b);

/* Takes bytes. 0 or -ENOMEM. */
MUST_CHECK int web_body_put(struct web_body *b, struct str bytes);

/* Encodes the rest; nothing may follow. 0 or -ENOMEM. */
MUST_CHECK int web_body_finish(struct web_body *b);

/* Cuts about `n` bytes off the front of the chain; the caller owns them. NULL: nothing is left. */
struct sendq_seg *web_body_take(struct web_body *b, size_t n);
