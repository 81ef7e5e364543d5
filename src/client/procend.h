#pragma once
/* How a process is made to end: signals, terminate, the time limit where the server has none. */

#include "client/prochub.h"

void procend_init(struct xs_process *p);
void procend_stop(struct xs_process *p); /* it has ended: timers stop */
void procend_fini(struct xs_process *p);

/* The process runs from now on: ends it after `ms`. 0 or -ENOMEM. */
int procend_limit(struct xs_process *p, uint64_t ms);

int procend_call_signal(struct xs_process *p, int signo, struct xs_call *k);
int procend_call_terminate(struct xs_process *p, int64_t grace_ms, struct xs_call *k);
int procend_call_resize(struct xs_process *p, unsigned rows, unsigned cols, struct xs_call *k);
