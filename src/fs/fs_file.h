#pragma once
/* Opening, reading and writing regular files. */

#include "fs/fs.h"
#include "fs/fs_devices.h"

#include <sys/types.h>

#define FS_BLOCK_MAX (1u << 20) /* bytes of one fs/readBlock or fs/writeBlock */

struct fs_file {
    int fd;        /* owned; -1 = none */
    uint64_t size; /* when it was opened */
    uint64_t site; /* fs_site() */
    bool quick; /* opened to read, on a file system whose cached data can be had without waiting */
    bool noatime; /* reading it never writes its access time */
    bool settled; /* reading it now does not (fs_file_try_settle()) */
};

#define FS_FILE_NONE ((struct fs_file){.fd = -1})

/*
 * Opens a regular file to read. 0 or -errno with e set. Here and below, what is learned about its
 * mount goes to d, which may be NULL.
 */
MUST_CHECK int fs_file_open_read(struct fs_devices *d, const char *path, bool follow,
                                 struct fs_file *f, struct err *e);

/* Opens a regular file to write, made or truncated, through links. 0 or -errno with e set. */
MUST_CHECK int fs_file_open_replace(struct fs_devices *d, const char *path, struct fs_file *f,
                                    struct err *e);

/* Like fs_file_open_replace(), but keeps what is in the file. 0 or -errno with e set. */
MUST_CHECK int fs_file_open_update(struct fs_devices *d, const char *path, struct fs_file *f,
                                   struct err *e);

/* Like fs_file_open_update(), but makes no file. 0 or -errno with e set. */
MUST_CHECK int fs_file_open_write(struct fs_devices *d, const char *path, struct fs_file *f,
                                  struct err *e);

/*
 * Makes a file of a descriptor that others have opened, to read or not, with the facts st. It takes
 * the descriptor over. May wait.
 */
struct fs_file fs_file_adopt(struct fs_devices *d, int *fd, const struct statx *st, bool read);

/*
 * Like fs_file_open_read() with links followed, but never waits: for the loop's thread.
 * -EAGAIN when it would have to, cannot be sure, or failed: then fs_file_open_read() will tell.
 */
MUST_CHECK int fs_file_try_open_read(const struct fs_devices *d, const char *path,
                                     struct fs_file *f);

/*
 * Whether a quick file can be read without writing its access time, for which the kernel might
 * have to wait. Holds for a while; fs_file_try_open_read() has asked already. Never waits itself.
 */
bool fs_file_try_settle(struct fs_file *f);

/* Whether closing it cannot take long: nothing to write back, no file to be removed with it. */
bool fs_file_closes_fast(const struct fs_file *f);

/*
 * Reads n bytes at `offset`, less only at the end of the file. Bytes read or -errno.
 * fs_file_try_pread() never waits: -EAGAIN when it would have to, cannot be sure, or failed (always
 * for files that are not quick and settled): then fs_file_pread() will tell.
 */
MUST_CHECK ssize_t fs_file_pread(int fd, void *dst, size_t n, uint64_t offset);
MUST_CHECK ssize_t fs_file_try_pread(const struct fs_file *f, void *dst, size_t n, uint64_t offset);

/*
 * Reads n bytes at `offset` without keeping them, to learn whether that is possible; what it has
 * read stays cached, if the file system caches. Bytes read, less only at the end, or -errno.
 */
MUST_CHECK ssize_t fs_file_probe(int fd, size_t n, uint64_t offset);

/* Writes all of n bytes at `offset`. 0 or -errno; then a part may have been written. */
MUST_CHECK int fs_file_pwrite(int fd, const void *src, size_t n, uint64_t offset);

struct fs_write {
    const char *path;
    const void *data;
    size_t n;
    bool follow;
    bool atomic; /* fs_atomic_write() instead of writing in place */
};

/* fs/writeFile. 0 or -errno with e set. */
MUST_CHECK int fs_file_write(const struct fs_write *w, struct err *e);

/* Writes all of n bytes at the position of fd. 0 or -errno. */
MUST_CHECK int fs_file_write_all(int fd, const void *src, size_t n);
