#pragma once
/*
 * The protocol between an execve wrapper and the server, as the old wrapper speaks it.
 *
 * The wrapper sends a datagram with one end of a stream socket pair over the socket that it has
 * inherited. On the stream both send frames: the length in 4 bytes, little-endian, and that much
 * JSON. Descriptors travel with the length.
 *
 *     wrapper  {"file","argv","workdir","env"}
 *     server   {"action":"Run"} | {"action":"Escalate"} | {"action":{"Deny":{"reason"}}}
 *     wrapper  {"fds":[0,1,2]} with the descriptors            (after Escalate)
 *     wrapper  {"signal":N,"group":BOOL}                       (ours only; any time after)
 *     server   {"exit_code":N}, ours also "signal":N or "error":"text"
 *
 * Maxima: a frame has ESCALATE_FRAME_MAX bytes and ESCALATE_FDS descriptors.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

#include <stdbool.h>
#include <sys/types.h>

#define ESCALATE_FRAME_MAX (4u << 20)
#define ESCALATE_FDS 16
#define ESCALATE_SOCKET "CODEX_ESCALATE_SOCKET"
#define ESCALATE_WRAPPER_OLD "BASH_EXEC_WRAPPER"
#define ESCALATE_WRAPPER "EXEC_WRAPPER"

/* A frame being received. Owns the descriptors. */
struct escalate_frame {
    unsigned char head[4];
    size_t head_len;
    struct buf body;
    int fds[ESCALATE_FDS];
    size_t fd_count;
};

void escalate_wire_init(struct escalate_frame *f);
void escalate_wire_fini(struct escalate_frame *f);

/* Reads what is there. 1: the frame is complete; 0: not yet (a socket that does not block);
 * -ECONNRESET: the peer is gone; -EMSGSIZE: a frame above the maximum; or -errno. */
MUST_CHECK int escalate_wire_read(int sock, struct escalate_frame *f);

/* Prepares for the next frame; closes what descriptors are left. */
void escalate_wire_next(struct escalate_frame *f);

/* Sends a frame with `n` descriptors. 0 or -errno. */
MUST_CHECK int escalate_wire_send(int sock, struct str body, const int *fds, size_t n);

/* A program that a wrapper asks about. Strings live in the arena of the decoding. */
struct escalate_request {
    const char *file;
    char **argv; /* NULL-terminated */
    size_t argc;
    const char *workdir;
    char **envp;
    bool lossy; /* bytes that are not UTF-8 were replaced on the way */
    bool quiet; /* the wrapper ignores no signal that the shell did not; the old one does */
};

MUST_CHECK int escalate_wire_put_request(struct buf *b, const struct escalate_request *q);

/* 0; -EINVAL with e set; -ENOMEM. */
MUST_CHECK int escalate_wire_get_request(struct json_doc *doc, struct str body, struct arena *a,
                                         struct escalate_request *q, struct err *e);

enum escalate_action { ESCALATE_RUN, ESCALATE_OUTSIDE, ESCALATE_DENY };

/* The answer to a request; `reason` (p NULL: none) is for ESCALATE_DENY. */
MUST_CHECK int escalate_wire_put_response(struct buf *b, enum escalate_action action,
                                          struct str reason);
/* *reason points into the document. */
MUST_CHECK int escalate_wire_get_response(struct json_doc *doc, struct str body,
                                          enum escalate_action *action, struct str *reason,
                                          struct err *e);

/* The numbers that descriptors get in the program. Returns how many, or -EINVAL with e set. */
MUST_CHECK int escalate_wire_get_fds(struct json_doc *doc, struct str body,
                                     int numbers[ESCALATE_FDS], struct err *e);

/* The signal of a frame of the wrapper; 0: none. *group: it came from a terminal. */
int escalate_wire_get_signal(struct json_doc *doc, struct str body, bool *group);

/* How a program ended. */
struct escalate_result {
    int exit_code;
    int signal;       /* that killed it, or 0 */
    struct str error; /* why it was not started; p NULL: it was */
};

MUST_CHECK int escalate_wire_put_result(struct buf *b, const struct escalate_result *r);
MUST_CHECK int escalate_wire_get_result(struct json_doc *doc, struct str body,
                                        struct escalate_result *r, struct err *e);
