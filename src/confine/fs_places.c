#include "confine/fs_places.h"

#include "fs/fs.h"
#include "sandbox/policy/emptydir.h"
#include "sandbox/policy/gitfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>

/* The protected names of a writable root, and the directory that its .git file names. */
#define PLACES_OF_ROOT (PLAN_PROTECTED + 1)

struct place {
    uint64_t dev, ino, mount;
    int64_t birth_s, change_s; /* change_s: only of links and files */
    uint32_t birth_ns, change_ns;
    uint32_t type;
    int32_t error; /* errno; 0: it exists */
};

struct fs_places {
    int mounts; /* mountinfo, owned; -1: none */
    size_t count;
    struct place list[];
};

static size_t places_count(const struct plan *p) {
    size_t n = 1 + (p->minimal && !p->full_read ? PLAN_PLATFORM : 0);
    for (size_t i = 0; i < p->entry_count; i++)
        n += p->entries[i].access == PLAN_WRITE ? 1 + PLACES_OF_ROOT : 1;
    return n;
}

static struct place *places_add(struct fs_places *p, const char *path, bool follow) {
    struct statx st;
    struct place *at = &p->list[p->count++];
    at->error = -fs_statx(AT_FDCWD, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, &st);
    if (at->error != 0)
        return at;
    at->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    at->ino = st.stx_ino;
    at->mount = st.stx_mask & STATX_MNT_ID_UNIQUE ? st.stx_mnt_id : 0;
    at->type = st.stx_mode & S_IFMT;
    if (st.stx_mask & STATX_BTIME) {
        at->birth_s = st.stx_btime.tv_sec;
        at->birth_ns = st.stx_btime.tv_nsec;
    }
    if (!follow && at->type != S_IFDIR) { /* a .git file may name another directory now */
        at->change_s = st.stx_ctime.tv_sec;
        at->change_ns = st.stx_ctime.tv_nsec;
    }
    return at;
}

/*
 * Whether a protected name is an empty directory. It counts as missing: sandboxes make and remove
 * such directories as mount points, and a helper refuses to change the name either way.
 */
static bool places_is_empty(const char *path, const struct place *at) {
    struct statx st;
    if (at->type != S_IFDIR)
        return false;
    int r = fs_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st);
    return r == -ENOENT || (r == 0 && st.stx_nlink <= 2 && emptydir_path(str_of(path)));
}

static void places_add_root(struct fs_places *p, const char *root) {
    char path[PATH_MAX + 16], git[GITFILE_PATH_MAX] = "";
    for (size_t k = 0; k < PLAN_PROTECTED; k++) {
        int n = snprintf(path, sizeof path, "%s/%s", strcmp(root, "/") == 0 ? "" : root,
                         plan_protected[k]);
        bool fits = n < (int)sizeof path;
        struct place *at = places_add(p, fits ? path : "", false);
        if (places_is_empty(path, at))
            *at = (struct place){.error = ENOENT};
        else if (at->type == S_IFREG && strcmp(plan_protected[k], ".git") == 0)
            (void)!gitfile_read(root, path, git);
    }
    places_add(p, git, true);
}

struct fs_places *fs_places_look(const struct plan *p, bool first) {
    char daemon[PLAN_DAEMON_MAX];
    struct fs_places *out = calloc(1, sizeof *out + places_count(p) * sizeof out->list[0]);
    if (out == NULL)
        return NULL;
    out->mounts = first ? open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < p->entry_count; i++) {
        places_add(out, p->entries[i].path, true);
        if (p->entries[i].access == PLAN_WRITE)
            places_add_root(out, p->entries[i].path);
    }
    for (size_t i = 0; p->minimal && !p->full_read && i < PLAN_PLATFORM; i++)
        places_add(out, plan_platform[i], true);
    plan_daemon(daemon);
    places_add(out, daemon, false);
    return out;
}

void fs_places_free(struct fs_places *p) {
    if (p == NULL)
        return;
    util_close_fd(&p->mounts);
    free(p);
}

bool fs_places_same(const struct fs_places *first, const struct fs_places *now) {
    struct pollfd mounts = {.fd = first->mounts, .events = POLLPRI};
    if (first->mounts >= 0 && poll(&mounts, 1, 0) != 0)
        return false;
    return first->count == now->count &&
           memcmp(first->list, now->list, now->count * sizeof now->list[0]) == 0;
}
