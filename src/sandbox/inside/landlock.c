#include "sandbox/inside/landlock.h"

#include "sandbox/host/landlock_abi.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <sys/stat.h>

/* The kernel's interface up to ABI 7; its headers may be older. */

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_DIR (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR (1ull << 6)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_MAKE_SOCK (1ull << 9)
#define FS_MAKE_FIFO (1ull << 10)
#define FS_MAKE_BLOCK (1ull << 11)
#define FS_MAKE_SYM (1ull << 12)
#define FS_REFER (1ull << 13)     /* ABI 2 */
#define FS_TRUNCATE (1ull << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ull << 15) /* ABI 5 */

#define NET_BIND_TCP (1ull << 0) /* ABI 4 */
#define NET_CONNECT_TCP (1ull << 1)

#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ull << 1)

#define RULE_PATH_BENEATH 1

#define RIGHTS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define RIGHTS_FILE (FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define RIGHTS_WRITE                                                                               \
    (RIGHTS_FILE | FS_READ_DIR | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |      \
     FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER)
#define RIGHTS_ALL (RIGHTS_WRITE | FS_MAKE_CHAR | FS_MAKE_BLOCK)

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

/* Rules being made. */
struct landlock_rules {
    const struct launch_request *q;
    const struct layout *l;
    struct fault *f;
    int fd;
    uint64_t handled; /* rights the kernel knows */
};

static uint64_t landlock_handled(unsigned abi) {
    uint64_t rights = RIGHTS_ALL;
    if (abi < 2)
        rights &= ~FS_REFER;
    if (abi < 3)
        rights &= ~FS_TRUNCATE;
    if (abi < 5)
        rights &= ~FS_IOCTL_DEV;
    return rights;
}

static int landlock_open(struct landlock_rules *r, unsigned abi) {
    enum plan_network net = r->q->plan.network;
    struct ruleset_attr attr = {.fs = r->handled};
    size_t size = abi >= 6   ? sizeof attr
                  : abi >= 4 ? offsetof(struct ruleset_attr, scoped)
                             : offsetof(struct ruleset_attr, net);
    if (abi >= 4 && net == PLAN_NET_RESTRICTED)
        attr.net = NET_BIND_TCP | NET_CONNECT_TCP;
    if (abi >= 6)
        attr.scoped = SCOPE_SIGNAL | (net == PLAN_NET_ENABLED ? 0 : SCOPE_ABSTRACT_UNIX_SOCKET);
    r->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    return r->fd < 0 ? fault_os(r->f, FAULT_LANDLOCK, errno, "rules") : 0;
}

static int landlock_allow_fd(struct landlock_rules *r, int fd, uint64_t rights) {
    struct path_beneath rule = {.allowed = rights & r->handled, .parent = fd};
    if (rule.allowed == 0)
        return 0;
    return (int)syscall(SYS_landlock_add_rule, r->fd, RULE_PATH_BENEATH, &rule, 0);
}

/* A missing path needs no rule. */
static int landlock_allow(struct landlock_rules *r, const char *path, uint64_t rights) {
    struct stat st;
    _cleanup_close_ int fd = sys_openat2(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS);
    if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ELOOP))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return fault_os(r->f, FAULT_LANDLOCK, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        rights &= RIGHTS_FILE;
    return landlock_allow_fd(r, fd, rights) < 0 ? fault_os(r->f, FAULT_LANDLOCK, errno, "%s", path)
                                                : 0;
}

/* The devices that every program expects, on the host's /dev. Not /dev/pts: it holds the terminals
 * of others. */
static int landlock_host_dev(struct landlock_rules *r) {
    static const char *const nodes[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                        "/dev/urandom", "/dev/tty",  "/dev/ptmx"};
    int e = 0;
    for (size_t i = 0; e == 0 && i < ARRAY_LEN(nodes); i++)
        e = landlock_allow(r, nodes[i], RIGHTS_FILE);
    return e;
}

/* The command's own terminal, or /dev/null, by its name in /proc/self/fd. */
static int landlock_stdio(struct landlock_rules *r) {
    for (int fd = 0; fd <= 2; fd++) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
            continue;
        uint64_t rights = FS_IOCTL_DEV;
        if ((flags & O_ACCMODE) != O_WRONLY)
            rights |= FS_READ_FILE;
        if ((flags & O_ACCMODE) != O_RDONLY)
            rights |= FS_WRITE_FILE | FS_TRUNCATE;
        if (landlock_allow_fd(r, fd, rights) < 0)
            return fault_os(r->f, FAULT_LANDLOCK, errno, "descriptor %d", fd);
    }
    return 0;
}

static int landlock_fill(struct landlock_rules *r) {
    bool mounts = r->q->backend != LAUNCH_LANDLOCK;
    int e = landlock_allow(r, "/", r->l->root_write ? RIGHTS_WRITE : RIGHTS_READ);
    for (size_t i = 0; e == 0 && i < r->l->step_count; i++) {
        if (r->l->steps[i].kind == LAYOUT_WRITE)
            e = landlock_allow(r, r->l->steps[i].path, RIGHTS_WRITE);
    }
    if (e == 0 && mounts)
        e = landlock_allow(r, "/dev", RIGHTS_WRITE);
    if (e == 0 && mounts) /* the host's, if the pids are: it is mounted read-only */
        e = landlock_allow(r, "/proc", FS_WRITE_FILE | FS_TRUNCATE);
    if (e == 0 && r->l->private_tmp)
        e = landlock_allow(r, "/tmp", RIGHTS_WRITE);
    if (e == 0 && !mounts)
        e = landlock_host_dev(r);
    return e == 0 ? landlock_stdio(r) : e;
}

/* Whether the other layers suffice without rules. In the host's own user namespace a user may enter
 * /proc/PID/root of any of their processes without capabilities, even another sandbox's. */
static int landlock_none(const struct launch_request *q, struct fault *f) {
    if (q->backend == LAUNCH_ROOT && q->plan.inherit_pids && q->plan.confine_files)
        return fault_text(f, FAULT_POLICY,
                          "processes of the host could be entered: inheriting the pid namespace "
                          "needs user namespaces, or Landlock ABI 2");
    return q->backend == LAUNCH_LANDLOCK ? fault_os(f, FAULT_LANDLOCK, ENOSYS, "rules") : 0;
}

int landlock_make(const struct launch_request *q, const struct layout *l, int *fd,
                  struct fault *f) {
    unsigned abi = landlock_abi(q->landlock_max);
    struct landlock_rules r = {.q = q, .l = l, .f = f, .fd = -1, .handled = landlock_handled(abi)};
    bool writes = l->root_write || l->private_tmp;
    for (size_t i = 0; i < l->step_count; i++)
        writes |= l->steps[i].kind == LAYOUT_WRITE;
    *fd = -1;
    /* ABI 1 forbids every rename between directories. */
    if (abi == 0 || (abi < 2 && writes))
        return landlock_none(q, f);
    int e = landlock_open(&r, abi);
    if (e == 0)
        e = landlock_fill(&r);
    if (e < 0) {
        util_close_fd(&r.fd);
        return e;
    }
    *fd = r.fd;
    return 0;
}

int landlock_enter(int fd) {
    return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

static int landlock_readable(struct landlock_rules *r, const char *path) {
    struct stat st;
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    uint64_t rights = S_ISDIR(st.st_mode) ? FS_READ_FILE | FS_READ_DIR : FS_READ_FILE;
    return landlock_allow_fd(r, fd, rights) < 0 ? -errno : 0;
}

int landlock_read_only(const char *const *paths, size_t n) {
    unsigned abi = landlock_abi(LANDLOCK_ABI_MAX);
    struct landlock_rules r = {.handled = landlock_handled(abi)};
    struct ruleset_attr attr = {.fs = r.handled};
    if (abi >= 6)
        attr.scoped = SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX_SOCKET;
    if (abi == 0)
        return 0;
    size_t size = abi >= 6 ? sizeof attr : offsetof(struct ruleset_attr, net);
    _cleanup_close_ int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    int e = fd < 0 ? -errno : 0;
    r.fd = fd;
    for (size_t i = 0; e == 0 && i < n; i++)
        e = landlock_readable(&r, paths[i]);
    return e < 0 ? e : landlock_enter(fd);
}
