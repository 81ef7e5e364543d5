#pragma once
/*
 * Directories that a sandbox put on the host to hold the place of a protected name that does not
 * exist ("synthetic" ones). They are empty, marked by their modification time, and held by a shared
 * flock() of every sandbox that uses them; whoever removes one takes an exclusive lock first.
 *
 * The list lies in memory that the launcher and the supervisor share: the launcher removes its
 * directories at a normal end, the supervisor after a launcher that was killed. The supervisor may
 * call nothing, hence system calls through a function that is handed in, and only inline code.
 */

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Modification time of a synthetic directory, in seconds; no fraction, and even: any file system
 * can store it. */
#define SYNTHLIST_MTIME 1163412802

#define SYNTHLIST_BYTES 65536

enum synthlist_state {
    SYNTHLIST_GONE = '-',   /* nothing to remove */
    SYNTHLIST_MAKING = 'c', /* may be there, not yet marked */
    SYNTHLIST_MARKED = 'm', /* there, and marked */
};

/* Records: a state, the absolute path of the parent, a NUL, the name, a NUL. */
struct synthlist {
    _Atomic uint32_t used; /* bytes of `records` that count */
    char records[SYNTHLIST_BYTES - sizeof(uint32_t)];
};

/* A system call: the result or -errno. */
typedef long synthlist_call(long n, long a, long b, long c, long d);

/* How to remove. */
struct synthlist_sweeper {
    synthlist_call *call;
    /* Descriptors of removed directories that may stay open, for a process that is about to end: to
     * free a directory takes the kernel longer than to remove its name. */
    int keep;
};

/*
 * Removes `name` below the directory `parent` if it is a synthetic directory (or one being made)
 * that no sandbox holds. rmdir() itself refuses what is not empty.
 */
static inline void synthlist_remove(int parent, const char *name, bool marked,
                                    struct synthlist_sweeper *s) {
    synthlist_call *call = s->call;
    struct stat st, now;
    long flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    long fd = call(SYS_openat, parent, (long)name, flags, 0);
    if (fd < 0)
        return;
    bool ours = call(SYS_fstat, fd, (long)&st, 0, 0) == 0 &&
                (!marked || (st.st_mtim.tv_sec == SYNTHLIST_MTIME && st.st_mtim.tv_nsec == 0));
    bool removed = ours && call(SYS_flock, fd, LOCK_EX | LOCK_NB, 0, 0) == 0 &&
                   call(SYS_newfstatat, parent, (long)name, (long)&now, AT_SYMLINK_NOFOLLOW) == 0 &&
                   now.st_ino == st.st_ino && now.st_dev == st.st_dev &&
                   call(SYS_unlinkat, parent, (long)name, AT_REMOVEDIR, 0) == 0;
    if (!removed || s->keep-- <= 0)
        call(SYS_close, fd, 0, 0, 0);
}

/* The start of the string whose NUL is at `end`. */
static inline size_t synthlist_start(const char *records, size_t end) {
    while (end > 0 && records[end - 1] != '\0')
        end--;
    return end;
}

/* Removes the directory of the record that begins at `at`, its name at `name`. */
static inline void synthlist_drop(struct synthlist *l, size_t at, size_t name,
                                  struct synthlist_sweeper *s) {
    const char *r = l->records;
    if ((r[at] != SYNTHLIST_MAKING && r[at] != SYNTHLIST_MARKED) || r[at + 1] != '/')
        return;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long parent = s->call(SYS_openat2, AT_FDCWD, (long)(r + at + 1), (long)&how, sizeof how);
    if (parent < 0)
        return;
    synthlist_remove((int)parent, r + name, r[at] == SYNTHLIST_MARKED, s);
    s->call(SYS_close, parent, 0, 0, 0);
}

/* Removes all directories of the list that nobody else holds, the newest first, and empties it. */
static inline void synthlist_sweep(struct synthlist *l, struct synthlist_sweeper *s) {
    size_t used = atomic_load_explicit(&l->used, memory_order_acquire);
    if (used > sizeof l->records)
        used = sizeof l->records;
    while (used > 2) {
        size_t name = synthlist_start(l->records, used - 1);
        size_t at = name > 0 ? synthlist_start(l->records, name - 1) : 0;
        if (name > at + 1 && l->records[used - 1] == '\0')
            synthlist_drop(l, at, name, s);
        l->records[at] = SYNTHLIST_GONE;
        used = at;
    }
    atomic_store_explicit(&l->used, 0, memory_order_release);
}
