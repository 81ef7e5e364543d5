#include "sandbox/policy/emptydir.h"

#include "sandbox/policy/locate.h"
#include "sandbox/policy/sys.h"

#include <dirent.h>
#include <errno.h>

bool emptydir_fd(int fd) {
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (dir == NULL) {
        util_close_fd(&again);
        return false;
    }
    size_t names = 0;
    while (names <= 2 && readdir(dir) != NULL)
        names++;
    closedir(dir);
    return names <= 2; /* "." and ".." */
}

bool emptydir_path(struct str path) {
    char text[LOCATE_PATH_MAX];
    if (path.n >= sizeof text)
        return false;
    memcpy(text, path.p, path.n);
    text[path.n] = '\0';
    _cleanup_close_ int fd =
        sys_openat2(AT_FDCWD, text, O_RDONLY | O_DIRECTORY | O_NONBLOCK, RESOLVE_NO_SYMLINKS);
    return fd < 0 ? errno == ENOENT : emptydir_fd(fd);
}
