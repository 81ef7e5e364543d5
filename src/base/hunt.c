#include "base/hunt.h"

#include "base/rawsys.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define HUNT_PID_MAX 4194304 /* the kernel's PID_MAX_LIMIT */
#define HUNT_PID_NEAR 65536
#define HUNT_OPEN 128        /* processes whose children are still to be listed */
#define HUNT_SAME 3          /* rounds without a change until states count */
#define HUNT_PAUSE_NS 500000 /* between rounds, at least */
#define HUNT_PAUSE_MAX_NS 50000000

/* Parses a decimal at *p and moves *p behind it and the blanks that follow; 0 at the end. */
static pid_t hunt_number(const char **p, const char *end) {
    pid_t v = 0;
    while (*p < end && **p >= '0' && **p <= '9')
        v = v * 10 + (*(*p)++ - '0');
    while (*p < end && **p == ' ')
        (*p)++;
    return v;
}

/* Writes before, a decimal, behind; the room must suffice. */
static void hunt_path(char *dst, const char *before, pid_t pid, const char *behind) {
    char digits[12];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + pid % 10);
    while ((pid /= 10) > 0);
    while (*before != '\0')
        *dst++ = *before++;
    while (n > 0)
        *dst++ = digits[--n];
    while (*behind != '\0')
        *dst++ = *behind++;
    *dst = '\0';
}

static long hunt_open(long dir, const char *path, long flags) {
    return sys4(SYS_openat, dir, (long)path, O_RDONLY | O_CLOEXEC | flags, 0);
}

void hunt_pids(int fd, hunt_pid_fn *each, void *arg) {
    char text[512];
    size_t have = 0;
    bool more = true;
    for (long n;
         more && (n = sys3(SYS_read, fd, (long)(text + have), (long)(sizeof text - have))) > 0;) {
        const char *end = text + have + n, *whole = end, *p = text;
        /* A number at the very end may be cut: keep it for the next read. */
        while (whole > text && whole[-1] != ' ')
            whole--;
        for (pid_t pid; more && p < whole && (pid = hunt_number(&p, whole)) > 0;)
            more = each(arg, pid);
        have = 0;
        for (; whole < end; whole++)
            text[have++] = *whole;
    }
    sys1(SYS_close, fd);
}

/* State and parent of a process by its directory in /proc; false if it is gone. */
static bool hunt_stat(long dir, char *state, pid_t *parent) {
    char text[256];
    long fd = hunt_open(dir, "stat", 0);
    long n = fd < 0 ? 0 : sys3(SYS_read, fd, (long)text, sizeof text);
    if (fd >= 0)
        sys1(SYS_close, fd);
    /* "PID (comm) S PPID": comm is short but may contain anything, so search its last ')'. */
    const char *end = text + MAX(n, 0L), *p = end;
    while (p > text && p[-1] != ')')
        p--;
    if (p == text || end - p < 4)
        return false;
    *state = p[1];
    p += 3;
    *parent = hunt_number(&p, end);
    return true;
}

/* -- children -- */

/* The letter that ps shows; 0 if unknown. */
static char hunt_state(const char *where, pid_t pid) {
    char path[32], state = 0;
    pid_t parent;
    hunt_path(path, where, pid, "");
    long dir = hunt_open(AT_FDCWD, path, O_DIRECTORY);
    if (dir < 0)
        return 0;
    bool known = hunt_stat(dir, &state, &parent);
    sys1(SYS_close, dir);
    return known ? state : 0;
}

/* /proc/self, unlike /proc/TID, does not name a stranger if /proc is another namespace's. */
char hunt_thread_state(pid_t tid) {
    return hunt_state("/proc/self/task/", tid);
}

/* Meets `pid` if it is a living child of ours. */
static bool hunt_child(void *arg, pid_t pid) {
    struct hunt *h = arg;
    siginfo_t dead;
    dead.si_pid = 0;
    int how = WEXITED | WNOHANG | WNOWAIT | __WALL;
    if (sys5(SYS_waitid, P_PID, pid, (long)&dead, how, 0) == -ECHILD)
        return true;
    h->found++;
    if (dead.si_pid == pid && dead.si_code != CLD_TRAPPED && dead.si_code != CLD_STOPPED)
        return true;
    h->live++;
    h->trace = (h->trace ^ (uint64_t)pid) * 0x100000001b3u;
    char state = h->look ? hunt_state("/proc/", pid) : 0;
    bool deaf = h->look && sys2(SYS_kill, pid, 0) == -EPERM; /* another user's, as by sudo */
    h->moving += state != 0 && state != 'D' && state != 'Z' && !deaf;
    h->meet(h, pid);
    return true;
}

struct hunt_dirent {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

/* Walks over /proc, for kernels without the children file. */
static void hunt_scan(struct hunt *h) {
    _Alignas(8) char dents[1024];
    long fd = hunt_open(AT_FDCWD, "/proc", O_DIRECTORY);
    if (fd < 0)
        return;
    pid_t me = (pid_t)sys0(SYS_getpid);
    for (long n; (n = sys3(SYS_getdents64, fd, (long)dents, sizeof dents)) > 0;) {
        for (long at = 0; at < n;) {
            const struct hunt_dirent *d = (const void *)(dents + at);
            at += d->reclen;
            const char *p = d->name;
            char state;
            pid_t parent = 0;
            if (*p < '0' || *p > '9')
                continue;
            long dir = hunt_open(fd, d->name, O_DIRECTORY);
            if (dir < 0)
                continue;
            if (hunt_stat(dir, &state, &parent) && parent == me)
                hunt_child(h, hunt_number(&p, p + 12));
            sys1(SYS_close, dir);
        }
    }
    sys1(SYS_close, fd);
}

/* Without /proc: asks for every pid whether it is ours, beginning near the leader. */
static void hunt_ask(struct hunt *h) {
    for (pid_t pid = h->leader; pid <= h->leader + HUNT_PID_NEAR; pid++)
        hunt_child(h, pid);
    for (pid_t pid = 1; h->found == 0 && pid <= HUNT_PID_MAX; pid++)
        hunt_child(h, pid);
}

void hunt_children(struct hunt *h) {
    h->found = h->live = h->moving = 0;
    h->trace = 0xcbf29ce484222325u;
    long fd = hunt_open(AT_FDCWD, "/proc/thread-self/children", 0);
    if (fd >= 0)
        hunt_pids((int)fd, hunt_child, h);
    if (h->found == 0)
        hunt_scan(h);
    if (h->found == 0 && h->leader > 0)
        hunt_ask(h);
}

/* -- descendants -- */

/* Killed processes whose children are still to be killed: their directories in /proc. */
struct hunt_tree {
    pid_t pid; /* the current one */
    int dir;
    size_t count;
    struct {
        pid_t pid;
        int dir;
    } open[HUNT_OPEN];
};

/* Whether /proc shows our own pid namespace: then a number means the same process there. */
static bool hunt_proc_is_ours(void) {
    static const char key[] = "\nNSpid:\t";
    char text[2048];
    long fd = hunt_open(AT_FDCWD, "/proc/thread-self/status", 0);
    long n = fd < 0 ? 0 : sys3(SYS_read, fd, (long)text, sizeof text);
    if (fd >= 0)
        sys1(SYS_close, fd);
    const char *end = text + MAX(n, 0L);
    for (const char *p = text; p < end; p++) {
        size_t same = 0;
        while (same < sizeof key - 1 && p + same < end && p[same] == key[same])
            same++;
        if (same < sizeof key - 1)
            continue;
        p += same;
        (void)hunt_number(&p, end);
        return p < end && *p == '\n'; /* each namespace further in adds a number */
    }
    return false;
}

/* A process that does not fit is met again after its parent's death. */
static void hunt_push(struct hunt_tree *t, pid_t pid, long dir) {
    if (t->count == HUNT_OPEN) {
        sys1(SYS_close, dir);
        return;
    }
    t->open[t->count].pid = pid;
    t->open[t->count++].dir = (int)dir;
}

/* Another user's process is there too, and processes of ours may be below it (sudo -u). */
static bool hunt_is_there(long signalled) {
    return signalled == 0 || signalled == -EPERM;
}

/*
 * Kills `pid`, listed as a child of the walk's current process. Another process may have that
 * number by now. So open it first, ask the open process for its parent, and kill that. The parent's
 * number is still its own, since the parent can still be signalled.
 */
static bool hunt_grandchild(void *arg, pid_t pid) {
    struct hunt_tree *t = arg;
    char path[32], state;
    pid_t parent;
    hunt_path(path, "/proc/", pid, "");
    long dir = hunt_open(AT_FDCWD, path, O_DIRECTORY);
    if (dir < 0)
        return true;
    if (hunt_stat(dir, &state, &parent) && parent == t->pid &&
        hunt_is_there(sys4(SYS_pidfd_send_signal, t->dir, 0, 0, 0)) &&
        hunt_is_there(sys4(SYS_pidfd_send_signal, dir, SIGKILL, 0, 0)))
        hunt_push(t, pid, dir);
    else
        sys1(SYS_close, dir);
    return true;
}

/* Kills the children of every thread of the walk's current process. */
static void hunt_below(struct hunt_tree *t) {
    _Alignas(8) char dents[512];
    char path[32];
    long tasks = hunt_open(t->dir, "task", O_DIRECTORY);
    if (tasks < 0)
        return;
    for (long n; (n = sys3(SYS_getdents64, tasks, (long)dents, sizeof dents)) > 0;) {
        for (long at = 0; at < n;) {
            const struct hunt_dirent *d = (const void *)(dents + at);
            at += d->reclen;
            const char *p = d->name;
            pid_t tid = hunt_number(&p, p + 12);
            if (tid <= 0)
                continue;
            hunt_path(path, "", tid, "/children");
            long fd = hunt_open(tasks, path, 0);
            if (fd >= 0)
                hunt_pids((int)fd, hunt_grandchild, t);
        }
    }
    sys1(SYS_close, tasks);
}

void hunt_kill_below(struct hunt *h, pid_t pid) {
    struct hunt_tree t = {.count = 0};
    char path[32];
    if (h->proc == HUNT_UNKNOWN)
        h->proc = hunt_proc_is_ours() ? HUNT_OURS : HUNT_FOREIGN;
    if (h->proc != HUNT_OURS)
        return;
    hunt_path(path, "/proc/", pid, "");
    long dir = hunt_open(AT_FDCWD, path, O_DIRECTORY);
    if (dir >= 0)
        hunt_push(&t, pid, dir);
    while (t.count > 0) {
        t.count--;
        t.pid = t.open[t.count].pid;
        t.dir = t.open[t.count].dir;
        hunt_below(&t);
        sys1(SYS_close, t.dir);
    }
}

void hunt_kill(struct hunt *h, pid_t pid) {
    if (hunt_is_there(sys2(SYS_kill, pid, SIGKILL)))
        hunt_kill_below(h, pid);
}

/* Nanoseconds of the monotonic clock. */
static int64_t hunt_now(void) {
    struct timespec t;
    sys2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Leaves the processor to the dying: as long as the round took, longer if nothing changes. */
static void hunt_pause(int64_t began, unsigned same) {
    int64_t took = hunt_now() - began, least = (int64_t)HUNT_PAUSE_NS << MIN(same, 6u);
    int64_t ns = MIN(MAX(took, least), (int64_t)HUNT_PAUSE_MAX_NS);
    struct timespec pause = {0, (long)ns};
    sys2(SYS_nanosleep, (long)&pause, 0);
}

bool hunt_down(struct hunt *h) {
    uint64_t before = 0;
    h->look = false;
    for (unsigned same = 0;;) {
        int64_t began = hunt_now();
        hunt_children(h);
        if (h->live == 0)
            return true;
        if (h->look && h->moving == 0 && h->trace == before)
            return false;
        same = h->trace == before ? same + 1 : 0;
        h->look = same >= HUNT_SAME;
        before = h->trace;
        hunt_pause(began, same);
    }
}
