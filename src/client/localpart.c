#include "client/localpart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define LOCK_TRIES 100 /* the part may be renamed between the opening and the lock */

static int check_destination(int dir, const char *leaf) {
    struct stat st;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -ENXIO;
}

static bool is_regular(int fd, struct stat *st) {
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

/* Whether the name still leads to the file that is locked. */
static bool is_there(int dir, const char *name, const struct stat *locked) {
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == locked->st_dev &&
           st.st_ino == locked->st_ino;
}

/* Opens and locks the part without a token. -EBUSY if another copy has it. */
static int open_shared(struct localpart *p, mode_t mode) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        int fd = openat(p->dir, p->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        mode | 0600);
        if (fd < 0)
            return -errno;
        struct stat st;
        /* A second link would be written through. */
        if (!is_regular(fd, &st) || st.st_nlink > 1 || st.st_uid != geteuid() ||
            flock(fd, LOCK_EX | LOCK_NB) < 0) {
            close(fd);
            return -EBUSY;
        }
        if (is_there(p->dir, p->name, &st)) {
            p->fd = fd;
            p->noted = true;
            return 0;
        }
        close(fd);
    }
    return -EBUSY;
}

/* Opens a part with a new token. Its lock tells others that it has an owner. */
static int open_private(struct localpart *p, mode_t mode) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        char token[PARTNOTE_TOKEN_LEN + 1];
        partnote_token(token);
        partnote_part_name(str_of(p->leaf), token, p->name);
        int fd = openat(p->dir, p->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        mode | 0600);
        if (fd < 0)
            return -errno;
        struct stat st;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_regular(fd, &st) &&
            is_there(p->dir, p->name, &st)) {
            p->fd = fd;
            return 0;
        }
        close(fd);
    }
    return -EBUSY;
}

static int open_in_place(struct localpart *p, mode_t mode) {
    snprintf(p->name, sizeof(p->name), "%s", p->leaf);
    p->in_place = true;
    p->fd = openat(p->dir, p->name,
                   O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode | 0600);
    return p->fd < 0 ? -errno : 0;
}

/* Whether the note beside the part is that of the source. */
static bool has_note(const struct localpart *p, const struct partnote *want) {
    char name[PARTNOTE_NAME_MAX + 1], text[PARTNOTE_TEXT_MAX + 1];
    partnote_note_name(str_of(p->leaf), name);
    _cleanup_close_ int fd = openat(p->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || !is_regular(fd, &st))
        return false;
    ssize_t n = read(fd, text, sizeof(text));
    struct partnote note;
    return n > 0 && partnote_read(&note, (struct str){text, (size_t)n}) == 0 &&
           partnote_matches(&note, want);
}

/* Leaves what can be gone on with; the part is locked. */
static int settle(struct localpart *p, mode_t mode, const struct partnote *want, uint64_t *kept) {
    struct stat st;
    if (fstat(p->fd, &st) < 0)
        return -errno;
    *kept = (uint64_t)st.st_size;
    if (*kept > 0 && *kept <= want->bytes && has_note(p, want))
        return 0;
    *kept = 0;
    if (st.st_size > 0 && ftruncate(p->fd, 0) < 0)
        return -errno;
    /* It may be the part of another source, which more users could read. */
    if ((st.st_mode & 0777 & ~(mode | 0600U)) != 0 && fchmod(p->fd, 0600) < 0)
        return -errno;
    return 0;
}

int localpart_open(struct localpart *p, int dir, const char *leaf, mode_t mode,
                   const struct partnote *want, bool atomic, uint64_t *kept) {
    *p = LOCALPART_NONE;
    *kept = 0;
    mode &= 0777;
    if (strlen(leaf) > PARTNOTE_NAME_MAX)
        return -ENAMETOOLONG;
    int r = check_destination(dir, leaf);
    if (r < 0)
        return r;
    p->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (p->dir < 0)
        return -errno;
    snprintf(p->leaf, sizeof(p->leaf), "%s", leaf);
    partnote_part_name(str_of(leaf), "", p->name);
    if (!atomic)
        r = open_in_place(p, mode);
    else if (want != NULL)
        r = open_shared(p, mode);
    else
        r = -EBUSY;
    if (r == 0 && p->noted)
        r = settle(p, mode, want, kept);
    else if (r == -EBUSY || r == -ELOOP || r == -EACCES)
        r = open_private(p, mode);
    if (r < 0)
        localpart_close(p, true);
    return r;
}

int localpart_note(struct localpart *p, const struct partnote *note) {
    if (!p->noted)
        return 0;
    _cleanup_buf_ struct buf b = BUF_INIT(PARTNOTE_TEXT_MAX);
    int r = partnote_write(&b, note);
    if (r < 0)
        return r;
    char name[PARTNOTE_NAME_MAX + 1];
    partnote_note_name(str_of(p->leaf), name);
    /* Whatever has the name goes, so that no link is followed. */
    unlinkat(p->dir, name, 0);
    _cleanup_close_ int fd =
        openat(p->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, b.p, b.len);
    return n == (ssize_t)b.len ? 0 : n < 0 ? -errno : -ENOSPC;
}

int localpart_write(struct localpart *p, uint64_t offset, const void *data, size_t n) {
    for (const char *at = data; n > 0;) {
        ssize_t r = pwrite(p->fd, at, n, (off_t)offset);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -EIO;
        at += r;
        offset += (uint64_t)r;
        n -= (size_t)r;
    }
    return 0;
}

int localpart_read(struct localpart *p, uint64_t offset, void *data, size_t n) {
    for (char *at = data; n > 0;) {
        ssize_t r = pread(p->fd, at, n, (off_t)offset);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -EIO;
        at += r;
        offset += (uint64_t)r;
        n -= (size_t)r;
    }
    return 0;
}

static void remove_note(struct localpart *p) {
    char name[PARTNOTE_NAME_MAX + 1];
    partnote_note_name(str_of(p->leaf), name);
    if (p->noted)
        unlinkat(p->dir, name, 0);
}

/* Removes a part with a token if its owner is gone: nobody has locked it or written to it for long.
 * An upload to this directory by a server of this host has no lock. */
static void sweep_one(int dir, const char *name, time_t now) {
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && is_regular(fd, &st) && st.st_uid == geteuid() &&
        st.st_mtim.tv_sec + LOCALPART_STALE_S < now && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        is_there(dir, name, &st))
        unlinkat(dir, name, 0);
}

/* Removes what dead copies to this name have left. */
static void sweep(const struct localpart *p) {
    char token[PARTNOTE_TOKEN_LEN + 1];
    struct stat st; /* the rename has just set st_ctim: the clock of the file system */
    if (fstat(p->fd, &st) < 0)
        return;
    int fd = openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        util_close_fd(&fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        if (partnote_part_token(str_of(p->leaf), entry->d_name, token))
            sweep_one(p->dir, entry->d_name, st.st_ctim.tv_sec);
    }
    closedir(d);
}

int localpart_finish(struct localpart *p, uint64_t size, const struct localtree_traits *traits,
                     bool sync) {
    struct stat st;
    if (fstat(p->fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size != size && ftruncate(p->fd, (off_t)size) < 0)
        return -errno;
    int r = localtree_set(p->fd, traits);
    if (r < 0)
        return r;
    if (sync && fsync(p->fd) < 0)
        return -errno;
    if (!is_there(p->dir, p->name, &st))
        return -ESTALE;
    if (!p->in_place && renameat(p->dir, p->name, p->dir, p->leaf) < 0)
        return -errno;
    if (sync) {
        _cleanup_close_ int dir = openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || fsync(dir) < 0)
            return -errno;
    }
    remove_note(p);
    if (p->noted && size >= LOCALPART_SWEEP_MIN)
        sweep(p);
    util_close_fd(&p->fd);
    util_close_fd(&p->dir);
    return 0;
}

void localpart_close(struct localpart *p, bool keep) {
    if (p->fd >= 0 && !p->in_place && !(keep && p->noted)) {
        struct stat st;
        if (fstat(p->fd, &st) == 0 && is_there(p->dir, p->name, &st)) {
            unlinkat(p->dir, p->name, 0);
            remove_note(p);
        }
    }
    util_close_fd(&p->fd);
    util_close_fd(&p->dir);
}
