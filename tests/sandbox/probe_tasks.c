/* Rows 128 to 149: other processes. */

#include "probe.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whom a row is about, by its column a. */
enum whom { SELF, PARENT, INIT, HOST };

static pid_t whom(const struct probe_row *r) {
    switch ((enum whom)r->a) {
    case SELF: return getpid();
    case PARENT: return getppid();
    case INIT: return 1;
    case HOST: break;
    }
    return aim.pid;
}

static int trace_me(const struct probe_row *r) {
    (void)r;
    return probe_done(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int trace_child(const struct probe_row *r) {
    int status;
    (void)r;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    int e = probe_done(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return e;
}

/* The end of this child detaches whatever it seized. */
static int seize(const struct probe_row *r) {
    return probe_done(ptrace(PTRACE_SEIZE, whom(r), NULL, NULL));
}

/* Column b: write to the other's memory. A bad address there is an error of having reached it. */
static int other_memory(const struct probe_row *r) {
    long here = probe_scratch;
    struct iovec local = {&here, sizeof(here)};
    struct iovec remote = {&probe_scratch, sizeof(probe_scratch)};
    ssize_t n = r->b ? process_vm_writev(whom(r), &local, 1, &remote, 1, 0)
                     : process_vm_readv(whom(r), &local, 1, &remote, 1, 0);
    return PROBE_REACHED(probe_done(n), EFAULT);
}

static int send_signal(const struct probe_row *r) {
    return probe_done(kill(whom(r), r->b));
}

static int open_pid(const struct probe_row *r) {
    return probe_opened((int)syscall(SYS_pidfd_open, whom(r), 0));
}

static int take_descriptor(const struct probe_row *r) {
    int fd = (int)syscall(SYS_pidfd_open, whom(r), 0);
    if (fd < 0)
        return -errno;
    int e = probe_opened((int)syscall(SYS_pidfd_getfd, fd, 0, 0));
    close(fd);
    return e;
}

static int set_owner(const struct probe_row *r) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    return probe_done(fcntl(ends[0], F_SETOWN, whom(r)));
}

static int set_limit(const struct probe_row *r) {
    struct rlimit limit;
    if (prlimit(whom(r), RLIMIT_NOFILE, NULL, &limit) < 0)
        return -errno;
    return probe_done(prlimit(whom(r), RLIMIT_NOFILE, &limit, NULL));
}

static int set_priority(const struct probe_row *r) {
    errno = 0;
    int now = getpriority(PRIO_PROCESS, (id_t)whom(r));
    if (errno)
        return -errno;
    return probe_done(setpriority(PRIO_PROCESS, (id_t)whom(r), now));
}

static int set_affinity(const struct probe_row *r) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return -errno;
    return probe_done(sched_setaffinity(whom(r), sizeof(set), &set));
}

static int raise_priority(const struct probe_row *r) {
    int now = getpriority(PRIO_PROCESS, 0);
    (void)r;
    return probe_done(setpriority(PRIO_PROCESS, 0, now - 5));
}

static int compare(const struct probe_row *r) {
    return probe_done(syscall(SYS_kcmp, getpid(), whom(r), KCMP_VM, 0, 0));
}

const struct probe_row probe_tasks[] = {
    {128, trace_me, NULL, 0, 0},
    {129, trace_child, NULL, 0, 0},
    {130, seize, NULL, PARENT, 0},
    {131, seize, NULL, INIT, 0},
    {132, seize, NULL, HOST, 0},
    {133, other_memory, NULL, SELF, 0},
    {134, other_memory, NULL, PARENT, 1},
    {135, other_memory, NULL, HOST, 0},
    {136, send_signal, NULL, HOST, 0},
    {137, send_signal, NULL, HOST, SIGCONT},
    {138, send_signal, NULL, INIT, SIGUSR1},
    {139, send_signal, NULL, INIT, 0},
    {140, send_signal, NULL, PARENT, 0},
    {141, open_pid, NULL, HOST, 0},
    {142, take_descriptor, NULL, INIT, 0},
    {143, take_descriptor, NULL, PARENT, 0},
    {144, set_owner, NULL, HOST, 0},
    {145, set_limit, NULL, HOST, 0},
    {146, set_priority, NULL, HOST, 0},
    {147, set_affinity, NULL, HOST, 0},
    {148, raise_priority, NULL, 0, 0},
    {149, compare, NULL, HOST, 0},
    /* Not of the table. */
    {246, other_memory, NULL, INIT, 0},
    {0, NULL, NULL, 0, 0},
};
