#pragma once
/*
 * The frames that the server and the HTTP program (src/fetch) exchange over a socket pair.
 *
 *     server                        program
 *        <──────────── HELLO ───────────      once: its version
 *        ── REQUEST, then BODY… ───────>
 *        <──────────── HEAD ────────────      unless the request fails before
 *        <──────── DATA, SLOT… ─────────      pieces of the body (SLOT: http_slots.h)
 *        ── TAKEN ─────────────────────>      slots that were read
 *        <──────────── END ─────────────      unless it was cancelled
 *        ── CANCEL ────────────────────>
 *
 * A frame is a head of twelve bytes (length of the payload, id of the request, type; in the host's
 * byte order) and a payload of at most HTTP_WIRE_PAYLOAD_MAX bytes (base/codec.h). Frames of one
 * request keep their order; those of several mix. The program parses answers of strangers, so the
 * server trusts no frame: it checks each length, and each byte that a client will see.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "http/http_fields.h"

#define HTTP_WIRE_HEAD 12
#define HTTP_WIRE_PAYLOAD_MAX (1u << 20)
#define HTTP_WIRE_DATA_MAX (96u << 10) /* bytes of one DATA or BODY: encoded they fit SENDQ_LARGE */
#define HTTP_WIRE_READ (256u << 10)    /* bytes read at a time */
#define HTTP_WIRE_REASON_MAX 4096u     /* bytes of the text of an END */
#define HTTP_WIRE_ARENA_MAX (1u << 20) /* of a decoded frame */

enum http_wire_type {
    HTTP_WIRE_HELLO = 1,
    HTTP_WIRE_REQUEST,
    HTTP_WIRE_BODY,
    HTTP_WIRE_CANCEL,
    HTTP_WIRE_HEADERS,
    HTTP_WIRE_DATA,
    HTTP_WIRE_END,
    HTTP_WIRE_SLOT,
    HTTP_WIRE_TAKEN,
};
#define HTTP_WIRE_TYPE_MAX HTTP_WIRE_TAKEN

struct http_wire_frame {
    enum http_wire_type type;
    uint32_t id;
    struct str payload; /* borrowed from the reader, until it is filled again */
};

/* -- reading -- */

/* Holds one frame and what was read behind it. */
struct http_wire_reader {
    struct buf in;
    size_t at; /* bytes that http_wire_next() has handed out */
};

void http_wire_init(struct http_wire_reader *r);
void http_wire_fini(struct http_wire_reader *r);

/* Reads from a non-blocking socket. The number of bytes, 0 at the end, or -errno (-EAGAIN). */
MUST_CHECK ssize_t http_wire_fill(struct http_wire_reader *r, int fd);

/* Takes bytes that came otherwise. 0 or as buf_reserve(). */
MUST_CHECK int http_wire_feed(struct http_wire_reader *r, struct str bytes);

/* The next frame. 1; 0: it is not complete yet; -EPROTO: it can be none. */
MUST_CHECK int http_wire_next(struct http_wire_reader *r, struct http_wire_frame *f);

/* -- payloads -- */

/* A request. Its body follows in BODY frames. Slices borrow from the payload or the caller. */
struct http_wire_request {
    struct str method, url;          /* checked: a token; an absolute URL without user info */
    bool follow;                     /* redirects */
    uint64_t body;                   /* bytes */
    const struct http_field *fields; /* checked, lower-case names, grouped */
    size_t field_count;
};

struct http_wire_headers {
    unsigned status; /* 100 to 999 */
    const struct http_field *fields;
    size_t field_count;
};

struct http_wire_end {
    bool failed;
    struct str reason; /* if so */
};

/* Each appends a frame. 0, or as buf_reserve(), and -ENOBUFS for one that is too large; then the
 * buffer is as it was. */
MUST_CHECK int http_wire_put_hello(struct buf *b, struct str version);
MUST_CHECK int http_wire_put_request(struct buf *b, uint32_t id, const struct http_wire_request *q);
MUST_CHECK int http_wire_put_headers(struct buf *b, uint32_t id, const struct http_wire_headers *h);
MUST_CHECK int http_wire_put_end(struct buf *b, uint32_t id, const struct http_wire_end *e);
MUST_CHECK int http_wire_put_bytes(struct buf *b, enum http_wire_type type, uint32_t id,
                                   struct str bytes); /* BODY, CANCEL, DATA */
MUST_CHECK int http_wire_put_count(struct buf *b, enum http_wire_type type, uint32_t id,
                                   size_t n); /* SLOT: bytes, TAKEN: slots */

/* Writes the head of a frame, HTTP_WIRE_HEAD bytes. */
void http_wire_put_head(char *dst, enum http_wire_type type, uint32_t id, size_t payload);

/* Each decodes a payload; arrays are from the arena. 0, -EINVAL, or -ENOMEM. They check what the
 * comments above promise. */
MUST_CHECK int http_wire_get_hello(struct str payload, struct str *version);
MUST_CHECK int http_wire_get_request(struct str payload, struct arena *a,
                                     struct http_wire_request *q);
MUST_CHECK int http_wire_get_headers(struct str payload, struct arena *a,
                                     struct http_wire_headers *h);
MUST_CHECK int http_wire_get_end(struct str payload, struct http_wire_end *e);
MUST_CHECK int http_wire_get_count(struct str payload, uint32_t max, size_t *n); /* 1 to max */
