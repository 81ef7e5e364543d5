#pragma once
/*
 * Which mounts hold file systems whose cached metadata and data can be had without waiting. The
 * calls that may block ask the file system (fstatfs() of a remote one waits), the loop's thread
 * only looks here. The one thing that fs calls share; any thread may call these.
 *
 * A mount is known by the id that the kernel gives to no other mount until it is booted again
 * (Linux 6.8), so that an entry cannot come to mean another file system, as a device number or a
 * plain mount id could once something is unmounted. On older kernels nothing is ever learned, and
 * every call goes the way that may wait.
 *
 * What can still make the loop's thread wait: a listener of fanotify that must permit every open,
 * and the access time, if the mount is changed from relatime or noatime to strictatime after it
 * was learned. Both wait for something local, and give the right answer.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#define FS_DEVICES_MAX 64 /* mounts remembered; a new one takes the place of the oldest */

struct fs_devices {
    _Atomic uint64_t slot[FS_DEVICES_MAX]; /* mount id and kind; 0 = free */
    atomic_uint next;                      /* the slot to be used next, modulo FS_DEVICES_MAX */
    int root;                              /* "/", O_PATH; owned; -1: not to be had */
    uint64_t root_id;                      /* id of its mount; 0 = the kernel does not tell */
};

/* In order: each kind allows what those before it allow. */
enum fs_device {
    FS_DEVICE_UNKNOWN,
    FS_DEVICE_SLOW,     /* remote, or of a kind nothing is known of */
    FS_DEVICE_METADATA, /* metadata without waiting: data in memory that may be swapped out, or
                           layers of which some may be slow */
    FS_DEVICE_DATA,     /* cached data too, while a read need not write the access time */
    FS_DEVICE_NOATIME,  /* reads never write it */
};

/* Knows nothing, holds nothing. */
void fs_devices_init(struct fs_devices *d);

/* Holds "/" open from now on, for shorter ways to files on its mount. */
void fs_devices_hold_root(struct fs_devices *d);
void fs_devices_fini(struct fs_devices *d);

/* The kind of the mount of "/"; what is opened below d->root without leaving it is of that kind. */
enum fs_device fs_devices_root(const struct fs_devices *d);

/*
 * The kind of the file with the facts st, from fs_statx(). UNKNOWN also if d is NULL. An overlay is
 * METADATA only for files that lie on a local layer.
 */
enum fs_device fs_devices_find(const struct fs_devices *d, const struct statx *st);

/* Like fs_devices_find(), but learns an unknown mount by fstatfs() of fd, the file. May wait. */
enum fs_device fs_devices_learn(struct fs_devices *d, int fd, const struct statx *st);
