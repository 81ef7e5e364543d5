#include "fs/fs_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int rename_new(const char *source, const char *destination) {
    if (renameat2(AT_FDCWD, source, AT_FDCWD, destination, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    struct stat st;
    if (lstat(destination, &st) == 0)
        return -EEXIST;
    return rename(source, destination) < 0 ? -errno : 0;
}

int fs_rename(const char *source, const char *destination, bool replace, struct err *e) {
    int r;
    if (source[1] == '\0' || destination[1] == '\0')
        r = -EBUSY;
    else if (replace)
        r = rename(source, destination) < 0 ? -errno : 0;
    else
        r = rename_new(source, destination);
    return r < 0 ? fs_fail(e, -r) : 0;
}
