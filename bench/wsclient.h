// A WebSocket client that costs little: one receive buffer, frames handed out in place, sends
// gathered into one write. Only what a measurement on loopback needs: no fragments, no TLS.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ws {
    int fd;
    uint32_t mask_state;
    uint8_t *in;
    size_t in_cap, in_head, in_tail;
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

// Waits for the next message; pings are answered on the way. A close frame, a fragment or the
// end of the stream is fatal.
void ws_next(struct ws *ws, struct ws_message *m);

// Whether a whole message is already in the receive buffer, so that ws_next would not wait.
int ws_has_message(const struct ws *ws);
