#pragma once
/*
 * Kills everything below a process that is a child subreaper, however fast it forks.
 *
 * To kill and reap child after child loses against a fork bomb: each reaped process frees a place
 * for the next fork, and each child that is met only after its parent's death has had a turn of the
 * scheduler to fork again. So a round of the hunt walks the whole tree and kills all of it, and the
 * dead stay unreaped, in their places, until a round finds nobody alive.
 *
 * Only raw system calls, no allocation, about 6 KiB of stack: a supervisor may call it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hunt;

/* A living child of this process was met. */
typedef void hunt_fn(struct hunt *h, pid_t pid);

enum hunt_proc { HUNT_UNKNOWN, HUNT_OURS, HUNT_FOREIGN };

/* One hunt. `meet`, `owner` and `leader` are set by its owner; the counts are of the last round. */
struct hunt {
    hunt_fn *meet;
    void *owner;
    pid_t leader;    /* where to begin to look without /proc: pids grow; 0: do not look there */
    unsigned found;  /* children met, dead or alive */
    unsigned live;   /* of them, those that live */
    unsigned moving; /* of them, those that can be killed, and are not stuck in the kernel; counted
                        if `look` is set */
    uint64_t trace;  /* changes with who lives */
    bool look;
    enum hunt_proc proc; /* whose pids are in /proc; ours: what is below a child is found, too */
};

/* A pid of a list; false: the rest is of no interest. */
typedef bool hunt_pid_fn(void *arg, pid_t pid);

/* Reads /proc/PID/task/TID/children from `fd`, closes it, and calls `each` for every child. */
void hunt_pids(int fd, hunt_pid_fn *each, void *arg);

/* Meets every child once: by /proc/thread-self/children, by a walk over /proc, or by asking for
 * every pid. A child is what wait says is one: a /proc of other namespaces lists strangers. */
void hunt_children(struct hunt *h);

/* For `meet`: kills the child and, as far as /proc tells, all that is below it. */
void hunt_kill(struct hunt *h, pid_t pid);

/* For `meet`: kills only what is below the child. */
void hunt_kill_below(struct hunt *h, pid_t pid);

/*
 * Kills in rounds until no child lives: true, or until those that do are all stuck in the kernel,
 * with SIGKILL pending, or another user's: false. Nobody is reaped. SIGCHLD must be blocked; it is
 * consumed.
 */
bool hunt_down(struct hunt *h);
