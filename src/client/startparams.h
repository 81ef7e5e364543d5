#pragma once
/* The params of process/start, from the options of a start. */

#include "client/client_internal.h"

struct startparams {
    char id[40];            /* a random one, unless the options name it */
    const char *process_id; /* `id`, or borrowed from the options */
    bool tty;
    bool stdin_open;     /* there is a pipe, or the terminal */
    uint64_t timeout_ms; /* the client must end the process: the server cannot; 0: no limit */
};

/*
 * Appends the params to `b`. What the server lacks is XS_ENOTSUP. 0, or a negative enum xs_err with
 * *e.
 */
MUST_CHECK int startparams_put(struct xs_client *c, const struct xs_options *o, struct buf *b,
                               struct startparams *out, struct xs_error *e);
