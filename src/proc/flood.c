#include "proc/flood.h"

#include "base/hunt.h"
#include "base/scan.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FLOOD_DEPTH 3       /* supervisor, launcher, init: the command is below them */
#define FLOOD_LOOKS 64      /* processes looked at, however many there are */
#define FLOOD_STAT 1024     /* bytes of a line of /proc/PID/stat */
#define FLOOD_STAT_PARENT 1 /* words after the name */
#define FLOOD_STAT_SESSION 3

/* Parent and session of the process whose directory in /proc that is. */
static bool flood_look(int dir, unsigned long *parent, unsigned long *session) {
    char text[FLOOD_STAT];
    _cleanup_close_ int fd = openat(dir, "stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[MAX(n, (ssize_t)0)] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && scan_word(end + 1, FLOOD_STAT_PARENT, parent) &&
           scan_word(end + 1, FLOOD_STAT_SESSION, session);
}

/* A search below `pid` for a process in the command's session. */
struct flood_search {
    const struct flood *f;
    pid_t pid;
    int depth;
    unsigned *looks; /* that are left for the whole search */
    int found;       /* its directory in /proc; -1: none yet */
};

static void flood_find(struct flood_search *s);

/* Another process may have the pid of a child by now: its parent tells. */
static bool flood_meet(void *arg, pid_t child) {
    struct flood_search *s = arg;
    unsigned long parent, session;
    if (*s->looks == 0)
        return false;
    --*s->looks;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", child);
    _cleanup_close_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !flood_look(dir, &parent, &session) || parent != (unsigned long)s->pid)
        return true;
    pid_t wanted = s->f->session;
    struct flood_search below = {s->f, child, s->depth - 1, s->looks, -1};
    if (wanted != 0 ? session == (unsigned long)wanted : session != (unsigned long)getsid(0))
        s->found = steal_fd(&dir);
    else if (below.depth > 0)
        flood_find(&below), s->found = below.found;
    return s->found < 0;
}

static void flood_find(struct flood_search *s) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", s->pid, s->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        hunt_pids(fd, flood_meet, s);
}

/* Sets the share of the command's session. 0 or -errno; -ESRCH: nothing of it is left. */
static int flood_set(const struct flood *f, const char *nice) {
    unsigned looks = FLOOD_LOOKS;
    struct flood_search search = {f, f->supervisor, FLOOD_DEPTH, &looks, -1};
    flood_find(&search);
    _cleanup_close_ int dir = search.found;
    if (dir < 0)
        return -ESRCH;
    _cleanup_close_ int fd = openat(dir, "autogroup", O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, nice, strlen(nice)) > 0 ? 0 : -errno;
}

static void flood_set_active(struct flood *f, bool active) {
    *f->floods += active;
    *f->floods -= f->active;
    f->active = active;
}

/* Does what the last window calls for. An unprivileged server may set few shares per second. */
static void flood_adjust(struct flood *f) {
    flood_set_active(f, f->bytes >= FLOOD_BYTES / 4);
    bool lower = f->active && *f->floods > FLOOD_FREE;
    char text[8];
    snprintf(text, sizeof text, "%d", lower ? FLOOD_NICE : 0);
    int r = lower == f->lowered ? 0 : flood_set(f, text);
    if (r == 0)
        f->lowered = lower;
    if (r == -ESRCH && !lower) /* nobody is left to have it back */
        f->lowered = false;
    f->useless = r < 0 && r != -EAGAIN && r != -ESRCH;
    f->bytes = 0;
    f->since = f->loop->now;
    if (r == -EAGAIN || f->active || f->lowered)
        (void)!loop_timer_set(f->loop, &f->timer, FLOOD_WINDOW_MS * LOOP_MS);
}

static void flood_on_timer(struct loop_timer *t) {
    flood_adjust(container_of(t, struct flood, timer));
}

void flood_init(struct flood *f, struct loop *loop, size_t *floods) {
    *f = (struct flood){.loop = loop, .floods = floods, .timer.fn = flood_on_timer};
}

void flood_begin(struct flood *f, pid_t supervisor, pid_t session) {
    f->supervisor = supervisor;
    f->session = session;
    f->since = f->loop->now;
}

void flood_add(struct flood *f, size_t n) {
    uint64_t past = f->loop->now - f->since;
    f->bytes += n;
    if (past < FLOOD_WINDOW_MS * LOOP_MS || f->timer.pos != 0 || f->supervisor == 0)
        return;
    bool flood = f->bytes >= FLOOD_BYTES && past < 2 * FLOOD_WINDOW_MS * LOOP_MS;
    if (flood && f->before && !f->useless) {
        flood_adjust(f);
        return;
    }
    f->before = flood;
    f->bytes = 0;
    f->since = f->loop->now;
}

void flood_end(struct flood *f) {
    loop_timer_del(f->loop, &f->timer);
    flood_set_active(f, false);
    f->supervisor = 0;
}
