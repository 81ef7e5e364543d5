#pragma once
/* An operation of one file call, and what larger ones are built of. */

#include "client/fspart.h"

#include <limits.h>

struct fsop;

/* Reads the result of a request: 0 or more ends the operation with it, FSOP_GOES_ON does not; a
 * failure has set e. */
#define FSOP_GOES_ON INT_MAX
typedef int fsop_take(struct fsop *o, const struct json_node *result, struct xs_error *e);

struct fsop {
    struct op op; /* first */
    struct xs_fs *fs;
    const char *method;
    struct calls_request request;
    fsop_take *take;
    /* Instead of an end with the error: 1 if it has gone on. */
    int (*failed)(struct fsop *o, int err, struct xs_error *e);
    void *out;    /* the caller's place for the result */
    char *path;   /* owned; of a walk its root */
    uint64_t max; /* of a read */
    unsigned flags;
    void (*end)(struct fsop *o);
};

/* A new operation of `size` bytes that begin with a struct fsop. `end` (NULL: nothing) frees what
 * the larger struct owns. 0, or as op_new(). */
MUST_CHECK int fsop_new(struct xs_fs *f, struct xs_call *k, size_t size, void (*end)(struct fsop *),
                        void *out);

/* Begins a request: the object with the member `path`, or `sourcePath` and `destinationPath`, and
 * the sandbox, is open. */
struct params fsop_begin(struct fsop *o, const char *method, const char *path, const char *to);

/* Closes the object and sends. `take` may be NULL. A failure ends nothing: it is in e. */
MUST_CHECK int fsop_send(struct fsop *o, struct params *p, enum calls_after after, fsop_take *take,
                         struct xs_error *e);

/* The last statement of a call of execserver.h: fsop_send() and op_wait(). */
int fsop_run(struct fsop *o, struct params *p, enum calls_after after, fsop_take *take);

/* Member followSymlinks, if the flags say no. */
void fsop_follow(struct params *p, unsigned flags);

/* XS_ENOTSUP if the client is connected to a server without the capability, XS_ECONNECT before the
 * first connection; the error is that of the client. */
MUST_CHECK int fsop_needs(struct xs_client *c, const char *capability, const char *what);
