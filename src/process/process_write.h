#pragma once
/* process/write and process/closeStdin: input for a process, and the requests that wait for
 * room. */

#include "process/process.h"

#define PROCESS_PARKED_BYTES_MAX (64u << 20) /* bytes of waiting writes per connection */

enum process_write_status {
    PROCESS_WRITE_ACCEPTED,
    PROCESS_WRITE_STDIN_CLOSED,
    PROCESS_WRITE_STARTING,
    PROCESS_WRITE_FAILED,  /* e is set */
    PROCESS_WRITE_WAITING, /* the queue is full: the call was parked and will be answered */
};

struct process_input {
    struct str write_id; /* p NULL: never de-duplicated */
    struct str data;
    bool close; /* end stdin behind it */
};

/* Writes or queues, in order. */
enum process_write_status process_write(struct process *p, struct rpc_call *c,
                                        const struct process_input *in, struct err *e);

/* Moves waiting writes on while there is room; fails them after a terminate. */
void process_write_pump(struct process *p);

/* Drops waiting writes without an answer: the session is going away. */
void process_write_drop(struct process *p);
