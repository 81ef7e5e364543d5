/*
 * A fork bomb on a leash, for the end-to-end tests: bomb MARK COUNT SECONDS [hop]
 *
 * At first it grows to COUNT processes, each in a session of its own, and prints "full". From then
 * on each member forks without a pause. At most COUNT live at a time: a shared table has a place
 * for each, and a place is free when the kernel no longer knows its process, as it would be under a
 * limit of the kernel. With `hop` each member but the first forks once and ends, so that no pid
 * lasts. All end SECONDS after the start.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BUSY (-1) /* a place that somebody is about to fill */

struct bomb {
    uint32_t count;
    time_t end;
    bool hop;
    _Atomic uint32_t full; /* a futex: the growth is over */
    _Atomic uint32_t members;
    _Atomic pid_t places[];
};

static time_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Forks into `place`; true in the process that has just been made. */
static bool fill(_Atomic pid_t *place, pid_t before) {
    pid_t pid = fork();
    if (pid == 0) {
        atomic_store(place, getpid());
        setsid();
    } else if (pid < 0) {
        atomic_store(place, before);
    }
    return pid == 0;
}

/* Each member adds others until there are enough; the last one lets all go. */
static void grow(struct bomb *b) {
    struct timespec leash = {.tv_sec = b->end - now()};
    for (uint32_t n; (n = atomic_fetch_add(&b->members, 1)) < b->count;)
        fill(&b->places[n], 0);
    if (atomic_load(&b->members) == 2 * b->count + 1) { /* everybody has come here */
        atomic_store(&b->full, 1);
        (void)!write(1, "full\n", 5);
        syscall(SYS_futex, &b->full, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
    while (atomic_load(&b->full) == 0 && now() < b->end)
        syscall(SYS_futex, &b->full, FUTEX_WAIT, 0, &leash, NULL, 0);
}

/* One attempt to fork into a place that has become free. */
static bool spread(_Atomic pid_t *place) {
    pid_t before = atomic_load(place);
    bool is_free = before > 0 && kill(before, 0) < 0 && errno == ESRCH;
    if (!is_free || !atomic_compare_exchange_strong(place, &before, BUSY))
        return false;
    return fill(place, before);
}

/* Hands on to a successor. */
static void hop(void) {
    pid_t pid = fork();
    if (pid > 0)
        _exit(0);
    if (pid == 0)
        setsid();
}

int main(int argc, char **argv) {
    uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    if (argc < 4 || count == 0 || count > 10000)
        return 2;
    signal(SIGCHLD, SIG_IGN);
    struct bomb *b = mmap(NULL, sizeof *b + count * sizeof b->places[0], PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return 1;
    b->count = count;
    b->hop = argc > 4 && strcmp(argv[4], "hop") == 0;
    b->end = now() + atoi(argv[3]);
    pid_t first = getpid();
    grow(b);
    for (uint32_t at = (uint32_t)getpid(); now() < b->end;) {
        at = at * 1664525u + 1013904223u;
        if (b->hop && getpid() == first)
            sleep(1); /* it is the command, which is to be running */
        else if (b->hop)
            hop();
        else if (spread(&b->places[(at >> 8) % count]))
            at ^= (uint32_t)getpid() * 2654435761u;
    }
    return 0;
}
