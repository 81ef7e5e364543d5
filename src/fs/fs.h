#pragma once
/*
 * The file system operations behind the fs methods: one blocking call each, on native absolute
 * paths (normalised: no dot segments, no double or trailing slashes). They run in threads of the
 * pool and keep no state. They give structs, or hand items to a sink (fs_item.h). Errors are values
 * with the protocol's code and text (fs_fail.h). Rules of every method: PROTOCOL.md, "Files".
 *
 * "Follow" mode resolves links as the kernel does. In no-follow mode every parent is opened
 * relative to the one before it, and no link is ever passed (fs_parent_open).
 */

#include "base/buf.h"
#include "fs/fs_fail.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#define FS_FILE_MAX (512ull << 20) /* bytes that fs/readFile returns */
#define FS_ENTRIES_MAX 50000       /* entries that fs/readDirectory returns */
#define FS_RESULT_MAX (48u << 20)  /* bytes of one result */

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U /* Linux 6.8; younger than the headers we build with */
#endif

/*
 * Opens the directory that the first n bytes of `path` name, with O_PATH, passing no link; n = 0 is
 * the root. A descriptor or -errno; -ENOTDIR for a link.
 */
MUST_CHECK int fs_open_dir(const char *path, size_t n);

/*
 * Opens the directory that holds the last component of `path` without passing a link, for
 * descriptor-relative calls; *leaf is that component, borrowed from path. 0; or -errno with e set,
 * also -EINVAL "path must name an entry" for "/".
 */
MUST_CHECK int fs_parent_open(const char *path, int *fd, const char **leaf, struct err *e);

/*
 * Opens the directory that holds the last component of `path`, through links, with O_PATH; *leaf is
 * that component, borrowed from path, empty for "/". A descriptor or -errno.
 */
MUST_CHECK int fs_parent_follow(const char *path, const char **leaf);

/*
 * Appends s, each sequence of bytes that is not UTF-8 replaced by U+FFFD (one for the longest start
 * of a character): names and paths in texts. 0 or as buf_reserve().
 */
MUST_CHECK int fs_put_lossy(struct buf *b, struct str s);

/*
 * statx() of the basic fields, the birth time and the unique id of the mount; stx_mask says which
 * the kernel gave. Where statx() is not allowed, fstatat(). 0 or -errno.
 */
MUST_CHECK int fs_statx(int dir, const char *path, int flags, struct statx *st);

/*
 * Opens `path` with O_PATH and more flags if all that is needed for it is in memory, and never
 * waits. A descriptor, or -EAGAIN for whatever reason. Never passes a link of /proc to elsewhere.
 */
MUST_CHECK int fs_try_open_path(const char *path, int flags);

/* Path of what fd refers to, whatever its name is by now; needs /proc. */
#define FS_FD_PATH_SIZE 32
void fs_fd_path(char out[FS_FD_PATH_SIZE], int fd);
