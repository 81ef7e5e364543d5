#pragma once
/*
 * Placeholder directories: a sandbox makes one on the host where a protected name does not exist,
 * as a mount point. Whatever is killed when, none of them stays:
 *
 * - A placeholder is recognisable from the first moment: mkdir() itself gives it a mode that nobody
 *   else uses. Then it gets a modification time that nobody else uses, and an ordinary mode.
 *   A process that puts something into it changes the time; the directory then belongs to its user.
 * - A launcher notes a placeholder before it makes or adopts it, in memory that server, supervisor
 *   and launcher share. The last of them alive removes the noted ones.
 * - Every sandbox that uses a placeholder holds a shared flock() on it. Removing one
 *   takes an exclusive lock. A launcher that does not get the lock leaves the directory to the
 *   sandbox that holds it, whose launcher has noted it as well.
 * - If all of them are killed at once, the next sandbox that protects the name adopts the
 *   placeholder.
 *
 * The supervisor may call nothing: hence only inline code, and system calls through a function that
 * the caller hands in.
 */

#include "base/step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Modification time of a placeholder directory in seconds: even and without a fraction, so that any
 * file system can store it. */
#define PLACEHOLDERS_MTIME 1163412802

/* The mode it is made with; an ACL may remove bits of group and others. */
#define PLACEHOLDERS_BIRTH (S_ISVTX | 0555)
#define PLACEHOLDERS_BIRTH_BITS (S_ISVTX | S_ISUID | 0700)

#define PLACEHOLDERS_BYTES 65536

enum placeholders_state {
    PLACEHOLDERS_GONE = '-',  /* nothing to remove */
    PLACEHOLDERS_NOTED = 'm', /* to be removed if it exists and is marked */
};

/* Records: a state, the absolute path of the parent, a NUL, the name, a NUL. */
struct placeholders {
    _Atomic int32_t launcher; /* the launcher's pid, set before it makes the first; 0: none */
    int32_t step;             /* where to stop, in a build with steps (step.h) */
    _Atomic uint32_t used;    /* valid bytes of `records` */
    char records[PLACEHOLDERS_BYTES - 3 * sizeof(uint32_t)];
};

/* Whether this has the mark of a placeholder directory. */
static inline bool placeholders_is_marked(const struct stat *st) {
    bool timed = st->st_mtim.tv_sec == PLACEHOLDERS_MTIME && st->st_mtim.tv_nsec == 0;
    bool fresh =
        (st->st_mode & PLACEHOLDERS_BIRTH_BITS) == (PLACEHOLDERS_BIRTH & PLACEHOLDERS_BIRTH_BITS);
    return S_ISDIR(st->st_mode) && (timed || fresh);
}

/* A system call: the result or -errno. */
typedef long placeholders_call(long n, long a, long b, long c, long d);

/* How to remove. */
struct placeholders_sweeper {
    placeholders_call *call;
    /* How many removed directories may stay open, for a process that ends next: freeing a directory
     * takes the kernel longer than removing its name. */
    int keep;
};

/* Removes `name` in the directory `parent` if it is a placeholder directory that no sandbox holds.
 * rmdir() itself refuses a directory with entries. False: somebody holds it. */
static inline bool placeholders_remove(int parent, const char *name,
                                       struct placeholders_sweeper *s) {
    placeholders_call *call = s->call;
    struct stat st, now;
    long flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    long fd = call(SYS_openat, parent, (long)name, flags, 0);
    if (fd < 0)
        return true;
    long lock = call(SYS_flock, fd, LOCK_EX | LOCK_NB, 0, 0);
    step_reach(STEP_SWEEP_LOCKED);
    /* Checked under the lock: nobody else removes it now, and no sandbox begins to use it. */
    bool removed = lock == 0 && call(SYS_fstat, fd, (long)&st, 0, 0) == 0 &&
                   placeholders_is_marked(&st) &&
                   call(SYS_newfstatat, parent, (long)name, (long)&now, AT_SYMLINK_NOFOLLOW) == 0 &&
                   now.st_ino == st.st_ino && now.st_dev == st.st_dev &&
                   call(SYS_unlinkat, parent, (long)name, AT_REMOVEDIR, 0) == 0;
    if (!removed || s->keep-- <= 0)
        call(SYS_close, fd, 0, 0, 0);
    return lock != -EWOULDBLOCK;
}

/* The start of the string whose NUL is at `end`. */
static inline size_t placeholders_start(const char *records, size_t end) {
    while (end > 0 && records[end - 1] != '\0')
        end--;
    return end;
}

/* Removes the directory of the record at `at`, whose name is at `name`. False: somebody holds it.
 * */
static inline bool placeholders_drop(struct placeholders *l, size_t at, size_t name,
                                     struct placeholders_sweeper *s) {
    const char *r = l->records;
    if (r[at] != PLACEHOLDERS_NOTED || r[at + 1] != '/')
        return true;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long parent = s->call(SYS_openat2, AT_FDCWD, (long)(r + at + 1), (long)&how, sizeof how);
    if (parent < 0)
        return true;
    bool done = placeholders_remove((int)parent, r + name, s);
    s->call(SYS_close, parent, 0, 0, 0);
    return done;
}

/* Removes all listed directories that nobody holds, the newest first. Held ones stay in the list;
 * returns their number. */
static inline unsigned placeholders_sweep(struct placeholders *l, struct placeholders_sweeper *s) {
    unsigned held = 0;
    size_t used = atomic_load_explicit(&l->used, memory_order_acquire);
    if (used > sizeof l->records)
        used = sizeof l->records;
    while (used > 2) {
        size_t name = placeholders_start(l->records, used - 1);
        size_t at = name > 0 ? placeholders_start(l->records, name - 1) : 0;
        bool whole = name > at + 1 && l->records[used - 1] == '\0';
        if (whole && !placeholders_drop(l, at, name, s))
            held++;
        else
            l->records[at] = PLACEHOLDERS_GONE;
        used = at;
    }
    if (held == 0)
        atomic_store_explicit(&l->used, 0, memory_order_release);
    return held;
}

/* Sweeps for a sandbox's last process: leaves held ones to their holders. */
static inline void placeholders_finish(struct placeholders *l, struct placeholders_sweeper *s) {
    (void)placeholders_sweep(l, s);
    atomic_store_explicit(&l->used, 0, memory_order_release);
}
