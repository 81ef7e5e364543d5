#pragma once
/*
 * The server's side of the wrapper protocol, for one command: a datagram socket that the command
 * and all its descendants inherit, and a session for each program that a wrapper asks about.
 *
 * A program that speaks the protocol itself names file, arguments, directory and environment as it
 * likes; it gains what the rules give to these, and nothing else. The owner therefore judges what
 * the request says, looked at from outside, never what the peer is.
 *
 * Maxima: ESCALATE_SERVER_SESSIONS sessions of one command at a time. More wait in the socket.
 */

#include "escalate/escalate_wire.h"
#include "proc/proc.h"

#include <sys/stat.h>

#define ESCALATE_SERVER_SESSIONS 64

struct escalate_server;
struct escalate_session;

/* What the server knows of a wrapper that asks. */
struct escalate_peer {
    pid_t pid; /* that made the socket; 0: unknown */
};

/*
 * The owner's side.
 * decide: answer with escalate_server_answer(), inside this call or later; strings are valid until
 *     then.
 * withdrawn: the wrapper is gone before the answer; the session is invalid when this returns.
 * failed: a session broke; `why` is for the log.
 */
struct escalate_owner {
    void (*decide)(void *owner, struct escalate_session *s, const struct escalate_request *q,
                   const struct escalate_peer *peer);
    void (*withdrawn)(void *owner, struct escalate_session *s);
    void (*failed)(void *owner, const char *why);
};

/* *fd is the command's end of the socket, close-on-exec; the caller owns it. 0 or -errno. */
MUST_CHECK int escalate_server_new(struct proc_host *h, const struct escalate_owner *calls,
                                   void *owner, struct escalate_server **out, int *fd);

/* Ends all sessions and kills the programs that run for them. NULL is fine. */
void escalate_server_free(struct escalate_server *s);

/*
 * Says inside decide() which file was judged: its path without symbolic links, and what lies there.
 * If the program is to run outside, it is this file, and no longer that which the request's path
 * leads to: the peer chooses when it goes on. Without this call it is the request's. 0 or -ENOMEM.
 */
MUST_CHECK int escalate_server_judged(struct escalate_session *s, const char *file,
                                      const struct stat *st);

/* Answers a session once. `reason` (p NULL: none) is for ESCALATE_DENY. */
void escalate_server_answer(struct escalate_session *s, enum escalate_action action,
                            struct str reason);
