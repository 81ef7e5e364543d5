#pragma once
/* The part of a job (fs_job.h) whose call a helper in a sandbox makes. */

#include "fs/fs_file.h"
#include "files/fs_helper.h"
#include "files/fs_params.h"

#define FS_CONFINED_TRIES 4     /* helpers that may prove useless during one call */
#define FS_CONFINED_RETIRED 256 /* helpers that may end to make room for others */

struct fs_confined {
    struct fs_helper *helper;   /* NULL: the call is not confined */
    struct fs_devices *devices; /* borrowed: of the helpers' mounts */
    struct buf call;            /* encoded; owned */
    int data;                   /* memfd, owned; -1: none */
    enum fs_call_op op;
    unsigned tries, retired;
    bool write; /* the helper opens a file to be written */
};

/* Prepares the call of `op` with these params. 0, or -errno with e set and nothing left behind. */
MUST_CHECK int fs_confined_init(struct fs_confined *x, struct rpc_call *c,
                                const struct fs_params *p, enum fs_call_op op, struct err *e);
void fs_confined_fini(struct fs_confined *x);

/* Like fs_confined_init(), for a job that makes several calls (fs_confined_set()). */
MUST_CHECK int fs_confined_begin(struct fs_confined *x, struct rpc_call *c,
                                 const struct profile *profile, struct err *e);

/*
 * In a thread, as the work of the job: appends the result's JSON, or opens the file. 0; 1: to be
 * made again after fs_confined_again(); -errno with e set.
 */
MUST_CHECK int fs_confined_run(struct fs_confined *x, struct buf *result, struct err *e);
MUST_CHECK int fs_confined_open(struct fs_confined *x, struct fs_file *f, struct err *e);

/* In a thread: sets the call to be made next. 0 or -errno with e set. */
MUST_CHECK int fs_confined_set(struct fs_confined *x, const struct fs_call *call, struct err *e);

/* Like fs_confined_run(), but appends the result's bytes, which are not checked. */
MUST_CHECK int fs_confined_ask(struct fs_confined *x, struct buf *bytes, struct err *e);

/* The bytes that came were no result of the call. Returns -EIO with e set. */
int fs_confined_distrust(struct fs_confined *x, struct err *e);

/* In a thread, for atomic writes: sends the data along. 0 or -errno with e set. */
MUST_CHECK int fs_confined_attach(struct fs_confined *x, struct str data, struct err *e);

/* Starts the helper, or another one in its place. 0 or -errno with e set. */
MUST_CHECK int fs_confined_again(struct fs_confined *x, struct session *s, struct err *e);
