#pragma once
/* process/write and process/closeStdin: input of a process, and requests that wait for room. */

#include "base/str.h"

#include <stdbool.h>

struct err;
struct process;
struct rpc_call;

#define PROCESS_YIELDED_BYTES_MAX (64u << 20) /* bytes of waiting writes per connection */

enum process_write_status {
    PROCESS_WRITE_ACCEPTED,
    PROCESS_WRITE_STDIN_CLOSED,
    PROCESS_WRITE_STARTING,
    PROCESS_WRITE_FAILED,  /* e is set */
    PROCESS_WRITE_WAITING, /* the queue is full: the call yielded and is answered later */
};

struct process_input {
    struct str write_id; /* p NULL: never de-duplicated */
    struct str data;
    bool close; /* close stdin after it */
};

/* Writes or queues the input, in order. */
enum process_write_status process_write(struct process *p, struct rpc_call *c,
                                        const struct process_input *in, struct err *e);

/* Carries out waiting writes while there is room; fails them after a terminate. */
void process_write_pump(struct process *p);

/* Drops waiting writes without an answer: the session ends. */
void process_write_drop(struct process *p);
