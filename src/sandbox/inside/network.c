#include "sandbox/inside/network.h"

#include "sandbox/inside/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>

int network_make(enum launch_backend backend) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    const char *what;
    bool user = backend == LAUNCH_USERNS;
    if (unshare(CLONE_NEWNET | (user ? CLONE_NEWUSER : 0)) < 0)
        return -errno;
    int r = user ? ids_map(uid, gid, &what) : 0;
    if (r < 0)
        return r;
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int network_join(int fd, enum launch_backend backend) {
    if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
        return -EBADF;
    if (backend == LAUNCH_USERNS) {
        _cleanup_close_ int user = ioctl(fd, NS_GET_USERNS);
        if (user < 0 || setns(user, CLONE_NEWUSER) < 0)
            return -errno;
    }
    return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}
