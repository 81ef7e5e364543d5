#include "fs/fs_attrs.h"

#include "fs/fs.h"

#include <endian.h>
#include <errno.h>
#include <sys/xattr.h>

/* A file to read attributes from: by descriptor, or by its name in /proc. */
struct attrs_source {
    int fd;
    char path[FS_FD_PATH_SIZE]; /* empty: there is no /proc */
};

/* -- the access list: a version, then entries; all numbers little-endian -- */

struct acl_entry {
    uint16_t tag;
    uint16_t perm;
    uint32_t id;
};

enum acl_tag {
    ACL_USER_OBJ = 0x01,
    ACL_USER = 0x02,
    ACL_GROUP_OBJ = 0x04,
    ACL_GROUP = 0x08,
    ACL_MASK = 0x10,
    ACL_OTHER = 0x20,
};

#define ACL_HEAD 4u /* bytes of the version */

static size_t acl_count(const struct buf *acl) {
    return acl->len < ACL_HEAD ? 0 : (acl->len - ACL_HEAD) / sizeof(struct acl_entry);
}

static struct acl_entry acl_get(const struct buf *acl, size_t i) {
    struct acl_entry e;
    memcpy(&e, acl->p + ACL_HEAD + i * sizeof e, sizeof e);
    return (struct acl_entry){le16toh(e.tag), le16toh(e.perm), le32toh(e.id)};
}

/* What all entries with one of the tags allow. */
static unsigned acl_common(const struct buf *acl, unsigned tags) {
    unsigned perm = 7;
    for (size_t i = 0; i < acl_count(acl); i++) {
        struct acl_entry e = acl_get(acl, i);
        if ((e.tag & tags) != 0)
            perm &= e.perm;
    }
    return perm;
}

mode_t fs_attrs_plain_mode(mode_t mode, const struct buf *acl) {
    if (acl->len == 0)
        return mode;
    unsigned named = acl_common(acl, ACL_USER | ACL_GROUP);
    unsigned group = acl_common(acl, ACL_GROUP_OBJ | ACL_MASK) & named;
    return (mode & ~(mode_t)077) | (mode_t)(group << 3) | (mode & 07 & (mode_t)named);
}

/* Gives the owning group and everybody what both had. */
static void acl_join_group(struct buf *acl) {
    unsigned both = acl_common(acl, ACL_GROUP_OBJ | ACL_OTHER);
    for (size_t i = 0; i < acl_count(acl); i++) {
        struct acl_entry e = acl_get(acl, i);
        if (e.tag != ACL_GROUP_OBJ && e.tag != ACL_OTHER)
            continue;
        uint16_t perm = htole16((uint16_t)both);
        memcpy(acl->p + ACL_HEAD + i * sizeof e + offsetof(struct acl_entry, perm), &perm,
               sizeof perm);
    }
}

/* -- reading -- */

/* What an errno of a read means: 1: there is no attribute; or -errno. */
static int attrs_failed(int num) {
    bool none = num == ENODATA || num == EOPNOTSUPP || num == ENOSYS;
    return none ? 1 : num == ERANGE ? -E2BIG : -num;
}

/* Appends a value, behind its length if `sized`. 0; 1: there is none; or -errno. */
static int attrs_put_value(const struct attrs_source *s, const char *name, bool sized,
                           struct buf *b) {
    _cleanup_free_ char *value = malloc(FS_ATTRS_VALUE_MAX);
    if (value == NULL)
        return -ENOMEM;
    ssize_t n = s->path[0] != '\0' ? getxattr(s->path, name, value, FS_ATTRS_VALUE_MAX)
                                   : fgetxattr(s->fd, name, value, FS_ATTRS_VALUE_MAX);
    if (n < 0)
        return attrs_failed(errno);
    uint32_t len = (uint32_t)n;
    int r = sized ? buf_put(b, &len, sizeof len) : 0;
    if (r == 0)
        r = buf_put(b, value, len);
    return r == -ENOBUFS ? -E2BIG : r;
}

static bool attrs_begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool attrs_is_kept(const char *name) {
    static const char *const dropped[] = {"security.capability", "security.ima", "security.evm",
                                          FS_ATTRS_ACL /* is read by itself */};
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
        if (strcmp(name, dropped[i]) == 0)
            return false;
    }
    return !attrs_begins(name, "trusted.") && !attrs_begins(name, "user.overlay.");
}

static int attrs_put_one(const struct attrs_source *s, const char *name, struct buf *b) {
    size_t before = b->len;
    int r = buf_put(b, name, strlen(name) + 1);
    if (r == 0)
        r = attrs_put_value(s, name, true, b);
    if (r > 0)
        b->len = before; /* it vanished meanwhile */
    return r == -ENOBUFS ? -E2BIG : MIN(r, 0);
}

/* Appends all attributes that are listed and kept. 0 or -errno. */
static int attrs_read_others(const struct attrs_source *s, struct buf *b) {
    _cleanup_free_ char *names = malloc(FS_ATTRS_LIST_MAX);
    if (names == NULL)
        return -ENOMEM;
    ssize_t n = s->path[0] != '\0' ? listxattr(s->path, names, FS_ATTRS_LIST_MAX)
                                   : flistxattr(s->fd, names, FS_ATTRS_LIST_MAX);
    if (n < 0)
        return MIN(attrs_failed(errno), 0);
    int r = 0;
    for (const char *p = names; r == 0 && p < names + n; p += strlen(p) + 1) {
        if (attrs_is_kept(p))
            r = attrs_put_one(s, p, b);
    }
    return r;
}

/*
 * Reads by fd if that is open for reading, else through /proc. 0; or -EBADF: no /proc that we may
 * see. Listing needs no permission on the file, so EACCES is about /proc.
 */
static int attrs_find(int fd, struct attrs_source *s) {
    *s = (struct attrs_source){.fd = fd};
    if (flistxattr(fd, NULL, 0) >= 0 || errno != EBADF)
        return 0;
    fs_fd_path(s->path, fd);
    if (listxattr(s->path, NULL, 0) >= 0)
        return 0;
    return errno == ENOENT || errno == EACCES ? -EBADF : 0;
}

/* Reads the access list, and the others unless that is NULL. */
static int attrs_read(int fd, struct buf *acl, struct buf *others) {
    struct attrs_source s;
    acl->len = 0;
    int r = attrs_find(fd, &s);
    if (r == 0)
        r = attrs_put_value(&s, FS_ATTRS_ACL, false, acl);
    return r < 0 || others == NULL ? MIN(r, 0) : attrs_read_others(&s, others);
}

int fs_attrs_read_acl(int fd, struct buf *acl) {
    return attrs_read(fd, acl, NULL);
}

int fs_attrs_read(int fd, struct fs_attrs *a) {
    a->others.len = 0;
    return fstat(fd, &a->st) < 0 ? -errno : attrs_read(fd, &a->acl, &a->others);
}

/* -- giving -- */

/* Sets an attribute unless it is right already: a label may be right, but not ours to set. */
static int attrs_set(int fd, const char *name, struct str value) {
    _cleanup_free_ char *now = malloc(FS_ATTRS_VALUE_MAX);
    if (now == NULL)
        return -ENOMEM;
    ssize_t n = fgetxattr(fd, name, now, FS_ATTRS_VALUE_MAX);
    if (n >= 0 && str_eq((struct str){now, (size_t)n}, value))
        return 0;
    return fsetxattr(fd, name, value.p, value.n, 0) < 0 ? -errno : 0;
}

/* Cuts the next name and value off; false at the end. */
static bool attrs_next(struct str *rest, const char **name, struct str *value) {
    uint32_t len;
    if (rest->n == 0)
        return false;
    *name = str_take(rest, strlen(rest->p) + 1);
    memcpy(&len, str_take(rest, sizeof len), sizeof len);
    *value = (struct str){str_take(rest, len), len};
    return true;
}

static bool attrs_has(const struct fs_attrs *a, const char *wanted) {
    struct str rest = buf_str(&a->others), value;
    const char *name;
    while (attrs_next(&rest, &name, &value)) {
        if (strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

/* Removes what an earlier attempt set and the old file has lost since. 0 or -errno. */
static int attrs_drop_stale(int fd, const struct fs_attrs *a) {
    _cleanup_free_ char *names = malloc(FS_ATTRS_LIST_MAX);
    if (names == NULL)
        return -ENOMEM;
    ssize_t n = flistxattr(fd, names, FS_ATTRS_LIST_MAX);
    for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
        if (attrs_begins(p, "user.") && !attrs_has(a, p) && fremovexattr(fd, p) < 0)
            return -errno;
    }
    return 0;
}

static int attrs_set_others(int fd, const struct fs_attrs *a) {
    struct str rest = buf_str(&a->others), value;
    const char *name;
    int r = attrs_drop_stale(fd, a);
    while (r == 0 && attrs_next(&rest, &name, &value))
        r = attrs_set(fd, name, value);
    return r;
}

int fs_attrs_set_acl(int fd, const struct buf *acl) {
    if (acl->len > 0)
        return fsetxattr(fd, FS_ATTRS_ACL, acl->p, acl->len, 0) < 0 ? -errno : 0;
    if (fremovexattr(fd, FS_ATTRS_ACL) == 0)
        return 0;
    /* Some file systems refuse to remove a list that was never set. */
    _cleanup_buf_ struct buf now = BUF_INIT(FS_ATTRS_VALUE_MAX);
    int num = errno, r = fs_attrs_read_acl(fd, &now);
    return r < 0 ? r : now.len > 0 ? -num : 0;
}

/* Sets owner and group as far as we may, then the access list and the mode. 0 or -errno. */
static int attrs_set_mode(int fd, const struct fs_attrs *a, struct buf *acl) {
    mode_t mode = a->st.st_mode & 07777;
    struct stat now;
    if (fchown(fd, a->st.st_uid, a->st.st_gid) < 0)
        (void)!fchown(fd, (uid_t)-1, a->st.st_gid);
    if (fstat(fd, &now) < 0)
        return -errno;
    bool ours = now.st_uid != a->st.st_uid, regrouped = now.st_gid != a->st.st_gid;
    if (ours || regrouped) /* nobody may run it as another owner */
        mode &= (mode_t) ~(S_ISUID | S_ISGID);
    if (regrouped && acl->len > 0) {
        acl_join_group(acl);
        mode = (mode & ~(mode_t)07) | (mode_t)acl_common(acl, ACL_OTHER);
    } else if (regrouped) {
        mode_t both = mode >> 3 & mode & 07;
        mode = (mode & ~(mode_t)077) | both << 3 | both;
    }
    int r = acl->len > 0 ? fs_attrs_set_acl(fd, acl) : 0;
    if (r == 0)
        (void)!fchmod(fd, mode); /* some file systems have one mode for all files */
    return r;
}

int fs_attrs_apply(int fd, const struct fs_attrs *a) {
    const mode_t private = S_IRUSR | S_IWUSR;
    const struct buf none = BUF_INIT(0);
    _cleanup_buf_ struct buf acl = BUF_INIT(FS_ATTRS_VALUE_MAX);
    int r = buf_put(&acl, a->acl.p, a->acl.len);
    if (r == 0) {
        (void)!fchmod(fd, private); /* an earlier attempt may have widened it */
        r = fs_attrs_set_acl(fd, &none);
    }
    if (r == 0)
        r = attrs_set_others(fd, a);
    if (r == 0 && (a->st.st_mode & private) != private)
        (void)!fchmod(fd, 0); /* its next owner may have had less */
    return r < 0 ? r : attrs_set_mode(fd, a, &acl);
}

bool fs_attrs_equal(const struct fs_attrs *a, const struct fs_attrs *b) {
    return a->st.st_uid == b->st.st_uid && a->st.st_gid == b->st.st_gid &&
           a->st.st_mode == b->st.st_mode && str_eq(buf_str(&a->acl), buf_str(&b->acl)) &&
           str_eq(buf_str(&a->others), buf_str(&b->others));
}

void fs_attrs_fini(struct fs_attrs *a) {
    buf_fini(&a->acl);
    buf_fini(&a->others);
}
