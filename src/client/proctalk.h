#pragma once
/* communicate: writes, closes stdin, reads to the end; keeps both ends of each stream. */

#include "client/prochub.h"

int proctalk_call(struct xs_process *p, const void *in, size_t n, size_t max, struct xs_snapshot *s,
                  struct xs_call *k);

/* Takes the events that have come. It may end the operation, and p->talk with it. */
void proctalk_feed(struct xs_process *p);
