#pragma once
/*
 * Events of one process on their way to its consumer: a callback, xs_process_next() or
 * communicate.
 *
 * A full window. With process/ack the server stops this process alone. Without, the client stops
 * reading its socket, unless it awaits an answer: then events are dropped here and fetched when the
 * consumer returns. A blocking write or wait would never end if nobody consumed meanwhile: then the
 * process overruns. Its output is dropped, the server may forget it too, and the consumer gets a
 * GAP for what is gone.
 */

#include "client/prochub.h"

void procflow_init(struct xs_process *p, uint64_t after);
void procflow_fini(struct xs_process *p);

/* A notification of this process. 0, -EPROTO, -ENOMEM. */
int procflow_note(struct xs_process *p, const struct procmsg_note *n);

/* An answer of process/read to `after`. 0, -EPROTO, -ENOMEM. */
int procflow_page(struct xs_process *p, uint64_t after, bool limited,
                  const struct json_node *result);

/* Something changed: hands out, asks for a page, holds back, checks operations. */
void procflow_kick(struct xs_process *p);

/* The session is back on a new connection. */
void procflow_resumed(struct xs_process *p);

/* It ends without CLOSED. */
void procflow_fail(struct xs_process *p, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void procflow_fail_with(struct xs_process *p, const struct xs_error *why);

/* Takes the next event into p->event. Whether there was one. */
bool procflow_take(struct xs_process *p);

/* Whether a consumer takes events as they come. */
bool procflow_has_consumer(const struct xs_process *p);

/* The exit as far as it is known, in the caller's size. */
void procflow_copy_exit(const struct xs_process *p, struct xs_exit *out);

/* xs_process_next(): a pending one, or one that can be answered at once. */
int procflow_next(struct xs_process *p, const struct xs_event **e, struct xs_call *k);
void procflow_on_event(struct xs_process *p,
                       int (*fn)(struct xs_process *p, const struct xs_event *e, void *user),
                       void *user);
void procflow_unpause(struct xs_process *p);
