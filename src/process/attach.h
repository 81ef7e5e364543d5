#pragma once
/*
 * process/attach and process/detach: a connection watches a process of another session, read-only.
 *
 * A viewer never slows the process down. It reads the retained output through a cursor, at the
 * pace of its own connection. A gap tells it which events were evicted before it got there.
 * Maxima: ATTACH_PER_PROCESS viewers of a process, ATTACH_PER_SESSION views of a session.
 */

#include "process/process.h"

#define ATTACH_PER_PROCESS 16
#define ATTACH_PER_SESSION 64

/*
 * The views of a console cost the watched command next to nothing: they get what they want in
 * turns, ATTACH_PACE_BYTES at most every ATTACH_PACE_MS, and miss the rest of a flood (gaps). A
 * view that has waited long gets news at once.
 */
#define ATTACH_PACE_MS 16
#define ATTACH_PACE_BYTES (128u << 10)
#define ATTACH_PACE_EVENT 256 /* bytes that an event counts besides its output */

void attach_pace_init(struct session *s);

/* The process has news: sends it to the viewers whose connections have room. */
void attach_wake(struct process *p);

/* The connection of `s` has room again: its viewers go on. */
void attach_resume(struct session *s);

/* The process leaves the table: tells its viewers, unless they have seen it close. */
void attach_end_process(struct process *p);

/* The connection of `s` is gone: frees its viewers. */
void attach_end_session(struct session *s);

/* The methods. */
int attach_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome attach_run(struct rpc_call *c, void *params, struct buf *result, struct err *e);
int attach_detach_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome attach_detach_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e);
