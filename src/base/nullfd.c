#include "base/nullfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* The device does not exist, or may not be opened. */
static bool nullfd_is_missing(int error) {
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ENXIO ||
           error == ENODEV || error == EPERM || error == EISDIR || error == ELOOP;
}

int nullfd_open(int flags) {
    int fd = open("/dev/null", flags | O_CLOEXEC), p[2];
    if (fd >= 0)
        return fd;
    if (!nullfd_is_missing(errno))
        return -errno;
    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    close(p[1]);
    return p[0];
}
