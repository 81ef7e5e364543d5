// A WebSocket client that costs little: one receive buffer, frames handed out in place, sends
// gathered into one write, large answers passed over without being kept. Only what a measurement
// on loopback needs: no TLS.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ws {
    int fd;
    uint32_t mask_state;
    uint8_t *in;
    size_t in_cap, in_head, in_tail;
    size_t part; // bytes from in_head on that are the beginning of a fragmented message
    uint8_t *out;
    size_t out_cap, out_len;
    uint64_t bytes_in;
};

// A received text or binary message. `data` is borrowed from the receive buffer and valid until
// the next ws_next call.
struct ws_message {
    const char *data;
    size_t len;
};

// Connects to 127.0.0.1:port with TCP_NODELAY and upgrades. Every later receive gives up after
// 30 seconds of silence.
void ws_open(struct ws *ws, uint16_t port);
void ws_close(struct ws *ws);

// Appends one masked text frame to the output; ws_flush sends everything appended.
void ws_queue(struct ws *ws, const char *text, size_t len);
void ws_flush(struct ws *ws);

// Waits for the next message and puts fragments together; pings are answered on the way. A close
// frame or the end of the stream is fatal.
void ws_next(struct ws *ws, struct ws_message *m);

#define WS_EDGE 512

// What is kept of a message that was passed over: its beginning and its end, which are the same
// bytes when it is short.
struct ws_skimmed {
    uint64_t len;
    size_t edge; // bytes in `head` and in `tail`
    char head[WS_EDGE], tail[WS_EDGE];
};

// As ws_next, but the message goes through the receive buffer and is not kept as a whole, so that
// its size costs the client neither memory nor a second copy.
void ws_skim(struct ws *ws, struct ws_skimmed *s);

// A text frame made once and sent many times, so that building and masking it is not measured.
struct ws_frame {
    uint8_t *bytes;
    size_t len, head;
};

void ws_frame_init(struct ws_frame *f, const char *text, size_t len);
void ws_frame_free(struct ws_frame *f);

// Replaces `len` bytes of the text from `at` on.
void ws_frame_patch(struct ws_frame *f, size_t at, const char *text, size_t len);
void ws_frame_send(struct ws *ws, const struct ws_frame *f);

// Whether a whole message is already in the receive buffer, so that ws_next would not wait.
int ws_has_message(const struct ws *ws);
