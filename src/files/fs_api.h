#pragma once
/*
 * The fs methods. Each checks what can be checked at once, then runs its blocking call as a job of
 * the connection (fs_conn.h), or, when what it needs is cached by a local file system, at once
 * (fs_try_...). Their params: fs_params.h.
 */

#include "rpc/rpc.h"
#include "files/fs_conn.h"
#include "files/fs_params.h"

#define FS_QUICK_MAX 65536        /* bytes of a file that fs/readFile reads in the loop's thread */
#define FS_CHUNK 1048575          /* bytes of a file read and encoded at a time: a multiple of 3 */
#define FS_FIRST_BYTES (4u << 20) /* bytes of a file read before an answer begins */
#define FS_PROBE (32u << 20)      /* bytes of a file probed at a time */
#define FS_AHEAD (2u << 20)       /* bytes queued below which the next chunk is read */
#define FS_TRIM_MS 2000           /* after which memory kept for chunks is given back */

typedef enum rpc_outcome fs_run(struct rpc_call *c, void *params, struct buf *result,
                                struct err *e);

fs_run fs_read_file_run, fs_write_file_run;                               /* fs_read, fs_ops */
fs_run fs_open_run, fs_read_block_run, fs_write_block_run, fs_close_run;  /* fs_handles */
fs_run fs_create_directory_run, fs_get_metadata_run, fs_canonicalize_run; /* fs_ops */
fs_run fs_read_directory_run, fs_walk_run, fs_remove_run, fs_copy_run;    /* fs_ops */
fs_run fs_rename_run, fs_set_permissions_run;                             /* fs_ops */

/*
 * What all methods with a path check first: that it is one of this host, and whether the call must
 * be made in a sandbox. 0: no; 1: yes; -EINVAL with e set.
 */
MUST_CHECK int fs_ops_check(const struct fs_params *p, bool write, struct err *e);

/*
 * Reads n bytes at `offset` and encodes them at the end of seg, which has room. Bytes read, less
 * than n only at the end of the file, or -errno. Without `wait` -EAGAIN when it would have to.
 */
MUST_CHECK ssize_t fs_read_encoded(const struct fs_file *f, uint64_t offset, size_t n, bool wait,
                                   struct sendq_seg *seg);

/* Memory for chunks is in use: gives back later what the pool keeps of it. */
void fs_read_used_blocks(struct files_host *host);
