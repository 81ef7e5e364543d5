#include "sandbox/inside/mounts.h"

#include "sandbox/policy/casefold.h"
#include "sandbox/inside/mounts_internal.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>

int mounts_make_place(int dir, const char *path, bool is_dir, mode_t mode) {
    char text[LOCATE_PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof text)
        return -ENAMETOOLONG;
    memcpy(text, path, n + 1);
    for (char *p = text; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        if (mkdirat(dir, text, mode) < 0 && errno != EEXIST)
            return -errno;
    }
    int r = is_dir ? mkdirat(dir, text, mode) : mknodat(dir, text, S_IFREG | 0444, 0);
    return r < 0 && errno != EEXIST ? -errno : 0;
}

/* Opens a path without following links: on the host (or what is left of it), or in the view. */
static int mounts_open(int dir, const char *path) {
    return sys_openat2(dir, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
}

/* Whether fd is the step's file. A link never is. */
static bool mounts_is(int fd, const struct layout_step *s) {
    struct stat st;
    if (fstat(fd, &st) < 0 || S_ISLNK(st.st_mode))
        return false;
    return !s->known || (st.st_dev == s->dev && st.st_ino == s->ino);
}

static int mounts_changed(struct mounts *m, const struct layout_step *s) {
    return fault_text(m->f, FAULT_MOUNT, "%s changed while the sandbox was set up", s->path);
}

/* Copies the step's mount as it is on the host. */
static int mounts_copy(struct mounts *m, const struct layout_step *s) {
    _cleanup_close_ int fd = mounts_open(AT_FDCWD, s->path);
    if (fd < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path);
    if (!mounts_is(fd, s))
        return mounts_changed(m, s);
    int tree = sys_clone_tree(fd, "", 1);
    return tree < 0 ? fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path) : tree;
}

/* -- the steps -- */

/*
 * Whether the step's place may be gone by now, or hold another file. A helper holds no place, so
 * that another sandbox may remove its empty directory meanwhile; but a helper asks the policy about
 * names, which are read-only whatever they lead to.
 */
static bool mounts_may_differ(const struct mounts *m, const struct layout_step *s) {
    return m->q->mode == LAUNCH_HELPER && s->kind == LAYOUT_READ && !s->ours;
}

/* Notes why a step failed; 0 if it may. */
static int mounts_step_failed(struct mounts *m, const struct layout_step *s, int error) {
    if (error == ENOENT && mounts_may_differ(m, s))
        return 0;
    return fault_os(m->f, FAULT_MOUNT, error, "%s", s->path);
}

/* Opens the step's place in the view; -ENOENT without a fault if it is missing. */
static int mounts_place(struct mounts *m, const struct layout_step *s) {
    const char *path = mounts_in_view(s->path);
    int fd = mounts_open(m->root, path);
    if (fd < 0 && errno == ENOENT && s->ours && s->kind != LAYOUT_DENY) {
        int r = mounts_make_place(m->root, path, s->is_dir, 0755);
        if (r < 0)
            return fault_os(m->f, FAULT_MOUNT, -r, "place of %s", s->path);
        fd = mounts_open(m->root, path);
    }
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path);
    struct layout_step any = {.known = false};
    if (mounts_is(fd, s->ours || mounts_may_differ(m, s) ? &any : s))
        return fd;
    close(fd);
    return mounts_changed(m, s);
}

static int mounts_attach(struct mounts *m, const struct layout_step *s, int tree, int place) {
    return sys_attach(tree, place, "") < 0 ? mounts_step_failed(m, s, errno) : 0;
}

/* Lays a read-only (or pinned) copy over the original; takes it from the host if the view lacks it.
 * */
static int mounts_copy_over(struct mounts *m, const struct layout_step *s, int place) {
    _cleanup_close_ int tree = s->ours ? mounts_copy(m, s) : sys_clone_tree(place, "", 1);
    if (tree < 0)
        return mounts_step_failed(m, s, errno);
    if (s->kind == LAYOUT_READ && sys_mount_setattr(tree, "", 1, MOUNT_ATTR_RDONLY, 0, 0) < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path);
    return mounts_attach(m, s, tree, place);
}

int mounts_mask(struct mounts *m, const char *path, const char *name, int place) {
    _cleanup_close_ int mask = sys_clone_tree(m->masks, name, 0);
    if (mask < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "mask of %s", path);
    return sys_attach(mask, place, "") < 0 ? fault_os(m->f, FAULT_MOUNT, errno, "%s", path) : 0;
}

/* Denies a directory but lets paths lead through it to the writable places below. Directories on
 * the way there can be listed: they contain nothing else. */
static int mounts_deny_but(struct mounts *m, const struct layout_step *s, int place) {
    static const char *const options[] = {"mode", "0111", NULL};
    _cleanup_close_ int mask = sys_new_mount("tmpfs", options, MOUNTS_EMPTY);
    if (mask < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "mask of %s", s->path);
    size_t skip = strlen(s->path) + 1;
    for (size_t i = 0; i < s->reopened_count; i++) {
        const struct layout_step *w = s->reopened[i];
        int r = mounts_make_place(mask, w->path + skip, w->is_dir, 0555);
        if (r < 0)
            return fault_os(m->f, FAULT_MOUNT, -r, "place of %s", w->path);
    }
    if (sys_mount_setattr(mask, "", 0, MOUNT_ATTR_RDONLY, 0, 0) < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "mask of %s", s->path);
    return mounts_attach(m, s, mask, place);
}

static int mounts_deny(struct mounts *m, const struct layout_step *s, int place) {
    struct stat st;
    if (s->reopened_count > 0)
        return mounts_deny_but(m, s, place);
    if (fstat(place, &st) < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path);
    return mounts_mask(m, s->path, S_ISDIR(st.st_mode) ? "d" : "f", place);
}

/* The id of the mount at a name; 0: none, or no such name. */
static uint64_t mounts_id(int dir, const char *name) {
    struct statx st;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    return statx(dir, name, flags, STATX_MNT_ID, &st) == 0 ? st.stx_mnt_id : 0;
}

int mounts_check_case(struct mounts *m, int dir, const char *name, const char *path) {
    char other[CASEFOLD_NAME_MAX + 1];
    uint64_t spelled = casefold_swap(name, other) ? mounts_id(dir, other) : 0;
    if (spelled == 0 || spelled == mounts_id(dir, name))
        return 0;
    return fault_text(m->f, FAULT_PROTECT,
                      "%s cannot be protected: its file system ignores case, but not for mounts, "
                      "so that other spellings of the name lead past them",
                      path);
}

static int mounts_check_step(struct mounts *m, const struct layout_step *s) {
    char dir[LOCATE_PATH_MAX];
    const char *path = mounts_in_view(s->path), *slash = strrchr(path, '/');
    if (!s->fold || s->ours)
        return 0;
    size_t n = slash != NULL ? (size_t)(slash - path) : 0;
    memcpy(dir, n > 0 ? path : ".", MAX(n, (size_t)1));
    dir[MAX(n, (size_t)1)] = '\0';
    _cleanup_close_ int fd = mounts_open(m->root, dir);
    if (fd < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "%s", s->path);
    return mounts_check_case(m, fd, slash != NULL ? slash + 1 : path, s->path);
}

static int mounts_step(struct mounts *m, size_t i) {
    const struct layout_step *s = &m->l->steps[i];
    _cleanup_close_ int place = mounts_place(m, s);
    if (place == -ENOENT && ((s->kind == LAYOUT_DENY && s->ours) || mounts_may_differ(m, s)))
        return 0; /* not in this view */
    if (place == -ENOENT)
        return mounts_changed(m, s);
    if (place < 0)
        return place;
    switch (s->kind) {
    case LAYOUT_WRITE: return mounts_attach(m, s, m->writable[i], place);
    case LAYOUT_DENY: return mounts_deny(m, s, place);
    case LAYOUT_EMPTY: return mounts_mask(m, s->path, "e", place);
    case LAYOUT_READ:
    case LAYOUT_PIN: break;
    }
    return mounts_copy_over(m, s, place);
}

/* -- the root -- */

/* Copies everything that stays writable, while it is. */
static int mounts_take_writable(struct mounts *m) {
    m->writable = calloc(m->l->step_count + 1, sizeof *m->writable);
    if (m->writable == NULL)
        return fault_os(m->f, FAULT_MOUNT, ENOMEM, "writable roots");
    for (size_t i = 0; i < m->l->step_count; i++) {
        if (m->l->steps[i].kind != LAYOUT_WRITE)
            continue;
        m->writable[i] = mounts_copy(m, &m->l->steps[i]);
        if (m->writable[i] < 0)
            return m->writable[i];
    }
    return 0;
}

/* Makes the host's tree read-only: all of it, or only the kernel's file systems. */
static int mounts_host_root(struct mounts *m) {
    const char *path = m->l->root_write ? "/sys" : "/";
    if (sys_mount_setattr(AT_FDCWD, path, 1, MOUNT_ATTR_RDONLY, 0, 0) < 0 &&
        !(m->l->root_write && (errno == EINVAL || errno == ENOENT))) /* no sysfs there */
        return fault_os(m->f, FAULT_MOUNT, errno, "%s read-only", path);
    m->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return m->root < 0 ? fault_os(m->f, FAULT_ROOT, errno, "/") : 0;
}

/* Lays a new root over the old one, to which absolute paths still lead. */
static int mounts_new_root(struct mounts *m) {
    static const char *const options[] = {"mode", "0755", NULL};
    m->root = sys_new_mount("tmpfs", options, MOUNTS_SAFE);
    if (m->root < 0)
        return fault_os(m->f, FAULT_ROOT, errno, "tmpfs");
    if (mkdirat(m->root, "dev", 0755) < 0 || mkdirat(m->root, "proc", 0755) < 0 ||
        (m->l->private_tmp && mkdirat(m->root, "tmp", 0755) < 0))
        return fault_os(m->f, FAULT_ROOT, errno, "directories");
    if (sys_attach(m->root, AT_FDCWD, "/") < 0)
        return fault_os(m->f, FAULT_ROOT, errno, "new root");
    return 0;
}

static int mounts_links(struct mounts *m) {
    for (size_t i = 0; i < m->l->link_count; i++) {
        const struct locate_link *l = &m->l->links[i];
        const char *place = mounts_in_view(l->place);
        const char *slash = strrchr(place, '/');
        char dir[LOCATE_PATH_MAX];
        if (slash != NULL) {
            memcpy(dir, place, (size_t)(slash - place));
            dir[slash - place] = '\0';
        }
        int r = slash != NULL ? mounts_make_place(m->root, dir, true, 0755) : 0;
        if (r == 0 && symlinkat(l->text, m->root, place) < 0 && errno != EEXIST)
            r = -errno;
        if (r < 0)
            return fault_os(m->f, FAULT_ROOT, -r, "link %s", l->place);
    }
    return 0;
}

/* Makes the files and directories that hide others; /dev covers them later. */
static int mounts_masks(struct mounts *m) {
    static const char *const options[] = {"mode", "0", NULL};
    m->masks = sys_new_mount("tmpfs", options, MOUNTS_EMPTY);
    if (m->masks < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "masks");
    if (mkdirat(m->masks, "d", 0) < 0 || mkdirat(m->masks, "e", 0555) < 0 ||
        mknodat(m->masks, "f", S_IFREG, 0) < 0 ||
        sys_mount_setattr(m->masks, "", 0, MOUNT_ATTR_RDONLY, 0, 0) < 0 ||
        sys_attach(m->masks, m->root, "dev") < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "masks");
    return 0;
}

static int mounts_private_tmp(struct mounts *m) {
    static const char *const options[] = {"mode", "1777", NULL};
    _cleanup_close_ int tmp = sys_new_mount("tmpfs", options, MOUNTS_SAFE);
    if (tmp < 0 || sys_attach(tmp, m->root, "tmp") < 0)
        return fault_os(m->f, FAULT_MOUNT, errno, "/tmp");
    return 0;
}

static int mounts_enter(struct mounts *m) {
    if (!m->l->artificial)
        return chdir("/") < 0 ? fault_os(m->f, FAULT_ROOT, errno, "/") : 0;
    if (sys_mount_setattr(m->root, "", 0, MOUNT_ATTR_RDONLY, 0, 0) < 0)
        return fault_os(m->f, FAULT_ROOT, errno, "read-only");
    if (fchdir(m->root) < 0 || sys_pivot_root(".", ".") < 0)
        return fault_os(m->f, FAULT_ROOT, errno, "pivot_root");
    if (sys_umount2(".", SYS_MNT_DETACH) < 0 || chdir("/") < 0)
        return fault_os(m->f, FAULT_ROOT, errno, "old root");
    return 0;
}

static int mounts_all(struct mounts *m, int host_dev) {
    int r = m->l->artificial ? mounts_new_root(m) : mounts_host_root(m);
    if (r == 0)
        r = mounts_masks(m);
    if (r == 0 && host_dev >= 0 && sys_attach(host_dev, m->root, "dev") < 0)
        r = fault_os(m->f, FAULT_DEV, errno, "the host's");
    if (r == 0)
        r = mounts_system_dev(m);
    if (r == 0 && m->l->private_tmp)
        r = mounts_private_tmp(m);
    if (r == 0 && m->l->artificial)
        r = mounts_links(m);
    for (size_t i = 0; r == 0 && i < m->l->step_count; i++) {
        r = mounts_step(m, i);
        if (r == 0 && m->q->mode == LAUNCH_COMMAND) /* a helper compares spellings itself */
            r = mounts_check_step(m, &m->l->steps[i]);
    }
    if (r == 0)
        r = mounts_system_proc(m);
    if (r == 0)
        r = mounts_enter(m);
    bool globs = m->q->mode == LAUNCH_COMMAND && m->l->access->glob_count > 0;
    return r == 0 && globs ? mounts_globs(m) : r;
}

int mounts_build(const struct launch_request *q, const struct layout *l, struct fault *f) {
    struct mounts m = {.q = q, .l = l, .f = f, .root = -1, .masks = -1, .console = -1, .fds = -1};
    mode_t mask = umask(0);
    int r = mounts_system_take_devices(&m);
    /* From now on mounts here do not reach the host, nor the other way round. */
    if (r == 0 && sys_mount_setattr(AT_FDCWD, "/", 1, MOUNTS_SAFE, 0, MOUNTS_PRIVATE) < 0)
        r = fault_os(f, FAULT_MOUNT, errno, "private mounts");
    _cleanup_close_ int host_dev = -1;
    if (r == 0 && l->host_dev && (host_dev = sys_clone_tree(AT_FDCWD, "/dev", 1)) < 0)
        r = fault_os(f, FAULT_DEV, errno, "the host's");
    if (r == 0)
        r = mounts_take_writable(&m);
    if (r == 0)
        r = mounts_all(&m, host_dev);
    umask(mask);
    return r; /* the process, or its next step, closes the descriptors and frees the memory */
}
