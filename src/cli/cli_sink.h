#pragma once
/*
 * A descriptor for output that never blocks the loop: what its reader does not take yet waits here,
 * and the owner pauses the source. A pipe or terminal is opened anew, so that O_NONBLOCK does not
 * reach the others who share it.
 */

#include "base/buf.h"

#include <stdbool.h>

#define CLI_SINK_MAX (64u << 20) /* bytes that wait: a piece of output, or old output */

struct cli_sink {
    int fd;
    bool own;     /* fd was opened here */
    bool careful; /* fd may block: only small pieces, after poll() */
    int error;    /* -errno that ended it; 0: none */
    struct buf rest;
};

void cli_sink_init(struct cli_sink *s, int fd);
void cli_sink_fini(struct cli_sink *s);

/* Writes or keeps everything. 1 if something waits: pause until cli_sink_flush() returns 0. 0 if
 * not. Negative: the sink has failed, now or before; -EPIPE if its reader is gone. */
MUST_CHECK int cli_sink_put(struct cli_sink *s, const void *p, size_t n);

/* Goes on writing; as cli_sink_put(). */
MUST_CHECK int cli_sink_flush(struct cli_sink *s);

/* Blocks until everything is written, or `ms` have passed. */
void cli_sink_drain(struct cli_sink *s, int ms);

static inline bool cli_sink_waits(const struct cli_sink *s) {
    return s->rest.len > 0 && s->error == 0;
}
