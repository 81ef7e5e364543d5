#include "sandbox/inside/mounts_internal.h"

#include "sandbox/policy/sys.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static const char *const system_nodes[MOUNTS_NODES] = {"null",   "zero",    "full",
                                                       "random", "urandom", "tty"};

/* Files of /proc that reveal or change the host's state. Those that exist become read-only (the
 * first also for others than root, who could not write to the rest)... */
static const char *const system_read_only[] = {
    "sys", "acpi", "asound", "bus",  "driver",        "dynamic_debug",
    "fs",  "irq",  "mtrr",   "scsi", "sysrq-trigger", "timer_stats",
};
/* ... or unreadable. */
static const char *const system_hidden[] = {
    "kcore",         "keys",        "kpagecgroup", "kpagecount", "kpageflags",
    "latency_stats", "sched_debug", "timer_list",  "vmcore",
};

/* -- /dev -- */

/* Copies the terminal by its name on the host: the descriptor's own mount is not in this namespace.
 * */
static void system_take_console(struct mounts *m) {
    char name[64];
    struct stat mine, st;
    ssize_t n = readlink("/proc/self/fd/0", name, sizeof name - 1);
    if (n < 0 || fstat(STDIN_FILENO, &mine) < 0)
        return; /* it has no name, but it works */
    name[n] = '\0';
    int fd = sys_openat2(AT_FDCWD, name, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return;
    bool same = fstat(fd, &st) == 0 && st.st_ino == mine.st_ino && st.st_rdev == mine.st_rdev &&
                st.st_dev == mine.st_dev;
    if (same)
        m->console = sys_clone_tree(fd, "", 0);
    close(fd);
}

/* Makes the node's mount read-only: the device stays writable, but its mode and owner are the
 * host's. */
static int system_guard_node(int node) {
    return sys_mount_setattr(node, "", 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
                             0, MOUNTS_PRIVATE);
}

/* The server hands out the host's /dev/null. Opens it anew through our own mount, lest root change
 * the host's mode through that descriptor. */
static int system_take_null(struct mounts *m) {
    char path[32];
    struct stat null, st;
    if (m->nodes[0] < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->nodes[0]);
    if (fstat(m->nodes[0], &null) < 0)
        return fault_os(m->f, FAULT_DEV, errno, "null");
    for (int fd = 0; fd <= 2; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != null.st_rdev)
            continue;
        _cleanup_close_ int own = open(path, (flags & O_ACCMODE) | O_CLOEXEC);
        if (own < 0 || dup3(own, fd, 0) < 0)
            return fault_os(m->f, FAULT_DEV, errno, "null");
    }
    return 0;
}

int mounts_system_take_devices(struct mounts *m) {
    char path[32];
    for (size_t i = 0; i < MOUNTS_NODES; i++) {
        snprintf(path, sizeof path, "/dev/%s", system_nodes[i]);
        m->nodes[i] = sys_clone_tree(AT_FDCWD, path, 0);
        if (m->nodes[i] < 0 ? errno != ENOENT : system_guard_node(m->nodes[i]) < 0)
            return fault_os(m->f, FAULT_DEV, errno, "%s", path);
    }
    if (m->q->tty)
        system_take_console(m);
    if (m->console >= 0 && system_guard_node(m->console) < 0)
        return fault_os(m->f, FAULT_DEV, errno, "terminal");
    return system_take_null(m);
}

/* Makes the files of a private /dev before it is attached. */
static int system_fill_dev(struct mounts *m, int dev) {
    static const char *const links[][2] = {
        {"/proc/self/fd", "fd"},       {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
        {"/proc/self/fd/2", "stderr"}, {"/proc/kcore", "core"},      {"pts/ptmx", "ptmx"},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < MOUNTS_NODES; i++)
        r = m->nodes[i] < 0 ? 0 : mknodat(dev, system_nodes[i], S_IFREG | 0666, 0);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++)
        r = symlinkat(links[i][0], dev, links[i][1]);
    if (r == 0 && m->console >= 0)
        r = mknodat(dev, "console", S_IFREG | 0600, 0);
    if (r == 0)
        r = mkdirat(dev, "pts", 0755);
    if (r == 0)
        r = mkdirat(dev, "shm", 01777);
    return r < 0 ? fault_os(m->f, FAULT_DEV, errno, "files") : 0;
}

static int system_devpts(struct mounts *m, int dev) {
    static const char *const options[] = {"ptmxmode", "0666", "mode", "0620", NULL};
    _cleanup_close_ int pts =
        sys_new_mount("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (pts < 0 || sys_attach(pts, dev, "pts") < 0)
        return fault_os(m->f, FAULT_DEV, errno, "devpts");
    return 0;
}

/* Mounts the devices, and the file systems in /dev, on their places. */
static int system_attach_devices(struct mounts *m, int dev) {
    for (size_t i = 0; i < MOUNTS_NODES; i++) {
        if (m->nodes[i] >= 0 && sys_attach(m->nodes[i], dev, system_nodes[i]) < 0)
            return fault_os(m->f, FAULT_DEV, errno, "%s", system_nodes[i]);
    }
    if (m->console >= 0 && !m->l->host_dev && sys_attach(m->console, dev, "console") < 0)
        return fault_os(m->f, FAULT_DEV, errno, "console");
    return 0;
}

int mounts_system_dev(struct mounts *m) {
    static const char *const options[] = {"mode", "0755", NULL};
    if (m->l->host_dev) {
        _cleanup_close_ int dev = openat(m->root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return dev < 0 ? fault_os(m->f, FAULT_DEV, errno, "/dev") : system_attach_devices(m, dev);
    }
    _cleanup_close_ int dev = sys_new_mount("tmpfs", options, MOUNTS_SAFE);
    if (dev < 0)
        return fault_os(m->f, FAULT_DEV, errno, "tmpfs");
    int r = system_fill_dev(m, dev);
    _cleanup_close_ int shm = -1; /* take it before the new /dev covers it */
    if (r == 0 && m->l->root_write)
        shm = sys_clone_tree(AT_FDCWD, "/dev/shm", 1);
    if (r == 0 && sys_attach(dev, m->root, "dev") < 0)
        r = fault_os(m->f, FAULT_DEV, errno, "/dev");
    if (r == 0)
        r = system_attach_devices(m, dev);
    if (r == 0 && shm >= 0 && sys_attach(shm, dev, "shm") < 0)
        r = fault_os(m->f, FAULT_DEV, errno, "shm");
    if (r < 0 || m->q->mode != LAUNCH_HELPER)
        return r < 0 ? r : system_devpts(m, dev);
    /* File calls must not succeed on files that vanish. */
    if (sys_mount_setattr(dev, "", 0, MOUNT_ATTR_RDONLY, 0, 0) < 0)
        r = fault_os(m->f, FAULT_DEV, errno, "read-only");
    return r;
}

/* -- /proc -- */

/* Hides a part of /proc, if it exists. */
static int system_hide(struct mounts *m, int proc, const char *name, const char *mask_name) {
    if (faccessat(proc, name, F_OK, 0) < 0)
        return 0;
    _cleanup_close_ int mask = sys_clone_tree(m->masks, mask_name, 0);
    if (mask < 0 || sys_attach(mask, proc, name) < 0)
        return fault_os(m->f, FAULT_PROC, errno, "%s", name);
    return 0;
}

/* Opens our /proc/self/fd, to name open files in the finished view. Only those who need it fail
 * without it. */
static void system_take_fds(struct mounts *m, int proc) {
    m->fds = openat(proc, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Mounts the host's /proc read-only. A descriptor of it in the view, or -errno with the fault
 * noted. */
static int system_host_proc(struct mounts *m) {
    _cleanup_close_ int proc = sys_clone_tree(AT_FDCWD, "/proc", 1);
    /* planted: writable-proc */
    if (proc < 0 || sys_mount_setattr(proc, "", 1, MOUNTS_EMPTY | MOUNT_ATTR_RDONLY, 0, 0) < 0 ||
        sys_attach(proc, m->root, "proc") < 0)
        return fault_os(m->f, FAULT_PROC, errno, "the host's");
    return steal_fd(&proc);
}

/*
 * Shows the container's /proc. Where a container hides parts of /proc, a user namespace cannot
 * mount another (`error` is the kernel's). Read-only mounts protect settings and other processes'
 * files. Their memory, environment and descriptors need ptrace access, which the kernel refuses
 * across user namespaces, and from a Landlock domain to processes outside.
 */
static int system_shared_proc(struct mounts *m, int error) {
    if (error != EPERM || m->q->backend != LAUNCH_USERNS)
        return fault_os(m->f, FAULT_PROC, error, "procfs");
    struct statfs st;
    _cleanup_close_ int proc = system_host_proc(m);
    int r = MIN(proc, 0);
    if (r == 0 && (fstatfs(proc, &st) < 0 || st.f_type != PROC_SUPER_MAGIC))
        r = fault_text(m->f, FAULT_PROC,
                       "/proc is denied or no procfs, and another cannot be mounted");
    if (r == 0)
        system_take_fds(m, proc);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(system_hidden); i++)
        r = system_hide(m, proc, system_hidden[i], "f");
    return r;
}

/* Hides pid 1's descriptors: to root even a process that is not dumpable shows those. */
static int system_hide_init(struct mounts *m, int proc) {
    static const char *const own[] = {"1/fd", "1/fdinfo", "1/task"};
    int r = 0;
    for (size_t i = 0; r == 0 && geteuid() == 0 && i < ARRAY_LEN(own); i++)
        r = system_hide(m, proc, own[i], "d");
    return r;
}

/* Hides parts of `proc`, which is read-only now, and so are copies of its parts. */
static int system_guard_proc(struct mounts *m, int proc) {
    size_t n = geteuid() == 0 ? ARRAY_LEN(system_read_only) : 1;
    for (size_t i = 0; i < n; i++) {
        _cleanup_close_ int part = sys_clone_tree(proc, system_read_only[i], 0);
        if (part < 0 ? errno != ENOENT : sys_attach(part, proc, system_read_only[i]) < 0)
            return fault_os(m->f, FAULT_PROC, errno, "%s", system_read_only[i]);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(system_hidden); i++)
        r = system_hide(m, proc, system_hidden[i], "f");
    return r == 0 ? system_hide_init(m, proc) : r;
}

int mounts_system_proc(struct mounts *m) {
    if (m->q->plan.inherit_pids) {
        _cleanup_close_ int host = system_host_proc(m);
        if (host >= 0)
            system_take_fds(m, host);
        return MIN(host, 0);
    }
    _cleanup_close_ int proc = sys_new_mount("proc", NULL, MOUNTS_EMPTY | MOUNT_ATTR_RDONLY);
    if (proc < 0)
        return system_shared_proc(m, errno);
    if (sys_attach(proc, m->root, "proc") < 0)
        return fault_os(m->f, FAULT_PROC, errno, "procfs");
    system_take_fds(m, proc);
    int r = system_guard_proc(m, proc);
    if (r == 0 && sys_mount_setattr(proc, "", 0, 0, MOUNT_ATTR_RDONLY, 0) < 0)
        r = fault_os(m->f, FAULT_PROC, errno, "writable");
    return r;
}
