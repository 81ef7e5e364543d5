#include "fs/fs_fail.h"

#include "fs/fs_walk.h"
#include "fs/fs_watch_scan.h"

#include <errno.h>

#define FAIL_DIGITS_(n) #n
#define FAIL_DIGITS(n) FAIL_DIGITS_(n)

/* The most that a text quotes of a path, and its replacements of single bytes. */
#define FAIL_QUOTE_MAX (3u * ERR_MSG_MAX + 3)

_Static_assert(FS_RESULT_MAX == 50331648, "as the text says");

static const struct {
    int code, num;
    const char *text;
} fail_table[] = {
    [FS_FAIL_ROOT] = {ERR_INVALID_REQUEST, EINVAL, "path must name an entry"},
    [FS_FAIL_LINK] = {ERR_INVALID_REQUEST, EINVAL, "path contains a symbolic link"},
    [FS_FAIL_IRREGULAR] = {ERR_INVALID_REQUEST, EINVAL, "path is not a regular file"},
    [FS_FAIL_NOT_LINK] = {ERR_INVALID_REQUEST, EINVAL, "path is not a symbolic link"},
    [FS_FAIL_MKDIR_ROOT] = {ERR_INTERNAL, EEXIST, "directory already exists"},
    [FS_FAIL_REMOVE_TREE] = {ERR_INTERNAL, EOPNOTSUPP,
                             "recursive no-follow removal is unsupported"},
    [FS_FAIL_COPY_TREE] = {ERR_INVALID_REQUEST, EINVAL,
                           "fs/copy requires recursive: true when sourcePath is a directory"},
    [FS_FAIL_COPY_INSIDE] = {ERR_INVALID_REQUEST, EINVAL,
                             "fs/copy cannot copy a directory to itself or one of its descendants"},
    [FS_FAIL_COPY_SELF] = {ERR_INVALID_REQUEST, EINVAL, "fs/copy cannot copy a file to itself"},
    [FS_FAIL_COPY_KIND] = {ERR_INVALID_REQUEST, EINVAL,
                           "fs/copy only supports regular files, directories, and symlinks"},
    [FS_FAIL_LIST_SIZE] = {ERR_INTERNAL, ENOBUFS, "fs/readDirectory result exceeds 50331648 bytes"},
    [FS_FAIL_WALK_ZERO] = {ERR_INVALID_REQUEST, EINVAL,
                           "filesystem walk limits must be greater than zero"},
    [FS_FAIL_WALK_LIMITS] =
        {ERR_INVALID_REQUEST, EINVAL,
         "filesystem walk limits exceed maximums: "
         "depth=" FAIL_DIGITS(
             FS_WALK_DEPTH_MAX) ", "
                                "directories=" FAIL_DIGITS(
                                    FS_WALK_DIRECTORIES_MAX) ", "
                                                             "entries=" FAIL_DIGITS(
                                                                 FS_WALK_ENTRIES_MAX)},
    [FS_FAIL_WALK_LINKS] = {ERR_INVALID_REQUEST, EINVAL,
                            "filesystem walk cannot both list and follow links"},
    [FS_FAIL_WATCH_DIRS] = {ERR_INVALID_REQUEST, EINVAL,
                            "at most " FAIL_DIGITS(
                                FS_WATCH_DIRS_MAX) " directories may be watched per connection"},
};

int fs_fail(struct err *e, int num) {
    int code = num == ENOENT                                    ? ERR_NOT_FOUND
               : num == EACCES || num == EPERM || num == EINVAL ? ERR_INVALID_REQUEST
                                                                : ERR_INTERNAL;
    return err_os(e, code, num);
}

int fs_fail_as(struct err *e, enum fs_fail_why why) {
    err_set(e, fail_table[why].code, "%s", fail_table[why].text);
    return -fail_table[why].num;
}

int fs_fail_not_file(struct err *e, const char *path) {
    _cleanup_buf_ struct buf quoted = BUF_INIT(FAIL_QUOTE_MAX);
    struct str shown = {path, strnlen(path, ERR_MSG_MAX + 1)}; /* the rest would be cut anyway */
    if (fs_put_lossy(&quoted, shown) < 0)
        return fs_fail(e, ENOMEM);
    return err_about(e, ERR_INVALID_REQUEST, "path `", buf_str(&quoted), "` is not a file");
}

int fs_fail_entries(struct err *e, size_t entries) {
    err_set(e, ERR_INTERNAL, "fs/readDirectory returned %zu entries; limit is %d", entries,
            FS_ENTRIES_MAX);
    return -E2BIG;
}
