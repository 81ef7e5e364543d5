#pragma once
/*
 * Watching a process of another session, read-only: process/attach and process/detach.
 *
 * A viewer never holds up the process: it has no gate. It reads the retained output at the pace of
 * its own connection, through a cursor; what was evicted before it got there is reported as a gap.
 * Maxima: ATTACH_PER_PROCESS viewers of a process, ATTACH_PER_SESSION views of a session.
 */

#include "process/process.h"

#define ATTACH_PER_PROCESS 16
#define ATTACH_PER_SESSION 64

/* There is news of the process: viewers whose connections have room hear it. */
void attach_wake(struct process *p);

/* The connection of `s` has room again. */
void attach_resume(struct session *s);

/* The process leaves the table: its viewers are told, unless they have seen it close. */
void attach_end_process(struct process *p);

/* The connection of `s` is gone. */
void attach_end_session(struct session *s);

/* The methods. */
int attach_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome attach_run(struct rpc_call *c, void *params, struct buf *result, struct err *e);
int attach_detach_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome attach_detach_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e);
