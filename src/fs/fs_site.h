#pragma once
/*
 * Tells the pool which file system a job is about to touch (pool_enter()), so that one that hangs
 * keeps a bounded number of threads. A site is a device: all mounts of a file system are one.
 *
 * The way to a file may itself hang. So it is gone step by step, and each file system is entered
 * before anything in it is looked up. The call itself walks the path again and may be led to
 * another file system: by a tree with a mount in it, or by a link that has changed. Then it counts
 * where it began. For that reason local file systems, where such calls begin, have a high limit.
 */

#include "loop/pool.h"

#include <sys/stat.h>

#define FS_SITE_REMOTE 48 /* jobs at one file system that asks somebody else: FUSE, NFS ... */
#define FS_SITE_LOCAL 128 /* and at one of a disk, or in memory */

/* The site of a file with the facts st, from fs_statx(); never 0. */
uint64_t fs_site(const struct statx *st);

/*
 * In a thread: enters that site; or the file system of fd; or that of `path` (absolute, may be
 * missing), by way of those that the path leads through. `follow`: a link that the path ends in is
 * followed. False as pool_enter(). A failure counts as entered: the call itself will report it.
 */
MUST_CHECK bool fs_site_enter_known(struct pool_job *j, uint64_t site);
MUST_CHECK bool fs_site_enter_fd(struct pool_job *j, int fd);
MUST_CHECK bool fs_site_enter(struct pool_job *j, const char *path, bool follow);

/* Enters those of all paths (NULL: none) and stays at the first remote one, else at the last. */
MUST_CHECK bool fs_site_enter_all(struct pool_job *j, const char *const *path, size_t n,
                                  bool follow);
