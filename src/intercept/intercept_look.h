#pragma once
/*
 * Finds the file that an exec would start, as the caller sees it: its root, its working directory,
 * its /proc/self. Follows symbolic links and `#!` lines.
 */

#include "base/arena.h"
#include "base/util.h"
#include "intercept/intercept.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#define INTERCEPT_LINKS_MAX 40 /* symbolic links of one path; the kernel's limit */
#define INTERCEPT_KNOWN 64     /* files known to be programs, by inode */
#define INTERCEPT_LINE_MAX 256 /* bytes of a `#!` line; the kernel's limit */

/* A file that is known to be a program, not a script. Changing it changes the time. */
struct intercept_known {
    uint64_t dev, ino;
    struct timespec changed;
};

/* What to look for, and what was found. Strings come from the arena. */
struct intercept_look {
    pid_t tid, tgid;
    struct arena *arena;
    struct intercept_known *known; /* INTERCEPT_KNOWN of them, or NULL */
    const char *path;
    int dirfd;     /* the caller's descriptor that a relative path is relative to, or AT_FDCWD */
    bool at_fd;    /* the file is the caller's descriptor `dirfd` itself */
    bool nofollow; /* of a symbolic link */

    const char *file, *memfd;
    uint64_t dev, ino;
    bool unreadable, text; /* text: neither a program of the kernel's nor a script */
    struct intercept_interpreter interpreters[INTERCEPT_SCRIPTS_MAX];
    size_t interpreter_count;
};

/*
 * Looks. `cached`: never waits for a disk or a network; -EAGAIN when it would have to. 0, or the
 * -errno that the exec fails with.
 */
MUST_CHECK int intercept_look(struct intercept_look *l, bool cached);

/*
 * Takes a `#!` line of `n` bytes apart, as the kernel does: changes it, and points into it. *arg is
 * NULL if there is none. False: there is no interpreter, or its name may be cut.
 */
bool intercept_look_line(char line[INTERCEPT_LINE_MAX + 1], size_t n, char **name, char **arg);

/* Device and inode of a process's program. 0 or -errno. */
MUST_CHECK int intercept_look_program(pid_t pid, uint64_t *dev, uint64_t *ino);
