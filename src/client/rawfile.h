#pragma once
/*
 * Moves a range of a remote file as raw bytes, by GET and PUT of /v1/files on a connection of its
 * own: without Base64, frames and round trips. It is a short cut: whatever stops it, blocks
 * (client/blockio.h) can go on from there, and they survive an outage.
 *
 * Memory: LINK_OUT and LINK_IN bytes.
 */

#include "client/fspart.h"
#include "client/link.h"

#define RAWFILE_MIN (4u << 20) /* bytes of a file: less is not worth a connection */
#define RAWFILE_TRIES 2        /* failures in one copy, after which it goes on without */
#define RAWFILE_BURST 8        /* buffers written in one turn of the loop */

struct rawfile {
    /* Read: the next bytes. 0, or a failure with e set. NULL: it writes. */
    int (*take)(struct rawfile *r, uint64_t offset, struct str data, struct xs_error *e);
    /* Write: copies n bytes at offset. False: they cannot be had (XS_ELOCAL). */
    bool (*give)(struct rawfile *r, uint64_t offset, void *data, size_t n);
    /* n more bytes were read, or are with the kernel. */
    void (*moved)(struct rawfile *r, size_t n);
    /* The end, inside the loop. err 0: all is there. Read: everything up to `at` was taken. Write:
     * the server may have more or less than was moved. May free r. */
    void (*done)(struct rawfile *r, int err, struct xs_error *e);
    void *user;
    uint64_t at, end; /* what is still to be read, or handed to the link */
    /* private */
    struct xs_client *client;
    const char *path; /* borrowed */
    struct link link;
    uint64_t head;             /* bytes of the request */
    uint64_t told;             /* written: bytes that `moved` knows */
    uint64_t heard_at;         /* of the last progress, in nanoseconds of the loop's clock */
    struct loop_timer silence; /* looks after the next silence */
    struct loop_task more;     /* goes on writing */
    struct loop_task over;     /* reports the end */
    bool answered, ended;
    uint64_t range[3]; /* of the answer: first and last byte, size of the file */
    bool has_range;
    int err;
    struct xs_error why;
};

/* Whether the server takes or gives this file so. `path` as fspart_path() makes it. */
bool rawfile_can(const struct xs_fs *f, const char *path, uint64_t bytes, bool write);

/* Begins with [at, end) of a file; reading, `end` is its size. `done` comes later. NULL without
 * memory. `path` must outlive it; the caller sets the functions. */
struct rawfile *rawfile_new(struct xs_fs *f, const char *path, uint64_t at, uint64_t end);
void rawfile_start(struct rawfile *r);

/* Ends it; `done` does not come. NULL is fine. */
void rawfile_free(struct rawfile *r);
