#include "proc/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#define SLOTS_COUNT (SLOTS_SETS * SLOTS_EACH)
#define SLOTS_ALIGN 64 /* the kernel copies this many at a time (BITS_PER_LONG) */

static int slots_limit(const struct slots *s) {
    return s->first + SLOTS_COUNT;
}

/* Fills every free number below `limit` with the fence. False when descriptors are short. */
static bool slots_fill(struct slots *s, int limit) {
    int fd = 0;
    while (fd >= 0 && fd < limit) {
        fd = fcntl(s->fence, F_DUPFD_CLOEXEC, 3);
        if (fd >= 0 && fd < limit)
            s->filled[fd] = true;
        else if (fd >= 0)
            close(fd);
    }
    return fd >= 0;
}

/* Whether none of the numbers is in use already, by what we were started with. */
static bool slots_vacant(int first) {
    for (int fd = first; fd < first + SLOTS_COUNT; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            return false;
    }
    return true;
}

void slots_init(struct slots *s) {
    *s = (struct slots){.fence = -1};
    int limit = 2 * SLOTS_ALIGN;
    while (limit < SLOTS_MOST && !slots_vacant(limit - SLOTS_COUNT))
        limit += SLOTS_ALIGN;
    s->first = limit - SLOTS_COUNT;
    int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0 || !slots_vacant(s->first)) {
        util_close_fd(&fd);
        return;
    }
    s->fence = fcntl(fd, F_DUPFD_CLOEXEC, limit);
    close(fd);
    if (s->fence >= 0 && !slots_fill(s, limit))
        slots_fini(s);
}

void slots_fini(struct slots *s) {
    if (s->fence < 0)
        return;
    for (int fd = 0; fd < slots_limit(s); fd++) {
        if (s->filled[fd])
            close(fd);
    }
    util_close_fd(&s->fence);
}

static void slots_free(struct slots *s, size_t set) {
    int first = s->first + (int)set * SLOTS_EACH;
    for (int fd = first; fd < first + SLOTS_EACH; fd++)
        (void)dup3(s->fence, fd, O_CLOEXEC);
    s->user[set] = NULL;
}

void slots_collect(struct slots *s) {
    for (size_t i = 0; i < SLOTS_SETS; i++) {
        if (s->user[i] != NULL && atomic_load(&s->user[i]->unshared))
            slots_free(s, i);
    }
}

void slots_drop(struct slots *s, const struct supervisor *sup) {
    for (size_t i = 0; i < SLOTS_SETS; i++) {
        if (s->user[i] == sup)
            slots_free(s, i);
    }
}

static size_t slots_find(struct slots *s) {
    for (;; sched_yield()) {
        slots_collect(s);
        for (size_t i = 0; i < SLOTS_SETS; i++) {
            if (s->user[i] == NULL)
                return i;
        }
    }
}

int slots_place(struct slots *s, struct supervisor *sup) {
    if (s->fence < 0)
        return 0;
    size_t set = slots_find(s);
    s->user[set] = sup;
    int *need[SLOTS_EACH] = {&sup->fds[0], &sup->fds[1], &sup->fds[2], &sup->wake_fd,
                             sup->limits.join ? &sup->limits.cgroup_fd : NULL};
    if (sup->launcher >= 0) {
        need[5] = &sup->launcher;
        for (size_t i = 0; i < SUPERVISOR_HANDED; i++)
            need[6 + i] = sup->handed[i] >= 0 ? &sup->handed[i] : NULL;
    }
    int slot = s->first + (int)set * SLOTS_EACH;
    for (size_t i = 0; i < SLOTS_EACH; i++, slot++) {
        if (need[i] == NULL)
            continue;
        if (dup3(*need[i], slot, O_CLOEXEC) < 0) {
            int r = errno == EBADF ? -EMFILE : -errno; /* beyond a limit that was lowered */
            slots_free(s, set);
            return r;
        }
        *need[i] = slot;
    }
    sup->keep = (unsigned)slots_limit(s);
    return 0;
}
