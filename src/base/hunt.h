#pragma once
/*
 * Kills everything below a child subreaper, however fast it forks.
 *
 * Killing and reaping child after child loses against a fork bomb. Each reaped process makes room
 * for the next fork, and a child found only after its parent's death has had time to fork again. So
 * each round walks the whole tree and kills all of it. The dead stay unreaped, and keep their
 * places, until a round finds nobody alive.
 *
 * Only raw system calls, no allocation, about 6 KiB of stack: a supervisor may call it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hunt;

/* Called for a living child of this process. */
typedef void hunt_fn(struct hunt *h, pid_t pid);

enum hunt_proc { HUNT_UNKNOWN, HUNT_OURS, HUNT_FOREIGN };

/* One hunt. The owner sets `meet`, `owner` and `leader`; the counts are of the last round. */
struct hunt {
    hunt_fn *meet;
    void *owner;
    pid_t leader;    /* where to begin without /proc, since pids grow; 0: do not search there */
    unsigned found;  /* children met, dead or alive */
    unsigned live;   /* those of them that live */
    unsigned moving; /* of them, those that can be killed, and are not stuck in the kernel; counted
                        if `look` is set */
    uint64_t trace;  /* a hash of the living */
    bool look;
    enum hunt_proc proc; /* whose pids /proc shows; ours: descendants of a child are found too */
};

/* The state of a thread of this process, the letter that ps shows; 0 if /proc does not tell. */
char hunt_thread_state(pid_t tid);

/* Called for a pid of a list; false ends the reading. */
typedef bool hunt_pid_fn(void *arg, pid_t pid);

/* Reads /proc/PID/task/TID/children from `fd`, closes it, and calls `each` for every child. */
void hunt_pids(int fd, hunt_pid_fn *each, void *arg);

/* Meets every child once: by /proc/thread-self/children, by a walk over /proc, or by asking for
 * every pid. wait() decides who is a child: a /proc of another namespace lists strangers. */
void hunt_children(struct hunt *h);

/* For `meet`: kills the child and, as far as /proc shows, its descendants. */
void hunt_kill(struct hunt *h, pid_t pid);

/* For `meet`: kills only the child's descendants. */
void hunt_kill_below(struct hunt *h, pid_t pid);

/* Kills in rounds until no child lives: true. False: the living are all stuck in the kernel, with
 * SIGKILL pending, or another user's. Reaps nobody. SIGCHLD must be blocked; it is consumed. */
bool hunt_down(struct hunt *h);
