#pragma once
/*
 * The attributes of a file that decide who may use it: owner, group, mode, access list (ACL) and
 * extended attributes. Read from one file, given to another that takes its place.
 *
 * Kept: the access list, `user.*`, labels and other `security.*`, whatever else the file system
 * lists. Not kept: `security.capability`, `security.ima` and `security.evm`, which vouch for the
 * old data; `trusted.*` and `user.overlay.*`, which describe the old inode to a file system. Flags
 * (chattr) are not kept either; the kernel itself refuses to replace an immutable file.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <sys/stat.h>

#define FS_ATTRS_MAX (1u << 20)        /* bytes of names and values together */
#define FS_ATTRS_VALUE_MAX (64u << 10) /* bytes of one value: the kernel's own maximum */
#define FS_ATTRS_LIST_MAX (64u << 10)  /* bytes of all names: the kernel's own maximum */
#define FS_ATTRS_ACL "system.posix_acl_access"

struct fs_attrs {
    struct stat st;    /* owner, group and mode count */
    struct buf acl;    /* the access list as the kernel gives it; empty: there is none */
    struct buf others; /* name, NUL, length (uint32_t), value; one after another */
};
#define FS_ATTRS_INIT                                                                              \
    ((struct fs_attrs){.acl = BUF_INIT(FS_ATTRS_VALUE_MAX), .others = BUF_INIT(FS_ATTRS_MAX)})

/*
 * Reads the attributes of what `fd` refers to; it may be opened with O_PATH where there is a /proc.
 * -EBADF: there is none, fd must be open for reading. -E2BIG above the maxima; or -errno, also when
 * an attribute may not be read. File systems without attributes have none: 0.
 */
MUST_CHECK int fs_attrs_read(int fd, struct fs_attrs *a);

/*
 * Gives them to an open, private file (mode 0600), which is never more accessible than the file
 * they came from. The mode comes last. Owner and group are kept as far as we may: a new owner loses
 * set-id bits, a new group gets what both the old group and everybody had. 0; or -errno: an
 * attribute cannot be kept, and the file must not be used.
 */
MUST_CHECK int fs_attrs_apply(int fd, const struct fs_attrs *a);

/* Reads the access list alone; empty: there is none. Errors as of fs_attrs_read(). */
MUST_CHECK int fs_attrs_read_acl(int fd, struct buf *acl);

/* Sets an access list; an empty one removes what the directory gave. 0 or -errno. */
MUST_CHECK int fs_attrs_set_acl(int fd, const struct buf *acl);

/* The mode of a file that had this access list and loses it: nobody gains. */
mode_t fs_attrs_plain_mode(mode_t mode, const struct buf *acl);

bool fs_attrs_equal(const struct fs_attrs *a, const struct fs_attrs *b);

void fs_attrs_fini(struct fs_attrs *a);
#define _cleanup_attrs_ __attribute__((cleanup(fs_attrs_fini)))
