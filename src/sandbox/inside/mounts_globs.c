#include "sandbox/inside/mounts_internal.h"

#include "sandbox/policy/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

/*
 * While we look for matches, another command may move directories from where we have not been to
 * where we have been already. So we watch each directory before we read it. A watched directory has
 * been read, or will be: its matches are masked, and a mask stays on its file wherever the
 * directory goes. A directory that arrives unwatched is the danger: if it was moved in, we look at
 * everything again; if it is new, only at that one.
 *
 * A command can use up the watches of its user. Without them two looks in a row must find the very
 * same directories, all unchanged for longer than the file system's clock can hide.
 */

#define LOOK_EVENTS (IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_CREATE | IN_ONLYDIR)
#define LOOK_LEFT 16 /* directories on the move at once */
/* In an offset: the patterns' own directory, of whose moves only IN_MOVE_SELF tells. */
#define LOOK_ROOT (SIZE_MAX / 2 + 1)
#define LOOK_ROUNDS 400
#define LOOK_ROUNDS_MIN 3          /* however long they take */
#define LOOK_TICK_NS 20000000      /* two ticks of the slowest clock that stamps files */
#define LOOK_NS 5000000000         /* for all rounds */
#define LOOK_PATHS_MAX (32u << 20) /* bytes: paths of watched directories */

struct look {
    struct mounts *m;
    const struct access_glob *glob; /* the current one */
    size_t matches;                 /* its matches */
    dev_t masks;                    /* device of the masks */
    int watch;                      /* inotify; -1: none */
    bool blind;                     /* we cannot watch everything */
    bool again;                     /* something changed while we looked */
    bool fresh;                     /* this round masked something */
    uint64_t print;                 /* hash of all directories of this round and their times */
    bool loose;                     /* a watched directory may be outside all watched ones */
    uint32_t left[LOOK_LEFT];       /* cookies of directories that left a watched one and */
    size_t left_count;              /* have not arrived in another */
    struct buf paths, offsets;      /* by watch: the offset (size_t) of its path */
};

/* -- matches -- */

/* Whether an open file has a visible name in the view: 1 or 0, or -errno with the fault noted. */
static int look_is_seen(struct look *l, int fd) {
    struct stat st;
    char number[16], path[LOCATE_PATH_MAX];
    snprintf(number, sizeof number, "%d", fd);
    ssize_t n = readlinkat(l->m->fds, number, path, sizeof path - 1);
    if (n < 0 || fstat(fd, &st) < 0)
        return fault_os(l->m->f, FAULT_GLOB, errno, "target of a link");
    path[n] = '\0';
    return n > 1 && path[0] == '/' && st.st_nlink > 0 && !locate_inside(path, "/proc") &&
           !access_may_is_hidden(l->m->l->access, path);
}

/*
 * Opens the file that a match stands for. A link stands for its target, as seen from the directory
 * where we found it, wherever that is by now. *fd is -1 if the file is gone or the link dangles. 0,
 * or -errno with the fault noted.
 */
static int look_open(struct look *l, const struct glob_run_match *f, int *fd) {
    *fd = openat(f->dir, f->name, O_PATH | O_CLOEXEC | (f->is_link ? 0 : O_NOFOLLOW));
    if (*fd < 0 && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
        return fault_os(l->m->f, FAULT_GLOB, errno, "%s", f->path);
    if (*fd < 0) /* the directory could be searched a moment ago */
        l->again |= errno == EACCES && !f->is_link;
    int seen = *fd >= 0 && f->is_link ? look_is_seen(l, *fd) : 1;
    if (seen <= 0)
        util_close_fd(fd);
    return MIN(seen, 0);
}

/* A glob_found_fn. */
static int look_found(void *arg, const struct glob_run_match *f) {
    struct look *l = arg;
    if (++l->matches > GLOB_MATCHES_MAX)
        return fault_text(l->m->f, FAULT_GLOB,
                          "unreadable glob expansion for %s matched more than %d paths",
                          l->glob->dir, GLOB_MATCHES_MAX);
    if (!f->is_link && access_may_is_hidden(l->m->l->access, f->path))
        return 0;
    _cleanup_close_ int place = -1;
    struct stat st;
    int r = look_open(l, f, &place);
    if (place < 0)
        return r;
    if (fstat(place, &st) < 0)
        return fault_os(l->m->f, FAULT_GLOB, errno, "%s", f->path);
    if (S_ISLNK(st.st_mode)) {
        l->again = true;
        return 0;
    }
    if (st.st_dev != l->masks) {
        l->fresh = true;
        r = mounts_mask(l->m, f->path, S_ISDIR(st.st_mode) ? "d" : "f", place);
    }
    bool fold = l->glob->set.fold && !f->is_link;
    return r == 0 && fold ? mounts_check_case(l->m, f->dir, f->name, f->path) : r;
}

/* -- directories -- */

/* Remembers a watch's path. 0 or -errno. */
static int look_remember(struct look *l, int wd, const char *path) {
    size_t end = ((size_t)wd + 1) * sizeof(size_t), at = l->paths.len, old;
    int r = l->offsets.len < end ? buf_reserve(&l->offsets, end - l->offsets.len) : 0;
    if (r == 0)
        r = buf_put(&l->paths, path, strlen(path) + 1);
    if (r < 0)
        return r;
    if (l->offsets.len < end) {
        memset(l->offsets.p + l->offsets.len, 0xff, end - l->offsets.len);
        l->offsets.len = end;
    }
    memcpy(&old, l->offsets.p + (size_t)wd * sizeof old, sizeof old);
    if (strcmp(path, l->glob->dir) == 0 || (old != SIZE_MAX && (old & LOOK_ROOT)))
        at |= LOOK_ROOT;
    memcpy(l->offsets.p + (size_t)wd * sizeof at, &at, sizeof at);
    return 0;
}

/* Mixes a number into the hash (FNV-1a, by words). */
static void look_mix(struct look *l, uint64_t v) {
    l->print = (l->print ^ v) * 0x100000001b3u;
}

/* Adds a directory and its time of change to the hash. */
static void look_note(struct look *l, int fd) {
    struct stat st;
    struct timespec now;
    if (fstat(fd, &st) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0) {
        l->again = true;
        return;
    }
    int64_t age =
        (int64_t)(now.tv_sec - st.st_ctim.tv_sec) * 1000000000 + now.tv_nsec - st.st_ctim.tv_nsec;
    l->again |= l->blind && age < LOOK_TICK_NS;
    look_mix(l, (uint64_t)st.st_dev);
    look_mix(l, (uint64_t)st.st_ino);
    look_mix(l, (uint64_t)st.st_ctim.tv_sec);
    look_mix(l, (uint64_t)st.st_ctim.tv_nsec);
}

/* A glob_enter_fn. Watches ".": a path might lead to another directory by now. */
static int look_enter(void *arg, int fd, const char *path) {
    struct look *l = arg;
    if (strcmp(path, "/proc") == 0)
        return 1; /* every sandbox gets a fresh one */
    look_note(l, fd);
    if (l->watch < 0)
        return 0;
    if (fchdir(fd) < 0) { /* it could be searched a moment ago */
        l->again = true;
        return 0;
    }
    int wd = inotify_add_watch(l->watch, ".", LOOK_EVENTS);
    if (wd < 0 || look_remember(l, wd, path) < 0)
        l->blind = true;
    return 0;
}

/* The offset of a watch's path; SIZE_MAX: none. */
static size_t look_offset(const struct look *l, int wd) {
    size_t at = SIZE_MAX;
    if (wd >= 0 && ((size_t)wd + 1) * sizeof at <= l->offsets.len)
        memcpy(&at, l->offsets.p + (size_t)wd * sizeof at, sizeof at);
    return at;
}

static const char *look_path(const struct look *l, int wd) {
    size_t at = look_offset(l, wd) & ~LOOK_ROOT;
    return at < l->paths.len ? l->paths.p + at : NULL;
}

/* Looks at everything, or only at the directory `path`. 0, or -errno with the fault noted. */
static int look_at(struct look *l, const char *path) {
    size_t budget = GLOB_ENTRIES_MAX;
    int r = 0;
    const struct access *x = l->m->l->access;
    for (size_t i = 0; r == 0 && i < x->glob_count; i++) {
        const struct access_glob *g = l->glob = &x->globs[i];
        const char *below = NULL;
        if (path != NULL && !locate_inside(path, g->dir))
            continue;
        if (path != NULL)
            below = path + (g->dir[1] == '\0' ? 1 : strlen(g->dir) + 1);
        l->matches = 0;
        const struct glob_visit v = {g->max_depth, &budget, look_found, look_enter, l};
        r = glob_expand(&g->set, g->dir, below, &v);
        if (r < 0)
            fault_os(l->m->f, FAULT_GLOB, -r, "%s", g->dir); /* unless a fault is noted already */
    }
    return r;
}

/* -- events -- */

/* Looks at a new directory inside a watched one. 0 or -errno. */
static int look_at_new(struct look *l, const struct inotify_event *e) {
    char path[LOCATE_PATH_MAX];
    const char *dir = look_path(l, e->wd);
    if (dir == NULL || strlen(dir) + 1 + strlen(e->name) >= sizeof path) {
        l->again = true;
        return 0;
    }
    char *p = stpcpy(path, dir[1] == '\0' ? "" : dir);
    *p++ = '/';
    strcpy(p, e->name);
    return look_at(l, path);
}

/* Tracks directories that left a watched one and have not arrived in another. */
static void look_leaves(struct look *l, const struct inotify_event *e) {
    if (!(e->mask & (IN_MOVED_FROM | IN_MOVED_TO)))
        return;
    for (size_t i = 0; i < l->left_count; i++) {
        if ((e->mask & IN_MOVED_TO) && l->left[i] == e->cookie)
            l->left[i] = l->left[--l->left_count];
    }
    if ((e->mask & IN_MOVED_FROM) && l->left_count < LOOK_LEFT)
        l->left[l->left_count++] = e->cookie;
    else
        l->loose |= (e->mask & IN_MOVED_FROM) != 0;
}

/*
 * Handles pending events. The kernel reports a moved directory where it left, where it arrived, and
 * then in the directory itself if we watch that: so we know it. But if a watched directory may be
 * elsewhere, its own event could be mistaken for the arrival's. Moves also make the watches' paths
 * stale; then only a look at everything finds what is new. 0 or -errno.
 */
static int look_events(struct look *l) {
    char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool came = false, moved = false;
    int r = 0;
    for (ssize_t n; r == 0 && l->watch >= 0 && (n = read(l->watch, buffer, sizeof buffer)) > 0;) {
        for (ssize_t at = 0; r == 0 && at < n;) {
            const struct inotify_event *e = (const void *)(buffer + at);
            at += (ssize_t)(sizeof *e + e->len);
            bool self = (e->mask & IN_MOVE_SELF) != 0, full = (e->mask & IN_Q_OVERFLOW) != 0;
            if (!self && !full && !(e->mask & IN_ISDIR))
                continue;
            size_t known = look_offset(l, e->wd);
            look_leaves(l, e);
            l->loose |= full || (self && known != SIZE_MAX && (known & LOOK_ROOT));
            l->again |= full || (came && (!self || l->loose || l->left_count > 0));
            came = (e->mask & IN_MOVED_TO) != 0;
            moved |= came || self;
            if (!(e->mask & IN_CREATE))
                continue;
            l->again |= moved;
            if (!l->again)
                r = look_at_new(l, e);
        }
    }
    l->again |= came;
    return r;
}

/* Forgets all watches, and with them the watched directories that are elsewhere. */
static void look_reset(struct look *l) {
    util_close_fd(&l->watch);
    l->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    l->blind = l->watch < 0;
    l->loose = false;
    l->left_count = 0;
    l->paths.len = l->offsets.len = 0;
}

static int64_t look_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Looks at everything once; *calm: we cannot have missed anything. 0 or -errno. */
static int look_round(struct look *l, bool *calm) {
    uint64_t last = l->print;
    size_t left = l->left_count;
    l->again = l->fresh = false;
    l->print = 0xcbf29ce484222325u;
    int r = look_at(l, NULL);
    uint64_t print = l->print;
    if (r == 0)
        r = look_events(l);
    l->again |= l->left_count > left; /* they may be about to arrive */
    l->print = print;                 /* without the looks that events caused */
    *calm = !l->again && (!l->blind || (!l->fresh && print == last));
    if (l->blind && !*calm)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_TICK_NS / 2}, NULL);
    if (!*calm && !l->blind && (l->loose || l->left_count > 0))
        look_reset(l);
    return r;
}

int mounts_globs(struct mounts *m) {
    struct stat st;
    if (fstat(m->masks, &st) < 0)
        return fault_os(m->f, FAULT_GLOB, errno, "masks");
    struct look l = {.m = m,
                     .masks = st.st_dev,
                     .paths = BUF_INIT(LOOK_PATHS_MAX),
                     .offsets = BUF_INIT(LOOK_PATHS_MAX),
                     .watch = -1};
    look_reset(&l);
    int64_t end = look_now() + LOOK_NS;
    int r = 0;
    bool calm = false;
    for (int i = 0; r == 0 && !calm; i++) {
        if (i == LOOK_ROUNDS || (i >= LOOK_ROUNDS_MIN && look_now() > end))
            r = fault_text(m->f, FAULT_GLOB,
                           "directories that denied patterns apply to kept changing while the "
                           "sandbox was set up");
        if (r == 0)
            r = look_round(&l, &calm);
    }
    util_close_fd(&l.watch);
    buf_fini(&l.paths);
    buf_fini(&l.offsets);
    if (r == 0 && chdir("/") < 0)
        r = fault_os(m->f, FAULT_ROOT, errno, "/");
    return r;
}
