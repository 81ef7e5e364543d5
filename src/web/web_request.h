#pragma once
/*
 * One http/request: from the call to its answer, and to the last bodyDelta of a stream.
 *
 *     WAITING ── HEADERS ──> BODY ── END ──> done
 *        └───── END ── the call fails
 *
 * A buffered call is answered at the end, a streamed one at HEADERS. `timer` bounds the whole.
 */

#include "web/web_body.h"
#include "web/web_conn.h"
#include "web/web_params.h"

#define WEB_HEADERS_MAX (4u << 20) /* bytes of header fields as JSON */
#define WEB_BODY_MAX (47u << 20)   /* bytes of a buffered body: its answer fits a message */
#define WEB_PIECE (4u << 20)       /* bytes of a large answer queued at a time */

struct web_request {
    struct list node; /* in conn->requests */
    struct web_conn *conn;
    uint32_t id;
    struct rpc_call *call; /* NULL: answered */
    bool stream;
    bool open;         /* the program works at it */
    bool headed;       /* HEADERS came */
    bool ended;        /* all came; the answer waits for room */
    char *name;        /* requestId as JSON; owned */
    char *url;         /* for texts; owned */
    uint64_t seq;      /* of the last bodyDelta */
    size_t sent_body;  /* counted in conn->bodies */
    struct buf before; /* the answer up to its body */
    struct web_body body;
    struct loop_timer timer;
};

/* The `run` of http/request (rpc/rpc.h). */
enum rpc_outcome web_request_run(struct rpc_call *call, void *params, struct buf *result,
                                 struct err *e);

/* Forgets it, without an answer. */
void web_request_free(struct web_request *q);

/* Answers it with a failure for which the server's side is the cause, and frees it. */
void web_request_fail(struct web_request *q, const char *why);

/* Frames of the program. 0 or -EPROTO. */
MUST_CHECK int web_request_headers(struct web_request *q, struct str payload);
MUST_CHECK int web_request_data(struct web_request *q, struct str payload);
MUST_CHECK int web_request_end(struct web_request *q, struct str payload);
