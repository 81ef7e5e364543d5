#pragma once
/*
 * An open file of the server. A handle belongs to a connection: after a resume it is opened again,
 * and requests that were lost go out again. Both are invisible here, except when a file that is
 * written cannot be opened without losing what is in it: then everything fails with XS_ELOST.
 */

#include "client/fspart.h"

#define FSHANDLE_MAX 128 /* that a server keeps for a connection */

enum fshandle_state {
    FSHANDLE_OPENING,
    FSHANDLE_OPEN,
    FSHANDLE_REOPENING,
    FSHANDLE_CLOSING,
    FSHANDLE_FAILED, /* `why` tells */
};

struct fshandle {
    /* Inside the loop: it is open (err 0), or could not be opened. The function may free it. */
    void (*opened)(struct fshandle *h, int err);
    void *user;
    struct xs_error why;
    /* private */
    struct list node;
    struct xs_fs *fs; /* one user of it */
    enum fshandle_state state;
    enum xs_open mode;
    char *path; /* owned */
    char id[24];
    void (*closed)(struct fshandle *h, int err, struct xs_error *e);
    bool checking;     /* `request` asks for the size, behind a reopening */
    unsigned openings; /* grows with each */
    uint64_t written;  /* the file has at least these bytes, by what was answered */
    struct calls_request request;
    struct list waiting; /* struct fshandle_io.node */
    struct list flying;
    struct calls_waiter waiter;
    bool *gone; /* set when it is freed */
};

/* Opens a file. `e` has the reason of a failure. NULL without memory, or when no request can be
 * sent. */
struct fshandle *fshandle_open(struct xs_fs *f, const char *path, enum xs_open mode,
                               void (*opened)(struct fshandle *, int), void *user,
                               struct xs_error *e);

/* Closes it without waiting for an answer, drops its requests, frees it. NULL is fine. */
void fshandle_free(struct fshandle *h);

/* Asks the server to close it; `done` comes inside the loop, and frees it. The answer is lost with
 * the connection: then it is closed too. Nothing else may be in flight. */
MUST_CHECK int fshandle_close(struct fshandle *h,
                              void (*done)(struct fshandle *h, int err, struct xs_error *e),
                              void *user, struct xs_error *e);

/* A block to read or write; embedded, zero at first. */
struct fshandle_io {
    uint64_t offset;
    size_t n; /* 1 to CLIENT_BLOCK_MAX */
    /* To write, called each time it is sent: n bytes, valid until it returns; NULL: it fails, the
     * reason is the caller's business. NULL: it reads. */
    const void *(*give)(struct fshandle_io *io);
    /* Inside the loop. Read: `data` is valid until it returns; less than n is the end of the file.
     * The function may free io, and the handle. */
    void (*done)(struct fshandle_io *io, int err, struct str data, bool eof, struct xs_error *e);
    /* private */
    struct fshandle *handle;
    struct list node;
    unsigned opening;
    struct calls_request request;
};

/* Sends it. 0; XS_EBUSY: no room, nothing happened; or another failure, in e. */
MUST_CHECK int fshandle_send(struct fshandle *h, struct fshandle_io *io, struct xs_error *e);
void fshandle_drop(struct fshandle_io *io); /* harmless when idle */

/* For fspart. */
void fshandle_resumed(struct files *files);
void fshandle_failed(struct files *files, const struct xs_error *why);
void fshandle_free_all(struct files *files);
