#pragma once
/* Opens a WebSocket on the client's side: the request, and a strict parser of its answer. */

#include "base/buf.h"
#include "base/str.h"

#define WS_OPEN_KEY 24

/* A random Sec-WebSocket-Key. No NUL. */
void ws_open_key(char key[WS_OPEN_KEY]);

/* Appends the request. `host` is HOST[:PORT], `target` the path with its query, `token` goes into
 * `authorization: Bearer` unless it is empty; none has control characters or blanks. 0 or as
 * buf_put(). */
MUST_CHECK int ws_open_request(struct buf *b, struct str host, struct str target, struct str token,
                               const char key[WS_OPEN_KEY]);

struct ws_open_answer {
    int status;      /* of a well-formed status line; 0: none so far */
    const char *why; /* static text, after a failure */
};

/*
 * Parses the answer at the start of n bytes. Returns the length of its head if it opens the
 * WebSocket, whose first frame follows; 0 when more bytes are needed; -EPROTO: it does not, see *a.
 */
int ws_open_answer(const char *data, size_t n, const char key[WS_OPEN_KEY],
                   struct ws_open_answer *a);
