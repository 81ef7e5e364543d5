/*
 * The program that stands in for an escalated one: it has the pid, the parent and the place in the
 * job that the escalated program would have had. It hands its descriptors to the server, passes
 * signals on, and ends as the program ends. A program of its own, without a library, so that its
 * start is cheap and works in any root; `embed-stub` builds it into the server.
 *
 *     stub SOCKET
 */
#include "intercept/stub.h"

#include "base/rawsys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define STUB_ALL (~(uint64_t)0)
#define STUB_BIT(signo) (1ull << ((unsigned)(signo)-1))

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call stub_main\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x0, sp\n"
        "    bl stub_main\n");
#endif

/* A compiler may call these. */
void *stub_copy(void *to, const void *from, size_t n) __asm__("memcpy");
void *stub_fill(void *to, int byte, size_t n) __asm__("memset");

void *stub_copy(void *to, const void *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *stub_fill(void *to, int byte, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)byte;
    return to;
}

static _Noreturn void stub_exit(int code) {
    for (;;)
        sys1(SYS_exit_group, code);
}

static void stub_mask(uint64_t mask) {
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask);
}

/* Ends as the program did. */
static _Noreturn void stub_end(int status) {
    unsigned n = (unsigned)status & 0x7f;
    if (n == 0)
        stub_exit(status >> 8 & 0xff);
    struct rlimit none = {0, 0};
    sys4(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0);
    stub_mask(STUB_ALL);
    sys2(SYS_kill, sys0(SYS_getpid), n);
    stub_mask(STUB_ALL & ~STUB_BIT(n));
    stub_exit(128 + (int)n);
}

/* -- the socket -- */

union stub_control {
    struct cmsghdr head;
    char space[CMSG_SPACE(STUB_FDS * sizeof(int))];
};

static void stub_send(long sock, enum stub_kind kind, int value, union stub_control *control) {
    struct stub_packet p = {kind, value};
    struct iovec iov = {&p, sizeof p};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (control != NULL) {
        m.msg_control = control;
        m.msg_controllen = control->head.cmsg_len;
    }
    long r;
    do
        r = sys3(SYS_sendmsg, sock, (long)&m, MSG_NOSIGNAL);
    while (r == -EINTR);
    if (r < 0)
        stub_exit(1);
}

/* Tells the server of us, with all descriptors that the program would have. */
static void stub_hello(long sock) {
    union stub_control control;
    int n = 0, bits = 0;
    int *fds = (int *)(void *)CMSG_DATA(&control.head);
    for (int fd = 0; fd < STUB_FDS; fd++) {
        if (fd == sock || sys3(SYS_fcntl, fd, F_GETFD, 0) < 0)
            continue;
        fds[n++] = fd;
        bits |= 1 << fd;
    }
    control.head.cmsg_len = CMSG_LEN((unsigned)n * sizeof(int));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    stub_send(sock, STUB_HELLO, bits, n > 0 ? &control : NULL);
}

/* A reader that waits for the end of a pipe must not wait for us. */
static void stub_close(long sock) {
    if (sock > 0)
        sys3(SYS_close_range, 0, sock - 1, 0);
    sys3(SYS_close_range, sock + 1, ~0u, 0);
}

static void stub_print(const struct msghdr *m, const char *text, long n) {
    const struct cmsghdr *c = &((union stub_control *)m->msg_control)->head;
    if (m->msg_controllen < CMSG_LEN(sizeof(int)) || c->cmsg_type != SCM_RIGHTS)
        return;
    int fd = *(const int *)(const void *)CMSG_DATA(c);
    while (n > 0) {
        long r = sys3(SYS_write, fd, (long)text, n);
        if (r <= 0)
            return;
        text += r;
        n -= r;
    }
}

static void stub_heed(long sock) {
    struct {
        struct stub_packet head;
        char text[STUB_TEXT_MAX];
    } p;
    union stub_control control;
    struct iovec iov = {&p, sizeof p};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    long n = sys3(SYS_recvmsg, sock, (long)&m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n < (long)sizeof p.head)
        stub_exit(1); /* the server is gone, and the program with it */
    if (p.head.kind == STUB_STOP) {
        sys2(SYS_kill, sys0(SYS_getpid), SIGSTOP);
    } else if (p.head.kind == STUB_END) {
        stub_print(&m, p.text, n - (long)sizeof p.head);
        stub_end(p.head.value);
    }
}

/* -- signals -- */

static void stub_signals(long sock, long news) {
    struct signalfd_siginfo info;
    while (sys3(SYS_read, news, (long)&info, sizeof info) == sizeof info) {
        int n = (int)info.ssi_signo;
        if (n == SIGCHLD)
            continue;
        stub_send(sock, STUB_SIGNAL, n | (info.ssi_code == SI_KERNEL ? STUB_KERNEL : 0), NULL);
        if (n == SIGTSTP || n == SIGTTIN || n == SIGTTOU)
            sys2(SYS_kill, sys0(SYS_getpid), SIGSTOP);
    }
}

static long stub_number(const char *text) {
    long n = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (*text - '0');
    return n;
}

__attribute__((used, noreturn)) void stub_main(long *stack);

void stub_main(long *stack) {
    uint64_t all = STUB_ALL;
    if (stack[0] != 2)
        stub_exit(1);
    long sock = stub_number((const char *)stack[2]);
    sys5(SYS_prctl, PR_SET_NAME, (long)"exec-stub", 0, 0, 0);
    stub_mask(STUB_ALL);
    sys_default_signals();
    stub_hello(sock);
    stub_close(sock);
    long news = sys4(SYS_signalfd4, -1, (long)&all, sizeof all, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd p[2] = {{.fd = (int)sock, .events = POLLIN}, {.fd = (int)news, .events = POLLIN}};
    for (;;) {
        struct timespec *forever = NULL;
        if (sys5(SYS_ppoll, (long)p, 2, (long)forever, 0, 0) < 0)
            continue;
        if (p[1].revents != 0)
            stub_signals(sock, news);
        if (p[0].revents != 0)
            stub_heed(sock);
    }
}
