#include "fs/fs_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int rename_new(int source_dir, const char *source, int destination_dir,
                      const char *destination) {
    if (renameat2(source_dir, source, destination_dir, destination, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    struct stat st;
    if (fstatat(destination_dir, destination, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(source_dir, source, destination_dir, destination) < 0 ? -errno : 0;
}

int fs_rename_at(int source_dir, const char *source, int destination_dir, const char *destination,
                 bool replace) {
    if (!replace)
        return rename_new(source_dir, source, destination_dir, destination);
    return renameat(source_dir, source, destination_dir, destination) < 0 ? -errno : 0;
}

int fs_rename(const char *source, const char *destination, bool replace, struct err *e) {
    int r = -EBUSY;
    if (source[1] != '\0' && destination[1] != '\0')
        r = fs_rename_at(AT_FDCWD, source, AT_FDCWD, destination, replace);
    return fs_fail_check(e, r);
}
