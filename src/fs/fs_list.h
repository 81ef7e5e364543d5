#pragma once
/*
 * Reading a directory entry by entry, in the order of the file system, without "." and "..".
 * One descriptor and one buffer of FS_LIST_BUF bytes, however large the directory is.
 */

#include "fs/fs.h"

#include <dirent.h>

#define FS_LIST_BUF (32u << 10)
#define FS_NAME_MAX 4095 /* bytes of a name; most file systems allow 255 */

struct fs_list {
    int fd;          /* owned; -1 = closed */
    char *buf;       /* owned; NULL until the first entry is asked for */
    size_t pos, len; /* entries not yet handed out are [pos, len) of buf */
    int64_t off;     /* where the directory goes on behind the last entry handed out */
};

#define FS_LIST_NONE ((struct fs_list){.fd = -1})

struct fs_entry {
    const char *name; /* NUL-terminated; borrowed from the list until the next call */
    size_t n;
    unsigned char type; /* DT_... of the entry itself; DT_UNKNOWN where it is not stored */
};

/* Lists the directory fd, which it takes over and which must be readable, after the former one. */
void fs_list_begin(struct fs_list *l, int *fd);

/* Closes the descriptor. fs_list_fini() gives the buffer back, too. */
void fs_list_close(struct fs_list *l);
void fs_list_fini(struct fs_list *l);
#define _cleanup_list_ __attribute__((cleanup(fs_list_fini)))

/* The next entry: 1, 0 at the end (also of a directory that was removed), or -errno. */
MUST_CHECK int fs_list_next(struct fs_list *l, struct fs_entry *entry);

/* Goes on behind the entry whose `off` it is, also of another list of the directory; 0 = begins
 * again. 0 or -errno. */
MUST_CHECK int fs_list_seek(struct fs_list *l, int64_t off);

/* The DT_... of a mode. */
#define FS_LIST_TYPE(mode) ((unsigned char)IFTODT(mode))
