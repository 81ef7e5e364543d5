#include "proc/resources.h"

#include "base/scan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The text of /proc/PID/NAME in `text`, NUL-terminated, or false. */
static bool resources_read_file(pid_t pid, const char *name, char *text, size_t size) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return true;
}

/* The most memory a process has had since its exec, or 0. */
static uint64_t resources_peak_of(pid_t pid) {
    char text[4096];
    unsigned long kb;
    const char *f =
        resources_read_file(pid, "status", text, sizeof text) ? strstr(text, "VmHWM:") : NULL;
    return f != NULL && scan_word(f, 1, &kb) ? (uint64_t)kb * 1024 : 0;
}

bool resources_peak_counts(const struct rusage *u) {
    struct rusage own;
    /* Our own peak includes our parent's before our exec: a cheap test that decides most cases. */
    if (getrusage(RUSAGE_SELF, &own) == 0 && u->ru_maxrss > own.ru_maxrss)
        return true;
    return (uint64_t)u->ru_maxrss * 1024 > resources_peak_of(getpid());
}

/* Times and peak of a running leader, with the times of children that it awaited. */
static void resources_now(const struct proc *p, struct resources *r) {
    char text[4096];
    unsigned long user, sys, child_user, child_sys;
    const char *f =
        resources_read_file(p->pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    /* The fields 14 to 17 of proc(5); the second ends with the bracket. */
    if (f != NULL && scan_word(f + 1, 11, &user) && scan_word(f + 1, 12, &sys) &&
        scan_word(f + 1, 13, &child_user) && scan_word(f + 1, 14, &child_sys)) {
        uint64_t tick_ms = 1000u / (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1L);
        r->user_ms = (user + child_user) * tick_ms;
        r->system_ms = (sys + child_sys) * tick_ms;
    }
    r->peak_bytes = resources_peak_of(p->pid);
    r->has_peak = r->peak_bytes > 0;
}

static uint64_t resources_ms(struct timeval tv) {
    return (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000;
}

struct resources resources_of(const struct proc *p) {
    struct resources r = {0};
    bool ended = p->reaped;
    if (p->state == PROC_STARTING)
        return r;
    r.wall_ms = ((ended ? p->ended : p->host->loop->now) - p->started) / LOOP_MS;
    if (ended) {
        r.user_ms = resources_ms(p->usage.ru_utime);
        r.system_ms = resources_ms(p->usage.ru_stime);
        r.peak_bytes = (uint64_t)p->usage.ru_maxrss * 1024;
        r.has_peak = p->peak_known;
    } else if (p->child.sup != NULL) {
        resources_now(p, &r);
    }
    return r;
}
