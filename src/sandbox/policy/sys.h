#pragma once
/* System calls that the C library may lack. Like its own, they set errno and return -1. Use
 * <linux/mount.h>, not <sys/mount.h>: the two do not mix. */

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define SYS_MNT_DETACH 2 /* of umount2() */

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve) {
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* A detached copy of the mount at a path; with everything below if `recursive`. */
static inline int sys_clone_tree(int dir, const char *path, int recursive) {
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
    return (int)syscall(SYS_open_tree, dir, path, flags | (recursive ? AT_RECURSIVE : 0u));
}

/* Attaches the detached mount `tree` at dir and path; "" is dir itself. */
static inline int sys_attach(int tree, int dir, const char *path) {
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    return (int)syscall(SYS_move_mount, tree, "", dir, path, flags);
}

static inline int sys_mount_setattr(int dir, const char *path, int recursive, uint64_t set,
                                    uint64_t clear, uint64_t propagation) {
    struct mount_attr attr = {.attr_set = set, .attr_clr = clear, .propagation = propagation};
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0u);
    return (int)syscall(SYS_mount_setattr, dir, path, flags, &attr, sizeof attr);
}

/* A detached new file system; `options` are name, value, ..., NULL. */
static inline int sys_new_mount(const char *type, const char *const *options, uint64_t attrs) {
    int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    int r = 0;
    for (; r == 0 && options != NULL && *options != NULL; options += 2)
        r = (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options[0], options[1], 0);
    if (r == 0)
        r = (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    if (r == 0)
        r = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
    close(fs);
    return r;
}

static inline int sys_umount2(const char *path, int flags) {
    return (int)syscall(SYS_umount2, path, flags);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old) {
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}
