#pragma once
/* A view being built: shared by mounts.c and mounts_system.c. */

#include "sandbox/inside/mounts.h"

#define MOUNTS_NODES 6

struct mounts {
    const struct launch_request *q;
    const struct layout *l;
    struct fault *f;
    int root;  /* the view's root: paths in it are relative to this */
    int masks; /* read-only tmpfs with an unreadable file "f" and directory "d"; or -1 */
    int nodes[MOUNTS_NODES]; /* copies of device nodes; -1: the host lacks it */
    int console;             /* copy of the command's terminal, or -1 */
    int fds;                 /* our /proc/self/fd, which the command must not see; or -1 */
    int *writable; /* by step: copies of writable trees, taken while they are still writable */
};

#define MOUNTS_PRIVATE (1ul << 18) /* MS_PRIVATE */

/* Attributes of everything except devices. */
#define MOUNTS_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MOUNTS_EMPTY (MOUNTS_SAFE | MOUNT_ATTR_NOEXEC)

/* A path relative to the view's root. */
static inline const char *mounts_in_view(const char *path) {
    return path[1] == '\0' ? "." : path + 1;
}

/* Copies the device nodes while they still work: before `nodev` is set. */
MUST_CHECK int mounts_system_take_devices(struct mounts *m);

/* Mounts the view's /dev and /proc. */
MUST_CHECK int mounts_system_dev(struct mounts *m);
MUST_CHECK int mounts_system_proc(struct mounts *m);

/*
 * Masks the files that the layout's patterns match, in the finished view, which is the root by now.
 * Masks a file through the descriptor of the directory it was found in. Repeats until no new
 * directory has come into reach; a fault if that does not end.
 */
MUST_CHECK int mounts_globs(struct mounts *m);

/* Covers `place` with a mask: an unreadable file or directory, or an empty one ("f", "d", "e").
 * `path` is for texts. */
MUST_CHECK int mounts_mask(struct mounts *m, const char *path, const char *name, int place);

/*
 * Where case is ignored: whether another spelling also finds the mount on `name` in directory dir.
 * FUSE, for one, may tell spellings of a mount point apart. A fault if not; `path` is for its text.
 */
MUST_CHECK int mounts_check_case(struct mounts *m, int dir, const char *name, const char *path);

/* Makes directories down to `path` (relative to dir), the last one a file unless `is_dir`. */
MUST_CHECK int mounts_make_place(int dir, const char *path, bool is_dir, mode_t mode);
