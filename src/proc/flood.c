#include "proc/flood.h"

#include "base/scan.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FLOOD_DEPTH 3       /* supervisor, launcher, init: the command is below them */
#define FLOOD_CHILDREN 4096 /* bytes read of a list of children */
#define FLOOD_LOOKS 64      /* processes looked at, however many there are */
#define FLOOD_STAT 1024     /* bytes of a line of /proc/PID/stat */
#define FLOOD_STAT_PARENT 1 /* words after the name */
#define FLOOD_STAT_SESSION 3

/* Reads a small file of /proc, below dir. False when it is not there. */
static bool flood_read(int dir, const char *name, char *text, size_t size) {
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Parent and session of the process whose directory that is. */
static bool flood_look(int dir, unsigned long *parent, unsigned long *session) {
    char text[FLOOD_STAT];
    if (!flood_read(dir, "stat", text, sizeof text))
        return false;
    const char *end = strrchr(text, ')');
    return end != NULL && scan_word(end + 1, FLOOD_STAT_PARENT, parent) &&
           scan_word(end + 1, FLOOD_STAT_SESSION, session);
}

static int flood_open_process(unsigned long pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%lu", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * The directory in /proc of a process below `pid` that is in the command's session. The pid of a
 * child may be somebody else's by the time it is looked up: its parent tells.
 */
static int flood_find(const struct flood *f, unsigned long pid, int depth, unsigned *looks) {
    char name[64], list[FLOOD_CHILDREN];
    _cleanup_close_ int dir = flood_open_process(pid);
    snprintf(name, sizeof name, "task/%lu/children", pid);
    if (dir < 0 || !flood_read(dir, name, list, sizeof list))
        return -1;
    unsigned long child;
    for (unsigned i = 0; *looks > 0 && scan_word(list, i, &child); i++, --*looks) {
        _cleanup_close_ int found = flood_open_process(child);
        unsigned long parent, session;
        if (found < 0 || !flood_look(found, &parent, &session) || parent != pid)
            continue;
        if (f->session != 0 ? session == (unsigned long)f->session
                            : session != (unsigned long)getsid(0))
            return steal_fd(&found);
        int below = depth > 1 ? flood_find(f, child, depth - 1, looks) : -1;
        if (below >= 0 || *looks == 0)
            return below;
    }
    return -1;
}

/* Sets the share of the command's session. 0 or -errno; -ESRCH: nothing of it is left. */
static int flood_set(const struct flood *f, const char *nice) {
    unsigned looks = FLOOD_LOOKS;
    _cleanup_close_ int dir = flood_find(f, (unsigned long)f->supervisor, FLOOD_DEPTH, &looks);
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
