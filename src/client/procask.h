#pragma once
/* Questions about processes: wait, read, list, snapshot. */

#include "client/prochub.h"

int procask_wait(struct xs_process *p, bool until_closed, int64_t ms, struct xs_exit *e,
                 struct xs_call *k);
int procask_read(struct xs_process *p, uint64_t after, uint64_t max, uint64_t wait_ms,
                 struct xs_bytes *json, struct xs_call *k);
int procask_snapshot(struct xs_process *p, size_t max, struct xs_snapshot *s, struct xs_call *k);
int procask_list(struct xs_client *c, struct xs_bytes *json, struct xs_call *k);
