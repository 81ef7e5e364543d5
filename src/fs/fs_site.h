#pragma once
/*
 * Tells the pool which file system a job is about to touch (pool_enter()), so that one that hangs
 * keeps a bounded number of threads. A site is a device: all mounts of a file system are one.
 *
 * The path to a file may itself hang. So the job walks it step by step, and enters each file system
 * before it looks anything up there. The call walks the path again and may end up elsewhere: by a
 * mount in a tree, or by a link that has changed. Then it counts where it began. That is why local
 * file systems, where such calls begin, have a high limit.
 */

#include "loop/pool.h"

#include <sys/stat.h>

#define FS_SITE_REMOTE 48 /* jobs at one remote file system: FUSE, NFS ... */
#define FS_SITE_LOCAL 128 /* jobs at one file system on disk or in memory */

/* The site of the file that fs_statx() described as st; never 0. */
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
