#pragma once
/*
 * The fs methods. Each checks what can be checked at once, then runs its blocking call as a job of
 * the connection (fs_job.h), or, when a local file system has cached what it needs, at once
 * (fs_file_try_open_read(), fs_meta_try()). Their params: fs_params.h.
 */

#include "rpc/rpc.h"

struct files_host;
struct fs_file;
struct fs_params;
struct sendq_seg;

#define FS_QUICK_MAX 65536        /* bytes that fs/readFile reads in the loop's thread */
#define FS_CHUNK 1048575          /* bytes of a file read and encoded at a time: a multiple of 3 */
#define FS_FIRST_BYTES (4u << 20) /* bytes of a file read before an answer begins */
#define FS_PROBE (32u << 20)      /* bytes of a file probed at a time */
#define FS_AHEAD (2u << 20)       /* bytes queued below which the next chunk is read */
#define FS_TRIM_MS 2000           /* until the memory of chunks is given back */

typedef enum rpc_outcome fs_run(struct rpc_call *c, void *params, struct buf *result,
                                struct err *e);

fs_run fs_read_run;
fs_run fs_handles_open_run, fs_handles_read_block_run, fs_handles_write_block_run;
fs_run fs_handles_close_run;
fs_run fs_ops_run; /* fs/createDirectory, canonicalize, readDirectory, remove, copy, rename, ... */
fs_run fs_ops_write_file_run, fs_ops_get_metadata_run, fs_ops_walk_run;

/*
 * Checks first, for every method with a path, that this host can have it, and whether a sandbox
 * must make the call. 0: no; 1: yes; -EINVAL with e set.
 */
MUST_CHECK int fs_ops_check(const struct fs_params *p, bool write, struct err *e);

/*
 * Reads n bytes at `offset` and encodes them at the end of seg, which has room. Bytes read, fewer
 * than n only at the end of the file, or -errno. Without `wait` it never waits: -EAGAIN instead.
 */
MUST_CHECK ssize_t fs_read_encoded(const struct fs_file *f, uint64_t offset, size_t n, bool wait,
                                   struct sendq_seg *seg);

/* Memory for chunks is in use: has the pool give back later what it keeps. */
void fs_read_used_blocks(struct files_host *host);
