#pragma once
/*
 * RFC 6455 framing: an incremental parser of a client's frames, or after ws_parser_set_client() of
 * a server's, and writers of headers. The parser keeps at most one message. A whole unfragmented
 * frame in the fed bytes is unmasked in place and handed out without a copy; other payload is
 * collected in `msg`.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum ws_opcode { WS_CONT = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

enum ws_kind {
    WS_NONE,      /* nothing complete: feed more */
    WS_MESSAGE,   /* a whole message: data, opcode WS_TEXT (valid UTF-8) or WS_BINARY (unchecked) */
    WS_GOT_PING,  /* data: payload to echo */
    WS_GOT_PONG,  /* data: payload */
    WS_GOT_CLOSE, /* code and data (the reason, valid UTF-8); code 1005 when the frame had none */
    WS_FAIL,      /* protocol violation: code to close with (1002, 1007, 1009) and reason */
};

/*
 * Long Base64 in a text message is decoded as it is collected, while it is in the cache. The string
 * that began with it then begins with n decoded bytes at offset `at`: three for four characters, so
 * n is a multiple of 3. With n 0 the message is as it came. net/conn_message.h hides this.
 */
struct ws_part {
    size_t at, n;
};

#ifndef WS_DECODE_MIN      /* fuzz targets set a smaller one */
#define WS_DECODE_MIN 4096 /* characters of the alphabet in one piece of input that start it */
#endif

struct ws_msg {
    enum ws_kind kind;
    enum ws_opcode opcode;
    char *data; /* borrowed (writable) until the next ws_feed() or ws_parser_fini() */
    size_t n;
    unsigned code;             /* WS_GOT_CLOSE, WS_FAIL */
    const char *reason;        /* WS_FAIL: static text */
    struct ws_part predecoded; /* WS_MESSAGE */
};

/* Whether the next characters may be decoded. */
enum ws_decoding { WS_DECODE_WAITS, WS_DECODE_ON, WS_DECODE_OVER };

struct ws_parser {
    struct buf msg; /* being collected; its max was set when the message began */
    size_t max;     /* of frames and messages, from the next message on */
    size_t valid;   /* bytes of `msg` that were checked to be UTF-8 */
    bool not_text;  /* some of them are not */
    struct ws_part predecoded;
    enum ws_decoding decoding;
    uint8_t head[14]; /* header bytes collected */
    uint8_t head_len; /* their number */
    uint8_t mask[4];  /* zeros on the client's side: frames come unmasked */
    bool client;      /* we are the client */
    uint8_t ctl_len;  /* bytes of a control payload collected */
    bool in_payload;  /* a header is complete, payload outstanding */
    bool in_message;  /* a fragmented message is open */
    bool fin;
    bool failed;           /* after WS_FAIL nothing more is parsed */
    bool delivered;        /* msg holds a message already handed out: empty it on the next feed */
    enum ws_opcode opcode; /* of the current frame */
    enum ws_opcode msg_opcode;
    uint64_t left; /* payload bytes outstanding in this frame */
    uint64_t done; /* payload bytes of this frame already unmasked (mask phase) */
    char ctl[125];
};

/* `max` bytes per frame and per message (more fails with 1009). Allocates nothing. */
void ws_parser_init(struct ws_parser *p, size_t max);
void ws_parser_fini(struct ws_parser *p);

/* For a new parser: we are the client, whose peer must not mask. Nothing is decoded early. */
static inline void ws_parser_set_client(struct ws_parser *p) {
    p->client = true;
}

/* Frees the memory of a message that was handed out; call when it was handled. */
void ws_parser_release(struct ws_parser *p);

/* Sets the maximum for messages that have not begun. */
void ws_parser_set_max(struct ws_parser *p, size_t max);

/*
 * Takes up to n bytes and reports the first event in *m. Returns the bytes consumed; call again
 * with the rest while it is less than n. With WS_NONE everything was consumed. The bytes at `data`
 * are modified (unmasked). Memory for a declared length is taken as the payload arrives, never at
 * once. Control frames may arrive between fragments.
 */
size_t ws_feed(struct ws_parser *p, char *data, size_t n, struct ws_msg *m);

/*
 * Reads a large payload straight into the message, without ws_feed(): returns the place for its
 * next bytes and how many fit (*n > 0), or NULL when the payload is not large. ws_filled() takes n
 * bytes that were put there, and reports as ws_feed().
 */
char *ws_room(struct ws_parser *p, size_t *n);
void ws_filled(struct ws_parser *p, size_t n, struct ws_msg *m);

#define WS_ROOM_MIN (64u << 10)  /* bytes of a large payload outstanding */
#define WS_ROOM_MAX (256u << 10) /* bytes read at a time */

#define WS_HEADER_MAX 10

/* Length of the header of an unmasked frame with n payload bytes: 2, 4 or 10. */
static inline size_t ws_header_len(size_t n) {
    return n < 126 ? 2 : n < 65536 ? 4 : 10;
}

/* Writes that header to dst; returns its length. */
size_t ws_header(char *dst, enum ws_opcode opcode, bool fin, size_t n);

/* The same for a masked frame, of a client: WS_HEADER_MAX + 4 bytes at most. */
size_t ws_masked_header(char *dst, enum ws_opcode opcode, bool fin, size_t n,
                        const uint8_t mask[4]);

/* Sec-WebSocket-Accept for a key: 28 characters to dst. No NUL. */
void ws_accept(char dst[28], struct str key);
