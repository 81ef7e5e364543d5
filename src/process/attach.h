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
