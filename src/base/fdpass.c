#include "base/fdpass.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

union fdpass_control {
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int))];
};

int fdpass_send(int sock, struct str head, struct str text, int fd) {
    union fdpass_control control = {.head = {.cmsg_len = CMSG_LEN(sizeof fd),
                                             .cmsg_level = SOL_SOCKET,
                                             .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    struct iovec iov[2] = {{(void *)(uintptr_t)head.p, head.n},
                           {(void *)(uintptr_t)text.p, text.n}};
    struct msghdr m = {.msg_iov = iov,
                       .msg_iovlen = 2,
                       .msg_control = fd < 0 ? NULL : &control,
                       .msg_controllen = fd < 0 ? 0 : sizeof control};
    ssize_t r;
    do
        r = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

ssize_t fdpass_receive(int sock, void *p, size_t n, int flags, int *fd) {
    union fdpass_control control = {.space = {0}};
    struct iovec iov = {p, n};
    /* Room for one descriptor only: the kernel takes the others back. */
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_LEN(sizeof *fd)};
    ssize_t got;
    *fd = -1;
    do
        got = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return got;
    /* The one descriptor that fits is missing: this process's table is full. */
    if (*fd < 0 && !(m.msg_flags & MSG_TRUNC))
        return -EMFILE;
    util_close_fd(fd);
    return -EMSGSIZE;
}
