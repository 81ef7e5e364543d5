#include "intercept/intercept_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

/* A descriptor of the stub's program; it can be executed and read, not changed. */
static int host_stub(void) {
    _cleanup_close_ int fd = memfd_create("exec-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) /* an older kernel */
        fd = memfd_create("exec-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    char path[64];
    int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    if (write(fd, intercept_stub_program, intercept_stub_size) != (ssize_t)intercept_stub_size ||
        fchmod(fd, 0500) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int in = open(path, O_RDONLY | O_CLOEXEC); /* one that is open for writing cannot be executed */
    return in < 0 ? -errno : in;
}

/* The sizes that the kernel uses may be larger than those of our headers. */
static int host_sizes(struct intercept_host *h) {
    struct seccomp_notif_sizes sizes;
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
        return -errno;
    h->notif_size = MAX((size_t)sizes.seccomp_notif, sizeof *h->notif);
    h->resp_size = MAX((size_t)sizes.seccomp_notif_resp, sizeof *h->resp);
    h->notif = calloc(1, h->notif_size);
    h->resp = calloc(1, h->resp_size);
    return h->notif == NULL || h->resp == NULL ? -ENOMEM : 0;
}

struct intercept_host *intercept_host_new(struct loop *loop, struct pool *pool) {
    struct intercept_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->loop = loop;
    h->pool = pool;
    list_init(&h->traced);
    list_init(&h->lost);
    h->stub = host_stub();
    struct stat st;
    if (h->stub < 0 || fstat(h->stub, &st) < 0 || host_sizes(h) < 0) {
        intercept_host_free(h);
        return NULL;
    }
    h->stub_dev = st.st_dev;
    h->stub_ino = st.st_ino;
    return h;
}

void intercept_host_free(struct intercept_host *h) {
    if (h == NULL)
        return;
    /* A thread still has these: their memory must stay. */
    list_for_each(n, &h->lost) list_entry(n, struct intercept_ask, node)->host = NULL;
    util_close_fd(&h->stub);
    free(h->notif);
    free(h->resp);
    free(h);
}

/* A thread that executes gets the number of its process: `status` tells. */
static struct intercept_ask *host_tracee(struct intercept_host *h, pid_t pid, int status) {
    if (WIFSTOPPED(status) && intercept_trace_is_exec(status))
        pid = intercept_trace_former(pid);
    list_for_each(n, &h->traced) {
        struct intercept_ask *a = list_entry(n, struct intercept_ask, traced);
        if (a->tid == pid)
            return a;
    }
    return NULL;
}

bool intercept_host_waited(struct intercept_host *h, pid_t pid, int status) {
    struct intercept_ask *a = host_tracee(h, pid, status);
    if (a == NULL)
        return false;
    if (!WIFSTOPPED(status)) {
        list_remove(&a->traced);
        intercept_ask_drop(a);
        return true;
    }
    if (intercept_trace_is_exec(status))
        a->tid = a->tgid = pid;
    switch (a->state) {
    case INTERCEPT_LOADING: intercept_run_stopped(a, status); break;
    case INTERCEPT_REFUSING:
    case INTERCEPT_PRINTING: intercept_deny_stopped(a, status); break;
    case INTERCEPT_FAILED:
    case INTERCEPT_ENTERING:
    case INTERCEPT_ENTERED: intercept_stub_stop(a, status); break;
    case INTERCEPT_REOPENED: break; /* it stays stopped */
    case INTERCEPT_UNREAD:
    case INTERCEPT_LOOKING:
    case INTERCEPT_OPEN:
    case INTERCEPT_GLANCING:
    case INTERCEPT_STANDING:
    case INTERCEPT_OVER: intercept_trace_let_go(pid, 0); break;
    }
    return true;
}
