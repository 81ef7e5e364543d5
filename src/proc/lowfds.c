#include "proc/lowfds.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#define LOWFDS_COUNT (LOWFDS_SETS * LOWFDS_EACH)
#define LOWFDS_ALIGN 64 /* the kernel copies this many at a time (BITS_PER_LONG) */

static int lowfds_limit(const struct lowfds *s) {
    return s->first + LOWFDS_COUNT;
}

/* Fills every free number below `limit` with the fence. False when descriptors are short. */
static bool lowfds_fill(struct lowfds *s, int limit) {
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

/* Whether all numbers of the sets are free; the server may have been started with some. */
static bool lowfds_vacant(int first) {
    for (int fd = first; fd < first + LOWFDS_COUNT; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            return false;
    }
    return true;
}

void lowfds_init(struct lowfds *s) {
    *s = (struct lowfds){.fence = -1};
    int limit = 2 * LOWFDS_ALIGN;
    while (limit < LOWFDS_MOST && !lowfds_vacant(limit - LOWFDS_COUNT))
        limit += LOWFDS_ALIGN;
    s->first = limit - LOWFDS_COUNT;
    int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0 || !lowfds_vacant(s->first)) {
        util_close_fd(&fd);
        return;
    }
    s->fence = fcntl(fd, F_DUPFD_CLOEXEC, limit);
    close(fd);
    if (s->fence >= 0 && !lowfds_fill(s, limit))
        lowfds_fini(s);
}

void lowfds_fini(struct lowfds *s) {
    if (s->fence < 0)
        return;
    for (int fd = 0; fd < lowfds_limit(s); fd++) {
        if (s->filled[fd])
            close(fd);
    }
    util_close_fd(&s->fence);
}

static void lowfds_free(struct lowfds *s, size_t set) {
    int first = s->first + (int)set * LOWFDS_EACH;
    for (int fd = first; fd < first + LOWFDS_EACH; fd++)
        (void)dup3(s->fence, fd, O_CLOEXEC);
    s->user[set] = NULL;
}

void lowfds_collect(struct lowfds *s) {
    for (size_t i = 0; i < LOWFDS_SETS; i++) {
        if (s->user[i] != NULL && atomic_load(&s->user[i]->unshared))
            lowfds_free(s, i);
    }
}

void lowfds_drop(struct lowfds *s, const struct supervisor *sup) {
    for (size_t i = 0; i < LOWFDS_SETS; i++) {
        if (s->user[i] == sup)
            lowfds_free(s, i);
    }
}

static size_t lowfds_find(struct lowfds *s) {
    for (;; sched_yield()) {
        lowfds_collect(s);
        for (size_t i = 0; i < LOWFDS_SETS; i++) {
            if (s->user[i] == NULL)
                return i;
        }
    }
}

int lowfds_place(struct lowfds *s, struct supervisor *sup) {
    if (s->fence < 0 || sup->given_count > LOWFDS_GIVEN)
        return 0;
    size_t set = lowfds_find(s);
    s->user[set] = sup;
    int *need[LOWFDS_EACH] = {&sup->fds[0], &sup->fds[1], &sup->fds[2], &sup->wake_fd,
                              sup->limits.join ? &sup->limits.cgroup_fd : NULL};
    need[6 + SUPERVISOR_HANDED] = sup->intercept >= 0 ? &sup->intercept : NULL;
    if (sup->launcher >= 0) {
        need[5] = &sup->launcher;
        for (size_t i = 0; i < SUPERVISOR_HANDED; i++)
            need[6 + i] = sup->handed[i] >= 0 ? &sup->handed[i] : NULL;
    } else {
        for (size_t i = 0; i < sup->given_count; i++)
            need[6 + i] = &sup->given[i].fd;
    }
    int slot = s->first + (int)set * LOWFDS_EACH;
    for (size_t i = 0; i < LOWFDS_EACH; i++, slot++) {
        if (need[i] == NULL)
            continue;
        if (dup3(*need[i], slot, O_CLOEXEC) < 0) {
            int r = errno == EBADF ? -EMFILE : -errno; /* beyond a limit that was lowered */
            lowfds_free(s, set);
            return r;
        }
        *need[i] = slot;
    }
    sup->keep = (unsigned)lowfds_limit(s);
    return 0;
}
