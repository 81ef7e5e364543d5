#pragma once
/*
 * What the files of this room share. One client is one engine: a single-threaded state machine on a
 * loop of its own.
 *
 * An operation of execserver.h is a `struct op`. It sends requests (calls_*), whose answers come to
 * `done` functions inside the loop, and ends with op_finish(). The engine tells the caller later,
 * when none of its functions is on the stack: callbacks of the caller run from notices alone, and
 * may free anything.
 *
 * A module with state per client (processes, files) has a `struct client_part`: it sees
 * notifications, resumes and the end.
 */

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "execserver.h"
#include "json/json.h"
#include "loop/loop.h"

#define CALLS_MAX 1024                 /* requests in flight, and one urgent */
#define CALLS_TEXT_MAX (2u << 20)      /* bytes of a message that we send */
#define CLIENT_MESSAGE_MAX (64u << 20) /* bytes of a message that we take */
#define CLIENT_BLOCK_MAX (1u << 20)    /* decoded bytes in one request or output chunk */

/* -- errors (xs_error.c) -- */

struct xs_error {
    int code; /* enum xs_err; 0: none */
    int rpc, os;
    char *text; /* owned; NULL after a failed allocation: see xs_error_text() */
};
#define XS_ERROR_INIT ((struct xs_error){.code = 0})

/* Makes a text of anybody one line that no terminal obeys: control characters, C1 too, become
 * blanks, bytes that are not UTF-8 "?". */
void xs_error_tidy(char *z);
/* Sets code and text, which is tidied. Returns code, for `return ...`. */
int xs_error_set(struct xs_error *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Like xs_error_set(), with errno `num` > 0: ": TEXT" is appended. */
int xs_error_sys(struct xs_error *e, int code, int num, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* From the error object of an answer to `method`: XS_EREMOTE, or XS_ENOTSUP for -32601. The errno
 * is what "(os error N)" in its message says. */
int xs_error_remote(struct xs_error *e, const char *method, const struct json_node *error);
int xs_error_copy(struct xs_error *to, const struct xs_error *from); /* returns the code */
int xs_error_move(struct xs_error *to, struct xs_error *from);       /* returns the code */
void xs_error_fini(struct xs_error *e);
#define _cleanup_xs_error_ __attribute__((cleanup(xs_error_fini)))

/* -- options (xs_options.c) -- */

/* Values of a bag, borrowed; o may be NULL. */
const char *xs_options_get(const struct xs_options *o, const char *key, const char *otherwise);
int64_t xs_options_get_num(const struct xs_options *o, const char *key, int64_t otherwise);
bool xs_options_has(const struct xs_options *o, const char *key);
/* The elements of a list, with a NULL behind them; *n their number. Never NULL. */
const char *const *xs_options_list(const struct xs_options *o, const char *key, size_t *n);
struct xs_options *xs_options_copy(const struct xs_options *o); /* NULL: out of memory */

/* -- notices (notice.c): the way to the caller -- */

/*
 * Runs once, from the top of xs_client_process() or of a blocking operation. `run` may post the
 * notice again and then call one callback of the caller; behind the callback it must touch nothing,
 * everything may be freed. Embedded, zero at first (notice_init).
 */
struct notice {
    struct list node;
    struct xs_client *client; /* while it is posted; else NULL */
    void (*run)(struct notice *n);
};
void notice_init(struct notice *n, void (*run)(struct notice *n));
void notice_post(struct xs_client *c, struct notice *n); /* unless it is posted already */
void notice_drop(struct notice *n);                      /* harmless unless it is posted */

/* -- operations (op.c) -- */

struct op {
    struct list node;
    struct xs_client *client;
    struct xs_call *call; /* NULL: the caller blocks */
    /* Stops it: drops requests and timers, frees what its struct owns. Called once at every end:
     * before the caller hears of it, or when the client is freed. May be NULL. */
    void (*end)(struct op *op);
    struct xs_error error; /* details of a negative result */
    int result;
    bool finished;
    bool blocks; /* the caller waits in op_wait() */
    struct notice notice;
    struct loop_timer deadline; /* XS_OPT_CALL_MS */
};

/*
 * A new operation: `size` zeroed bytes that begin with a struct op. 0 and *out (a pointer to a
 * pointer), or a negative error that xs_client_error() has: XS_EBUSY for a blocking one inside a
 * callback, XS_ECONNECT before xs_client_connect(), what the client failed of, XS_ENOMEM.
 */
MUST_CHECK int op_new(struct xs_client *c, struct xs_call *k, size_t size,
                      void (*end)(struct op *op), void *out);

/* The last statement of a call of execserver.h: blocks until it is finished and returns the result,
 * or returns 0 for one with a call. */
int op_wait(struct op *op);

/* Ends it. The caller learns it later; the op must not be used any more. */
void op_finish(struct op *op, int result);
/* Sets the error and ends it. */
void op_fail(struct op *op, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Ends it with an error, which is moved. */
void op_fail_with(struct op *op, struct xs_error *e);
/* Ends it instead of op_wait(), after calls_send() or another failure has set op->error: returns
 * its code at once, without `done`. */
int op_refused(struct op *op);
/* The same with a text. */
int op_refuse(struct op *op, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* -- requests (calls.c) -- */

/* What a resume does with a request that was sent and not answered. */
enum calls_after {
    CALLS_AGAIN, /* sends it again */
    CALLS_LOST,  /* `done` with XS_ELOST */
    CALLS_ASK,   /* calls `lost`, the request is no longer in flight */
};

/* One request. Embedded, zero at first. */
struct calls_request {
    /*
     * Inside the loop: the answer. err 0: `result` is its node, valid until the function returns.
     * Else result is NULL and e, which may be moved, tells: XS_EREMOTE, XS_ELOST, XS_EPROTO or what
     * the client failed of. The request is idle again. It may send again, and free the request.
     */
    void (*done)(struct calls_request *r, int err, const struct json_node *result,
                 struct xs_error *e);
    enum calls_after after;
    void (*lost)(struct calls_request *r); /* CALLS_ASK */
    bool urgent;  /* goes first, and may be the 1,025th: terminate and close */
    bool patient; /* an answer may take for ever: waiting for it is not "an answer is awaited" */

    /* private */
    struct xs_client *client; /* NULL: idle */
    struct list node;
    uint64_t id;
    uint64_t connection; /* on which it was sent; 0: not yet */
    uint64_t end;        /* bytes of that connection up to its last one */
    bool settled;        /* the kernel has it; the text is gone unless it may be sent again */
    uint64_t sent_ms;    /* CLOCK_BOOTTIME when it was first handed to the kernel; 0: not yet */
    const char *method;  /* borrowed: a literal */
    struct buf text;     /* the message */
};

/*
 * Begins a request: append its params, one JSON value, to the buffer, then calls_send(). NULL: out
 * of memory. `method` is a literal.
 */
struct buf *calls_begin(struct xs_client *c, struct calls_request *r, const char *method);

/*
 * Sends it. While the client connects or resumes it waits. 0; XS_EBUSY: CALLS_MAX are in flight or
 * XS_OPT_QUEUE is full; XS_EINVAL: above CALLS_TEXT_MAX; XS_ENOMEM if appending had failed (pass
 * the failure as `built`, 0 or negative). After an error the request is idle. The text is in *e.
 */
MUST_CHECK int calls_send(struct xs_client *c, struct calls_request *r, int built,
                          struct xs_error *e);

/* Forgets it: `done` will not come, the answer is ignored. One that was not sent is not sent.
 * Harmless on an idle one. Frees its memory. */
void calls_drop(struct calls_request *r);

/* Whether its last byte is with the kernel; milliseconds (CLOCK_BOOTTIME) since it first was. */
bool calls_was_sent(const struct calls_request *r);
uint64_t calls_age_ms(const struct calls_request *r);

/* Bytes that calls_send() takes now. A waiter's `fn` runs once, inside the loop, when there is room
 * for at least CLIENT_BLOCK_MAX in Base64. */
size_t calls_room(const struct xs_client *c);
struct calls_waiter {
    struct list node;
    void (*fn)(struct calls_waiter *w);
};
void calls_wait_room(struct xs_client *c, struct calls_waiter *w);
void calls_stop_waiting(struct calls_waiter *w); /* harmless when it does not wait, or is zero */

/* The JSON text of a node, for the caller. 0 or XS_ENOMEM. */
MUST_CHECK int calls_bytes(struct xs_bytes *out, const struct json_node *v);

/* -- params (params.c): a writer of JSON that remembers the first failure -- */

struct params {
    struct buf *b;
    int r;     /* 0, or the first failure: for calls_send() */
    bool more; /* a comma is due */
};
/* `key` NULL: an element of an array, or the root. */
void params_open(struct params *p, const char *key, char bracket);      /* '{' or '[' */
void params_close(struct params *p, char bracket);                      /* '}' or ']' */
void params_str(struct params *p, const char *key, struct str value);   /* must be UTF-8, else r */
void params_strz(struct params *p, const char *key, const char *value); /* NULL: left out */
void params_u64(struct params *p, const char *key, uint64_t value);
void params_i64(struct params *p, const char *key, int64_t value);
void params_bool(struct params *p, const char *key, bool value);
void params_raw(struct params *p, const char *key, struct str json);
void params_base64(struct params *p, const char *key, const void *data, size_t n);
/* A path of any bytes as a file URI; a relative one is below the server's directory. */
void params_path(struct params *p, const char *key, const struct xs_client *c, const char *path);

/* -- parts (client.c) -- */

/* A module's share in a client. Embedded in its state, which `free` frees. */
struct client_part {
    struct list node;
    /* A notification: 1 if it is this module's, 0 if not, XS_EPROTO if it is malformed (the
     * connection is dropped and resumed). NULL: none. `params` may be NULL. */
    int (*note)(struct client_part *p, struct str method, const struct json_node *params);
    /* The session is back on a new connection. Requests sent here go before those that are sent
     * again. NULL: nothing to do. */
    void (*resumed)(struct client_part *p);
    /* The client failed or was closed: `why`. Requests end by themselves, behind it. NULL: none. */
    void (*failed)(struct client_part *p, const struct xs_error *why);
    /* xs_client_close(): send what ends things (urgent). The client waits for the answers. NULL. */
    void (*closing)(struct client_part *p);
    /* xs_client_free(). Never NULL. */
    void (*free)(struct client_part *p);
};
void client_add_part(struct xs_client *c, struct client_part *p);

struct loop *client_loop(struct xs_client *c);
const struct xs_options *client_options(const struct xs_client *c);
/* The state of a module, by its name: NULL, or what it has set. */
struct processes;
struct files;
struct processes **client_processes(struct xs_client *c);
struct files **client_files(struct xs_client *c);

/* Something is alive there whose news we await (+1, -1): silence then means pings. */
void client_live(struct xs_client *c, int change);
/* A process has a full window and the server does not hold it back (+1, -1). While there is one and
 * no answer is awaited, the socket is not read. */
void client_hold(struct xs_client *c, int change);
/* Whether an answer is awaited, or the caller blocks: a held process must lag instead of stopping
 * the socket. */
bool client_awaits(const struct xs_client *c);

/* The server announced it; what the session was granted. */
bool client_can(const struct xs_client *c, const char *capability);
uint64_t client_closed_retention_ms(const struct xs_client *c);
/* The member of environmentInfo.capabilities, or NULL; valid until the next resume. */
const struct json_node *client_capability(const struct xs_client *c, const char *name);

/* A line for xs_client_on_log(). */
void client_log(struct xs_client *c, int level, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Sets the error of xs_client_error(), for calls without an op. Returns the code. */
int client_error(struct xs_client *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Milliseconds of CLOCK_BOOTTIME. */
uint64_t client_boottime_ms(void);
