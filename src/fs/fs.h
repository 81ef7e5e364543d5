#pragma once
/*
 * The file system operations behind the fs methods: one blocking call each, on native absolute
 * paths (normalised: no dot segments, no double or trailing slashes). They run in threads of the
 * pool and keep no state. They give structs, or hand items to a sink (fs_item.h). Errors are values
 * with the protocol's code and text (fs_fail.h). Rules of every method: PROTOCOL.md, "Files".
 *
 * "Follow" mode resolves links as the kernel does. No-follow mode never passes a link
 * (fs_parent_open()).
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
#define STATX_MNT_ID_UNIQUE 0x00004000U /* Linux 6.8; newer than our build headers */
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
 * Appends s for a text, with U+FFFD in place of bytes that are not UTF-8: one for the beginning of
 * a character that does not go on. 0 or as buf_reserve().
 */
MUST_CHECK int fs_put_lossy(struct buf *b, struct str s);

/*
 * statx() of the basic fields, the birth time and the unique id of the mount; stx_mask says which
 * the kernel gave. Falls back to fstatat() where statx() is not allowed. 0 or -errno.
 */
MUST_CHECK int fs_statx(int dir, const char *path, int flags, struct statx *st);

/*
 * Opens `path` with O_PATH and more flags from the kernel's caches alone, and never waits. A
 * descriptor, or -EAGAIN for every failure. Never passes a magic link of /proc.
 */
MUST_CHECK int fs_try_open_path(const char *path, int flags);

/* Writes a path that leads to the file behind fd, whatever its name is by now; needs /proc. */
#define FS_FD_PATH_SIZE 32
void fs_fd_path(char out[FS_FD_PATH_SIZE], int fd);
