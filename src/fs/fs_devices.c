#include "fs/fs_devices.h"

#include "fs/fs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#define DEVICE_BITS 3 /* of a slot, for the kind */
#define DEVICE_XFS 0x58465342

/* The id of the mount, 0 if the kernel does not tell. */
static uint64_t device_id(const struct statx *st) {
    return st->stx_mask & STATX_MNT_ID_UNIQUE ? st->stx_mnt_id : 0;
}

void fs_devices_init(struct fs_devices *d) {
    for (size_t i = 0; i < FS_DEVICES_MAX; i++)
        atomic_init(&d->slot[i], 0);
    atomic_init(&d->next, 0);
    d->root = -1;
    d->root_id = 0;
}

void fs_devices_hold_root(struct fs_devices *d) {
    struct statx st;
    d->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->root >= 0 && fs_statx(d->root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, &st) == 0)
        d->root_id = device_id(&st);
}

void fs_devices_fini(struct fs_devices *d) {
    util_close_fd(&d->root);
}

static enum fs_device device_look(const struct fs_devices *d, uint64_t id) {
    for (size_t i = 0; i < FS_DEVICES_MAX; i++) {
        uint64_t v = atomic_load_explicit(&d->slot[i], memory_order_relaxed);
        if (v >> DEVICE_BITS == id)
            return (enum fs_device)(v & ((1u << DEVICE_BITS) - 1));
    }
    return FS_DEVICE_UNKNOWN;
}

/*
 * The kind as far as this file goes. An overlay reports what the file system of the file's layer
 * does, and those that keep everything to themselves know this attribute; fuse, nfs, 9p, ceph and
 * smb do not, and their cached attributes may be out of date.
 */
static enum fs_device device_of_file(enum fs_device kind, const struct statx *st) {
    bool local = st->stx_attributes_mask & STATX_ATTR_NODUMP;
    return kind > FS_DEVICE_SLOW && !local ? FS_DEVICE_SLOW : kind;
}

enum fs_device fs_devices_root(const struct fs_devices *d) {
    return d == NULL || d->root_id == 0 ? FS_DEVICE_UNKNOWN : device_look(d, d->root_id);
}

enum fs_device fs_devices_find(const struct fs_devices *d, const struct statx *st) {
    uint64_t id = device_id(st);
    return d == NULL || id == 0 ? FS_DEVICE_UNKNOWN : device_of_file(device_look(d, id), st);
}

static enum fs_device device_kind(const struct statfs *s) {
    switch ((uint32_t)s->f_type) {
    case EXT4_SUPER_MAGIC: /* ext2 and ext3 too */
    case DEVICE_XFS:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC: {
        unsigned flags = (unsigned)s->f_flags;
        if (flags & (ST_NOATIME | ST_RDONLY))
            return FS_DEVICE_NOATIME;
        return flags & ST_RELATIME ? FS_DEVICE_DATA : FS_DEVICE_METADATA;
    }
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC: return FS_DEVICE_METADATA;
    default: return FS_DEVICE_SLOW;
    }
}

enum fs_device fs_devices_learn(struct fs_devices *d, int fd, const struct statx *st) {
    uint64_t id = device_id(st);
    if (d == NULL || id == 0)
        return FS_DEVICE_UNKNOWN;
    enum fs_device kind = device_look(d, id);
    if (kind == FS_DEVICE_UNKNOWN) {
        struct statfs s;
        if (fstatfs(fd, &s) < 0)
            return FS_DEVICE_UNKNOWN;
        kind = device_kind(&s);
        unsigned at = atomic_fetch_add_explicit(&d->next, 1, memory_order_relaxed);
        uint64_t v = id << DEVICE_BITS | kind;
        atomic_store_explicit(&d->slot[at % FS_DEVICES_MAX], v, memory_order_relaxed);
    }
    return device_of_file(kind, st);
}
