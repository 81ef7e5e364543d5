#include "sandbox/policy/casefold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

#define FOLD_PROBES 64 /* names of a directory to try */

/* -- directories -- */

enum fold_kind {
    FOLD_UNKNOWN,
    FOLD_NEVER,   /* keeps case */
    FOLD_FLAGGED, /* directories with FS_CASEFOLD_FL ignore it */
    FOLD_ALWAYS,  /* ignores it, or may: nothing tells */
};

static enum fold_kind fold_kind(unsigned long magic) {
    static const struct {
        unsigned magic;
        enum fold_kind kind;
    } known[] = {
        {0xEF53, FOLD_FLAGGED},     /* ext4 */
        {0xF2F52010, FOLD_FLAGGED}, /* f2fs */
        {0x01021994, FOLD_FLAGGED}, /* tmpfs */
        {0xCA451A4E, FOLD_FLAGGED}, /* bcachefs */
        {0x9123683E, FOLD_NEVER},   /* btrfs */
        {0x4D44, FOLD_ALWAYS},      /* vfat */
        {0x2011BAB0, FOLD_ALWAYS},  /* exfat */
        {0x7366746E, FOLD_ALWAYS},  /* ntfs3 */
        {0x5346544E, FOLD_ALWAYS},  /* ntfs */
        {0xFF534D42, FOLD_ALWAYS},  /* cifs */
        {0xFE534D42, FOLD_ALWAYS},  /* smb2 */
        {0x517B, FOLD_ALWAYS},      /* smb */
        {0x4244, FOLD_ALWAYS},      /* hfs */
        {0x482B, FOLD_ALWAYS},      /* hfsplus */
        {0x786F4256, FOLD_ALWAYS},  /* vboxsf */
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].magic == (unsigned)magic)
            return known[i].kind;
    }
    return FOLD_UNKNOWN;
}

/*
 * Whether a name is found in the other case too: 1, 0; -1: it has no other case, or is gone. Inodes
 * do not tell: on FUSE each spelling may have its own. Two files that differ in case count as one.
 */
static int fold_probe(int dir, const char *name) {
    char other[CASEFOLD_NAME_MAX + 1];
    struct stat st;
    if (!casefold_swap(name, other) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (fstatat(dir, other, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : -1;
}

/* Tries the names in the directory. Takes fd over. */
static int fold_probe_names(int fd) {
    DIR *dir = fdopendir(fd);
    int r = -1;
    if (dir == NULL) {
        close(fd);
        return r;
    }
    const struct dirent *d;
    for (int i = 0; r < 0 && i < FOLD_PROBES && (d = readdir(dir)) != NULL; i++)
        r = fold_probe(dirfd(dir), d->d_name);
    closedir(dir);
    return r;
}

/* Tries the directory's own name, if its parent is on the same file system. */
static int fold_probe_self(int fd, const char *path) {
    struct stat own, parent;
    const char *name = strrchr(path, '/') + 1;
    _cleanup_close_ int dir = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*name == '\0' || dir < 0 || fstat(fd, &own) < 0 || fstat(dir, &parent) < 0 ||
        own.st_dev != parent.st_dev)
        return -1;
    return fold_probe(dir, name);
}

bool casefold_at(const char *path) {
    struct statfs fs;
    int flags = 0;
    _cleanup_close_ int fd =
        open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstatfs(fd, &fs) < 0)
        return false;
    switch (fold_kind((unsigned long)fs.f_type)) {
    case FOLD_NEVER: return false;
    case FOLD_ALWAYS: return true;
    case FOLD_FLAGGED: return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
    case FOLD_UNKNOWN: break;
    }
    int r = fold_probe_self(fd, path);
    int list = r < 0 ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (list >= 0)
        r = fold_probe_names(list);
    const unsigned fuse = 0x65735546;
    return r > 0 || (r < 0 && (unsigned)fs.f_type == fuse);
}

/* -- names -- */

/* Takes the next character of [*p, end) in its folded form; '\0' for an ignored one. */
static char fold_next(const unsigned char **p, const unsigned char *end) {
    const unsigned char *s = *p;
    if (*s < 0x80) {
        (*p)++;
        return (char)(*s >= 'A' && *s <= 'Z' ? *s | 0x20 : *s);
    }
    size_t n = 1;
    while (s + n < end && (s[n] & 0xC0) == 0x80)
        n++;
    *p = s + n;
    if (n == 2 && s[0] == 0xC5 && s[1] == 0xBF) /* long s */
        return 's';
    return n == 3 && s[0] == 0xE2 && s[1] == 0x84 && s[2] == 0xAA ? 'k' : '\0'; /* Kelvin sign */
}

/* The folded form of a name. */
static void fold_name(struct str name, char out[CASEFOLD_NAME_MAX + 1]) {
    const unsigned char *p = (const unsigned char *)name.p, *end = p + name.n;
    size_t n = 0;
    while (p < end && n < CASEFOLD_NAME_MAX) {
        char c = fold_next(&p, end);
        if (c != '\0')
            out[n++] = c;
    }
    while (n > 0 && (out[n - 1] == '.' || out[n - 1] == ' '))
        n--;
    out[n] = '\0';
}

/* Whether `name`, folded, is a short form of `full`: "git~1" of ".git". */
static bool fold_is_short(const char *name, const char *full) {
    const char *tilde = strrchr(name, '~');
    if (tilde == NULL || tilde == name || tilde[1] == '\0' ||
        strspn(tilde + 1, "0123456789") != strlen(tilde + 1))
        return false;
    while (*full == '.')
        full++;
    return strncmp(name, full, (size_t)(tilde - name)) == 0;
}

static bool fold_equal(struct str x, struct str y) {
    char a[CASEFOLD_NAME_MAX + 1], b[CASEFOLD_NAME_MAX + 1];
    fold_name(x, a);
    fold_name(y, b);
    return strcmp(a, b) == 0 || fold_is_short(a, b);
}

/* Takes the next component off *p. */
static bool fold_component(const char **p, struct str *out) {
    while (**p == '/')
        (*p)++;
    *out = (struct str){*p, strcspn(*p, "/")};
    *p += out->n;
    return out->n > 0;
}

int casefold_inside(const char *path, const char *dir) {
    struct str a, b;
    while (fold_component(&dir, &b)) {
        if (!fold_component(&path, &a) || !fold_equal(a, b))
            return 0;
    }
    return fold_component(&path, &a) ? 1 : 2;
}

bool casefold_swap(const char *name, char out[CASEFOLD_NAME_MAX + 1]) {
    size_t n = strlen(name);
    bool any = false;
    if (n > CASEFOLD_NAME_MAX)
        return false;
    for (size_t i = 0; i <= n; i++) {
        unsigned char c = (unsigned char)name[i] | 0x20;
        bool letter = c >= 'a' && c <= 'z' && (unsigned char)name[i] < 0x80;
        out[i] = (char)(letter ? name[i] ^ 0x20 : name[i]);
        any |= letter;
    }
    return any;
}
