#pragma once
/* The one place of fs/ that chooses the protocol's error codes and texts. */

#include "base/err.h"

/* What the protocol words itself. Each has a code, an errno and a text (fs_fail.c). */
enum fs_fail_why {
    FS_FAIL_ROOT,      /* "/" where an entry of a directory is needed */
    FS_FAIL_LINK,      /* a link in no-follow mode */
    FS_FAIL_IRREGULAR, /* no regular file, in no-follow mode */
    FS_FAIL_NOT_LINK,  /* no link where one is to be read */
    FS_FAIL_MKDIR_ROOT,
    FS_FAIL_REMOVE_TREE, /* a tree in no-follow mode */
    FS_FAIL_COPY_TREE,   /* a directory, not recursive */
    FS_FAIL_COPY_INSIDE, /* a directory into itself */
    FS_FAIL_COPY_SELF,   /* a file to itself */
    FS_FAIL_COPY_KIND,   /* no file, directory or link */
    FS_FAIL_LIST_SIZE,   /* more than FS_RESULT_MAX bytes */
    FS_FAIL_WALK_ZERO,
    FS_FAIL_WALK_LIMITS,
    FS_FAIL_WALK_LINKS, /* links are to be listed and followed */
    FS_FAIL_WATCH_DIRS, /* more than FS_WATCH_DIRS_MAX */
};

/* Sets the error for errno `num` > 0: -32004, -32600 or -32603 by its kind. Returns -num. */
int fs_fail(struct err *e, int num);

/* Sets that error. Returns its -errno. */
int fs_fail_as(struct err *e, enum fs_fail_why why);

/* Sets the error for a path that is no regular file, in follow mode. Returns -EINVAL. */
int fs_fail_not_file(struct err *e, const char *path);

/* Sets the error for a directory with more than FS_ENTRIES_MAX entries. Returns -E2BIG. */
int fs_fail_entries(struct err *e, size_t entries);

/* 0 for r >= 0, else fs_fail(e, -r). */
static inline int fs_fail_check(struct err *e, int r) {
    return r < 0 ? fs_fail(e, -r) : 0;
}
