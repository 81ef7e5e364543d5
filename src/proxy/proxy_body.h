#pragma once
/* Where the body of a request ends: after a length, or after its chunks. */

#include "base/str.h"
#include "base/util.h"

#include <stdint.h>

#define PROXY_BODY_LINE_MAX 256      /* bytes of a line with the size of a chunk */
#define PROXY_BODY_TRAILERS_MAX 8192 /* bytes of the lines behind the last chunk */

enum proxy_body_state { PROXY_BODY_SIZE, PROXY_BODY_DATA, PROXY_BODY_CRLF, PROXY_BODY_TRAILERS };

struct proxy_body {
    bool chunked;
    bool done;
    uint64_t left; /* bytes of the body, or of the chunk */
    enum proxy_body_state state;
    bool digits, extension, cr; /* of the line being read */
    size_t line, lines;         /* bytes of it, and of all trailers */
};

void proxy_body_init(struct proxy_body *b, bool chunked, uint64_t length);

/* How many of the bytes belong to the body; `done` tells whether it ends with them. Or -EINVAL. */
MUST_CHECK ssize_t proxy_body_feed(struct proxy_body *b, struct str bytes);
