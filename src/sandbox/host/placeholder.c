#include "sandbox/host/placeholder.h"

#include "sandbox/policy/emptydir.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define PLACEHOLDER_TRIES 64
#define PLACEHOLDER_KEEP 64 /* directories left open */
#define PLACEHOLDER_PAUSE_NS                                                                       \
    50000 /* grows each time, while another sandbox removes the directory */

#ifdef EXEC_SERVER_STEPS
int step_wanted;
#endif

/* Appends a record; its state byte, or NULL if the list is full. */
static char *placeholder_record(struct placeholders *l, const char *dir, const char *name) {
    uint32_t used = atomic_load(&l->used);
    size_t n = strlen(dir), m = strlen(name);
    if (n + m + 3 > sizeof l->records - used)
        return NULL;
    char *at = l->records + used;
    *at = PLACEHOLDERS_NOTED;
    memcpy(at + 1, dir, n + 1);
    memcpy(at + n + 2, name, m + 1);
    atomic_store_explicit(&l->used, used + (uint32_t)(n + m + 3), memory_order_release);
    return at;
}

/* Makes the directory with the mark of its birth. */
static int placeholder_mkdir(int parent, const char *name) {
    mode_t mask = umask(0);
    int r = mkdirat(parent, name, PLACEHOLDERS_BIRTH);
    umask(mask);
    return r;
}

/* Replaces the mark of birth by the time, where the file system stores that. */
static void placeholder_mark(int fd) {
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = PLACEHOLDERS_MTIME}};
    mode_t mask = umask(0);
    umask(mask);
    bool timed = futimens(fd, t) == 0;
    step_reach(STEP_PLACE_TIMED);
    if (timed)
        (void)!fchmod(fd, 0755 & ~mask);
}

/* Whether this is the directory we have just made, not one that somebody put in its place. A file
 * system without modes gives every directory its parent's. */
static bool placeholder_is_fresh(int parent, const struct stat *st) {
    struct stat above;
    return placeholders_is_marked(st) ||
           (fstat(parent, &above) == 0 && above.st_mode == st->st_mode);
}

/* Opens and locks the directory; *fd stays open. 0; -EAGAIN: somebody is removing it; -EEXIST: it
 * is neither a placeholder nor empty; -ENOENT and the like: it is gone. */
static int placeholder_hold(int parent, const char *name, int *fd, struct stat *st) {
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    *fd = openat(parent, name, flags);
    if (*fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
    step_reach(STEP_PLACE_OPENED);
    /* Without locks nobody can lock it to remove it either. */
    if (flock(*fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return -EAGAIN;
    struct stat now;
    if (fstat(*fd, st) < 0)
        return -errno;
    if (!placeholders_is_marked(st) && !emptydir_fd(*fd))
        return -EEXIST;
    /* The name may have another owner, or none, by now. */
    if (fstatat(parent, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return now.st_ino == st->st_ino && now.st_dev == st->st_dev ? 0 : -EAGAIN;
}

/* We cannot make it; then neither can the command, unless it owns the directory and may change its
 * mode. */
static int placeholder_refused(int parent, int error) {
    struct stat st;
    bool theirs = fstat(parent, &st) == 0 && st.st_uid != geteuid();
    return error == EROFS || error == EPERM || (error == EACCES && theirs) ? 0 : -error;
}

/* One attempt; as placeholder_make(), and -EAGAIN. */
static int placeholder_try(int parent, const char *name, struct stat *st) {
    bool made = placeholder_mkdir(parent, name) == 0;
    if (!made && errno != EEXIST)
        return placeholder_refused(parent, errno);
    step_reach(STEP_PLACE_MADE);
    _cleanup_close_ int fd = -1;
    int r = placeholder_hold(parent, name, &fd, st);
    if (r < 0)
        return r == -ENOENT ? -EAGAIN : r;
    step_reach(STEP_PLACE_HELD);
    if (made && placeholder_is_fresh(parent, st))
        placeholder_mark(fd);
    (void)steal_fd(&fd); /* the lock ends with this process */
    return 1;
}

int placeholder_make(struct placeholders *list, const char *dir, const char *name,
                     struct stat *st) {
    _cleanup_close_ int parent =
        sys_openat2(AT_FDCWD, dir, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (parent < 0)
        return -errno;
    char *state = NULL;
    if (list != NULL && (state = placeholder_record(list, dir, name)) == NULL)
        return -ENOBUFS;
    step_reach(STEP_PLACE_NOTED);
    int r = -EAGAIN;
    for (int i = 0; r == -EAGAIN && i < PLACEHOLDER_TRIES; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)i * PLACEHOLDER_PAUSE_NS}, NULL);
        r = placeholder_try(parent, name, st);
    }
    if (r == 0 && state != NULL)
        *state = PLACEHOLDERS_GONE;
    return r;
}

static long placeholder_call(long n, long a, long b, long c, long d) {
    long r = syscall(n, a, b, c, d);
    return r < 0 ? -errno : r;
}

bool placeholder_sweep(struct placeholders *list) {
#ifdef EXEC_SERVER_STEPS
    if (step_wanted == STEP_SWEEP_LOCKED) /* supervisors share it, and may want another step */
        step_wanted = STEP_NONE;          /* the server does not stop */
#endif
    return placeholders_sweep(list, &(struct placeholders_sweeper){.call = placeholder_call}) == 0;
}

void placeholder_finish(struct placeholders *list) {
    placeholders_finish(
        list, &(struct placeholders_sweeper){.call = placeholder_call, .keep = PLACEHOLDER_KEEP});
}
