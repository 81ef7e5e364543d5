#include "intercept/intercept_internal.h"

#include "intercept/intercept_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define ASK_X32 0x40000000    /* bit of an x32 call's number */
#define ASK_DEPTH 64          /* processes between a caller and the command's first one */
#define ASK_STATUS_BYTES 4096 /* of /proc/PID/status */

/* -- life -- */

bool intercept_ask_is_open(const struct intercept_ask *a) {
    switch (a->state) {
    case INTERCEPT_LOOKING:
    case INTERCEPT_OPEN:
    case INTERCEPT_GLANCING:
    case INTERCEPT_REOPENED: return true;
    case INTERCEPT_UNREAD:
    case INTERCEPT_LOADING:
    case INTERCEPT_REFUSING:
    case INTERCEPT_PRINTING:
    case INTERCEPT_FAILED:
    case INTERCEPT_ENTERING:
    case INTERCEPT_ENTERED:
    case INTERCEPT_STANDING:
    case INTERCEPT_OVER: break;
    }
    return false;
}

void intercept_ask_set(struct intercept_ask *a, enum intercept_state s) {
    bool was = intercept_ask_is_open(a);
    if (a->state == INTERCEPT_UNREAD && s != INTERCEPT_UNREAD && a->x != NULL && a->counted)
        a->x->unread--;
    a->counted = false;
    a->state = s;
    bool is = intercept_ask_is_open(a);
    if (a->x == NULL || was == is)
        return;
    if (is)
        a->x->open++;
    else
        a->x->open--;
}

static void ask_free_task(struct loop_task *t) {
    intercept_ask_free(container_of(t, struct intercept_ask, free_task));
}

void intercept_ask_free(struct intercept_ask *a) {
    loop_task_del(&a->free_task);
    if (a->host != NULL) /* it ends before a thread that still looks for a file */
        loop_timer_del(a->host->loop, &a->glance);
    list_remove(&a->traced);
    list_remove(&a->node);
    intercept_stub_fini(a);
    if (a->in_pool && !pool_cancel(a->host->pool, &a->job)) { /* a thread has it */
        a->x = NULL;
        list_append(&a->host->lost, &a->node);
        return;
    }
    arena_fini(&a->arena);
    free(a);
}

/* Its memory is freed once no callback runs in it. */
void intercept_ask_over(struct intercept_ask *a) {
    if (a->state == INTERCEPT_OVER)
        return;
    intercept_ask_set(a, INTERCEPT_OVER);
    loop_defer(a->host->loop, &a->free_task);
    if (a->x->unread > 0)
        loop_defer(a->host->loop, &a->x->next);
}

void intercept_ask_drop(struct intercept_ask *a) {
    struct intercept *x = a->x;
    enum intercept_state s = a->state;
    if (s == INTERCEPT_OVER)
        return;
    intercept_ask_over(a);
    bool told = a->stub.told;
    a->stub.told = false;
    intercept_enter(x);
    if (s == INTERCEPT_OPEN || s == INTERCEPT_REOPENED)
        x->o.calls->withdrawn(x->o.owner, a);
    else if (told)
        x->o.calls->lost(x->o.owner, &a->stub);
    intercept_leave(x);
}

struct intercept_ask *intercept_ask_new(struct intercept *x, const struct seccomp_notif *n) {
    struct intercept_ask *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->x = x;
    a->host = x->host;
    a->state = INTERCEPT_UNREAD;
    a->id = n->id;
    a->tid = a->tgid = (pid_t)n->pid;
    a->arch = n->data.arch;
    a->nr = n->data.nr;
    for (int i = 0; i < 6; i++)
        a->args[i] = n->data.args[i];
    a->arena = ARENA_INIT(INTERCEPT_ARENA_MAX);
    a->stub.io = (struct loop_io){.fd = -1};
    a->stub.err = -1;
    a->stub_fd = a->stub_sock = -1;
    a->free_task.fn = ask_free_task;
    list_init(&a->free_task.node);
    list_init(&a->traced);
    list_append(&x->asks, &a->node);
    return a;
}

/* -- who calls -- */

/* The numbers of a process in /proc/PID/status. */
static int ask_status(pid_t pid, pid_t *tgid, pid_t *parent) {
    char path[64], text[ASK_STATUS_BYTES];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    const char *t = strstr(text, "\nTgid:\t"), *p = strstr(text, "\nPPid:\t");
    if (t == NULL || p == NULL)
        return -EIO;
    *tgid = atoi(t + 7);
    *parent = atoi(p + 7);
    return 0;
}

/* The process of the calling thread: nearly always the thread is its first one. */
static int ask_read_process(struct intercept_ask *a) {
    pid_t parent;
    return syscall(SYS_tgkill, a->tid, a->tid, 0) == 0 ? 0 : ask_status(a->tid, &a->tgid, &parent);
}

/* Learns which file the command was started with, as long as its first process runs it: from the
 * start up to that process's next exec, of which we hear. */
static void ask_learn_shell(struct intercept *x) {
    if (!x->shell_known && x->first != 0)
        x->shell_known = intercept_look_program(x->first, &x->shell_dev, &x->shell_ino) == 0;
}

static bool ask_runs_shell(const struct intercept *x, pid_t pid) {
    uint64_t dev, ino;
    return x->shell_known && intercept_look_program(pid, &dev, &ino) == 0 && dev == x->shell_dev &&
           ino == x->shell_ino;
}

bool intercept_ask_is_by_shell(struct intercept_ask *a) {
    const struct intercept *x = a->x;
    pid_t pid = a->tgid, parent, tgid;
    if (a->state != INTERCEPT_OPEN || ask_status(pid, &tgid, &parent) < 0)
        return false;
    for (int i = 0; i < ASK_DEPTH && pid > 0 && ask_runs_shell(x, pid); i++) {
        pid_t now;
        if (pid == x->first)
            return true;
        if (ask_status(pid, &tgid, &now) < 0 || now != parent) /* it has another parent now */
            return false;
        pid = parent;
        if (ask_status(pid, &tgid, &parent) < 0)
            return false;
    }
    return false;
}

/* -- reading the call -- */

static bool ask_is_narrow(const struct intercept_ask *a) {
#if defined(__x86_64__)
    return a->arch == AUDIT_ARCH_I386 || (a->nr & ASK_X32) != 0;
#else
    return a->arch != AUDIT_ARCH_AARCH64;
#endif
}

static bool ask_is_execveat(const struct intercept_ask *a) {
    int nr = a->nr & ~ASK_X32;
#if defined(__x86_64__)
    return a->arch == AUDIT_ARCH_I386 ? nr == 358 : nr == 322 || nr == 545;
#else
    return a->arch == AUDIT_ARCH_AARCH64 ? nr == 281 : nr == 387;
#endif
}

/* The path and where it begins. */
static int ask_read_path(struct intercept_ask *a, const uint64_t *path_arg) {
    struct intercept_look *l = &a->look;
    char text[64 + PATH_MAX];
    int r = intercept_read_text(a->tid, *path_arg, INTERCEPT_PATH_MAX, &a->arena, &l->path);
    if (r < 0)
        return r;
    l->dirfd = AT_FDCWD;
    a->e.path = l->path;
    if (!ask_is_execveat(a))
        return l->path[0] == '\0' ? -ENOENT : 0;
    int flags = (int)a->args[4];
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        return -EINVAL;
    l->dirfd = (int)a->args[0];
    l->nofollow = (flags & AT_SYMLINK_NOFOLLOW) != 0;
    l->at_fd = l->path[0] == '\0';
    if (l->at_fd && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    if (l->path[0] == '/' || l->dirfd == AT_FDCWD)
        return 0;
    snprintf(text, sizeof text, l->at_fd ? "/dev/fd/%d" : "/dev/fd/%d/%s", l->dirfd, l->path);
    a->e.path = arena_strdup(&a->arena, (struct str){text, strlen(text)});
    return a->e.path == NULL ? -ENOMEM : 0;
}

/* All that lies in the caller's memory. */
static int ask_read_memory(struct intercept_ask *a) {
    const uint64_t *args = a->args + ask_is_execveat(a);
    int r = ask_read_path(a, args);
    return r < 0 ? r
                 : intercept_read_vector(a->tid, args[1], ask_is_narrow(a), INTERCEPT_STRINGS_MAX,
                                         &a->bytes, &a->arena, &a->e.argv, &a->e.argc);
}

int intercept_ask_environment(struct intercept_ask *a) {
    const uint64_t *args = a->args + ask_is_execveat(a);
    size_t count;
    return intercept_read_vector(a->tid, args[2], ask_is_narrow(a), INTERCEPT_STRINGS_MAX,
                                 &a->bytes, &a->arena, &a->e.envp, &count);
}

static int ask_read_cwd(struct intercept_ask *a) {
    char path[64], text[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)a->tid);
    ssize_t n = readlink(path, text, sizeof text);
    if (n < 0)
        return -errno;
    a->e.cwd = arena_strdup(&a->arena, (struct str){text, (size_t)n});
    return a->e.cwd == NULL ? -ENOMEM : 0;
}

/* -- from the notification to the decision -- */

/* The call fails as the kernel's would. */
static void ask_fail(struct intercept_ask *a, int error) {
    (void)intercept_respond(a, error == -EPERM ? -EACCES : error);
    intercept_ask_over(a);
}

static void ask_decide(struct intercept_ask *a) {
    struct intercept_look *l = &a->look;
    a->e.file = l->file;
    a->e.dev = l->dev;
    a->e.ino = l->ino;
    a->e.memfd = l->memfd;
    a->e.unreadable = l->unreadable;
    a->e.interpreters = l->interpreters;
    a->e.interpreter_count = l->interpreter_count;
    a->e.pid = a->tgid;
    a->e.tid = a->tid;
    intercept_ask_set(a, INTERCEPT_OPEN);
    struct intercept *x = a->x;
    intercept_enter(x);
    x->o.calls->decide(x->o.owner, a, &a->e);
    if (intercept_leave(x) && a->state == INTERCEPT_OPEN)
        intercept_watch(x);
}

static void ask_looked(struct intercept_ask *a, int r) {
    /* What we have read was the caller's if it still waits. */
    if (ioctl(a->x->listener.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &a->id) < 0)
        intercept_ask_over(a);
    else if (r < 0)
        ask_fail(a, r);
    else
        ask_decide(a);
}

static void ask_job_work(struct pool_job *j) {
    struct intercept_ask *a = container_of(j, struct intercept_ask, job);
    a->looked = intercept_look(&a->look, false);
}

static void ask_job_done(struct pool_job *j) {
    struct intercept_ask *a = container_of(j, struct intercept_ask, job);
    a->in_pool = false;
    if (a->x == NULL)
        intercept_ask_free(a);
    else if (a->state == INTERCEPT_LOOKING)
        ask_looked(a, j->refused ? -EIO : a->looked);
}

void intercept_ask_read(struct intercept_ask *a) {
    intercept_ask_set(a, INTERCEPT_LOOKING);
    ask_learn_shell(a->x);
    int r = ask_read_process(a);
    if (r == 0)
        r = ask_read_memory(a);
    if (r == 0)
        r = ask_read_cwd(a);
    if (r < 0) {
        ask_fail(a, r == -ESRCH ? -EACCES : r);
        return;
    }
    a->look.tid = a->tid;
    a->look.tgid = a->tgid;
    a->look.arena = &a->arena;
    a->look.known = a->host->known;
    r = intercept_look(&a->look, true);
    if (r != -EAGAIN || a->host->pool == NULL) {
        ask_looked(a, r);
        return;
    }
    a->job = (struct pool_job){.work = ask_job_work, .done = ask_job_done};
    a->look.known = NULL; /* the loop's */
    a->in_pool = true;
    pool_submit(a->host->pool, &a->job);
}

void intercept_ask_next(struct loop_task *t) {
    struct intercept *x = container_of(t, struct intercept, next);
    intercept_enter(x);
    list_for_each(n, &x->asks) {
        struct intercept_ask *a = list_entry(n, struct intercept_ask, node);
        if (x->dead || x->open >= INTERCEPT_OPEN_MAX || x->unread == 0)
            break;
        if (a->state == INTERCEPT_UNREAD)
            intercept_ask_read(a);
    }
    intercept_leave(x);
}
