// The JSON-RPC dialect as far as the measurements need it. Messages are scanned, not parsed: keys
// are looked for near both ends, so that the bulk of an output chunk is never touched.
#pragma once

#include "wsclient.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc {
    struct ws ws;
    uint64_t next_id;
};

enum msg_kind { MSG_RESPONSE, MSG_OUTPUT, MSG_EXITED, MSG_CLOSED, MSG_OTHER };

struct msg {
    enum msg_kind kind;
    uint64_t id;       // MSG_RESPONSE
    uint64_t proc;     // notifications: the number given to rpc_start
    uint64_t seq;      // notifications
    int64_t exit_code; // MSG_EXITED
    const char *chunk; // MSG_OUTPUT: base64 text, borrowed until the next rpc_next
    size_t chunk_len;
    const char *data; // the whole message, borrowed as well
    size_t len;
};

// Connects and performs initialize and initialized.
void rpc_open(struct rpc *r, uint16_t port);
void rpc_close(struct rpc *r);

// Queues a request and returns its id. `params` is JSON text. Nothing is sent before rpc_flush.
uint64_t rpc_request(struct rpc *r, const char *method, const char *params);
void rpc_flush(struct rpc *r);

// Waits for the next message. An error answer is fatal: no measurement expects one.
void rpc_next(struct rpc *r, struct msg *m);

// What is left of an answer that was passed over.
struct skim {
    uint64_t id;
    uint64_t len;  // of the whole message
    uint64_t text; // characters of the string after the key that was asked for
    bool eof;      // it says so near its end
};

// Waits for the next answer without keeping it, for answers of any size; notifications are passed
// over. `key` is the name of a string in it whose length is wanted, written as "\"name\":\"", or
// NULL. An error answer is fatal.
void rpc_skim(struct rpc *r, const char *key, struct skim *s);

// The string after `key` in a message of rpc_next: its characters as they stand there.
const char *rpc_text(const struct msg *m, const char *key, size_t *len);

// How a process is started; the name on the wire is made from `proc`.
struct launch {
    uint64_t proc;
    const char *const *argv; // NULL at the end, no character that JSON would escape
    bool tty;
    bool pipe_stdin;
    const char *cwd;     // URI; NULL: the root
    const char *sandbox; // JSON object, or NULL
    const char *home;    // HOME; NULL: there is none
    const char *more;    // further members as JSON, each with a comma before it; NULL: none
};

// Queues process/start with a PATH in the environment, and nothing else but `home`.
uint64_t rpc_start(struct rpc *r, const struct launch *l);

// Queues process/write of one byte.
uint64_t rpc_write_byte(struct rpc *r, uint64_t proc, char byte);
uint64_t rpc_terminate(struct rpc *r, uint64_t proc);

// What has been seen of one process. tally_add checks the rules that hold for every server: seq
// counts every event once and `closed` has the last one.
struct tally {
    uint64_t bytes, events, chunks;
    int64_t exit_code;
    bool started, exited, closed;
};

// Takes a message of this process into account.
void tally_add(struct tally *t, const struct msg *m);

// Reads until `proc` is closed and its start, the request `start_id`, is answered.
void rpc_drain(struct rpc *r, uint64_t proc, uint64_t start_id, struct tally *t);

// Writes base64 with its padding and returns its length, base64_length(len).
size_t base64_encode(const uint8_t *in, size_t len, char *out);
size_t base64_length(size_t len);

// Number of bytes that the base64 text stands for; fatal when it cannot be base64.
size_t base64_bytes(const char *text, size_t len);

// Decodes into `out`, which has room for base64_bytes. Fatal on a wrong character.
void base64_decode(const char *text, size_t len, uint8_t *out);
