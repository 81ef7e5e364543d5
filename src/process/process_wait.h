#pragma once
/* Requests that wait for news of a process: process/read, process/wait. */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct outlog_chunk;
struct process;
struct rpc_call;

enum process_until {
    PROCESS_UNTIL_NEWS,   /* there is something to read */
    PROCESS_UNTIL_EXITED, /* the leader has ended */
    PROCESS_UNTIL_CLOSED, /* all its streams too */
};

struct process_query {
    enum process_until until;
    uint64_t after;     /* PROCESS_UNTIL_NEWS: sequence number */
    uint64_t max_bytes; /* PROCESS_UNTIL_NEWS */
    bool limited;       /* max_bytes was given: the answer is a page */
};

/* Whether the query can be answered now. */
bool process_wait_ready(const struct process *p, const struct process_query *q);

/*
 * Appends the JSON of an answer: to process/read for PROCESS_UNTIL_NEWS, else to process/wait.
 * `late`: its time was up first. 0 or as buf_reserve().
 */
MUST_CHECK int process_wait_put_answer(struct process *p, const struct process_query *q, bool late,
                                       struct buf *b);

/*
 * Answers when process_wait_ready(), at the latest after `ms` (UINT64_MAX = no limit). 0, or -errno
 * with e set.
 */
MUST_CHECK int process_wait_for(struct process *p, struct rpc_call *c,
                                const struct process_query *q, uint64_t ms, struct err *e);

/* Bytes of a retained chunk in one piece, valid until the next call. */
const char *process_wait_chunk_bytes(const struct process *p, const struct outlog_chunk *c);

/* Answers the requests that are ready now. */
void process_wait_wake(struct process *p);

/* Answers all requests: the process leaves the table, its output is gone already. */
void process_wait_expire(struct process *p);

/* Drops all requests without an answer: the session ends. */
void process_wait_drop(struct process *p);
