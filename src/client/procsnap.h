#pragma once
/* Builds the caller's struct xs_snapshot: one block of memory. */

#include "client/procmsg.h"
#include "execserver.h"

/* One stream: its bytes are copied by `copy`, or are `data`. */
struct procsnap_part {
    bool present;
    size_t head, tail;
    uint64_t total;
    const void *data;
    void (*copy)(const void *from, char *dst); /* NULL: data has head + tail bytes */
};

/* 0, or XS_ENOMEM. */
int procsnap_make(struct xs_snapshot *out, const struct procsnap_part parts[EVQUEUE_STREAMS],
                  const struct xs_exit *exit);
