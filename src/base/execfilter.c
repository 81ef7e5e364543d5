#include "base/execfilter.h"

#include "base/rawsys.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1ul << 5)
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* Numbers of execve and execveat, for each kind of call that the kernel knows here. Calls of other
 * architectures could be anything. */
static const struct sock_filter execfilter_code[] = {
    LOAD(arch),
#if defined(__x86_64__)
    IF(AUDIT_ARCH_X86_64, 2, 0),
    IF(AUDIT_ARCH_I386, 7, 0),
    RETURN(SECCOMP_RET_ERRNO | 38), /* ENOSYS */
    LOAD(nr),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000u), /* the bit of x32 */
    IF(59, 6, 0),
    IF(322, 5, 0),
    IF(520, 4, 0), /* of x32 */
    IF(545, 3, 4), /* of x32 */
    LOAD(nr),
    IF(11, 1, 0),
    IF(358, 0, 1),
#elif defined(__aarch64__)
    IF(AUDIT_ARCH_AARCH64, 2, 0),
    IF(AUDIT_ARCH_ARM, 4, 0),
    RETURN(SECCOMP_RET_ERRNO | 38), /* ENOSYS */
    LOAD(nr),
    IF(221, 4, 0),
    IF(281, 3, 4),
    LOAD(nr),
    IF(11, 1, 0),
    IF(387, 0, 1),
#endif
    RETURN(SECCOMP_RET_USER_NOTIF),
    RETURN(SECCOMP_RET_ALLOW),
};

static long execfilter_send(int socket, int fd) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof fd)];
    } control;
    control.head.cmsg_len = CMSG_LEN(sizeof fd);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    *(int *)(void *)CMSG_DATA(&control.head) = fd;
    char byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    long r = sys3(SYS_sendmsg, socket, (long)&m, MSG_NOSIGNAL);
    return r < 0 ? r : 0;
}

long execfilter_install(int socket) {
    struct sock_fprog program = {.len = sizeof execfilter_code / sizeof execfilter_code[0],
                                 .filter = (struct sock_filter *)(uintptr_t)execfilter_code};
    long r = sys5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (r < 0)
        return r;
    long fd = sys3(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                   (long)&program);
    if (fd < 0)
        return fd;
    r = execfilter_send(socket, (int)fd);
    sys1(SYS_close, fd);
    return r;
}
