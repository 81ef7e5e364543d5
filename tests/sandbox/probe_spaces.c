/* Rows 91 to 127: mounts, namespaces, credentials, system calls of other kinds. */

#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* <sys/mount.h> cannot stand beside <linux/mount.h>. */
#define MNT_DETACH 2
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);

static int mount_tmpfs(const struct probe_row *r) {
    const char *at = probe_path(r->path);
    if (mount("probe", at, "tmpfs", 0, NULL) < 0)
        return -errno;
    umount2(at, MNT_DETACH);
    return 0;
}

static int mount_bind(const struct probe_row *r) {
    const char *at = probe_path(r->path);
    if (mount(aim.outside, at, NULL, MS_BIND, NULL) < 0)
        return -errno;
    umount2(at, MNT_DETACH);
    return 0;
}

static int remount(const struct probe_row *r) {
    return probe_done(mount(NULL, r->path, NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int unmount(const struct probe_row *r) {
    return probe_done(umount2(probe_path(r->path), MNT_DETACH));
}

static int open_fs(const struct probe_row *r) {
    return probe_opened((int)syscall(SYS_fsopen, r->path, FSOPEN_CLOEXEC));
}

static int clone_tree(const struct probe_row *r) {
    return probe_opened(
        (int)syscall(SYS_open_tree, AT_FDCWD, r->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

static int set_mount(const struct probe_row *r) {
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    return probe_done(
        syscall(SYS_mount_setattr, AT_FDCWD, r->path, AT_RECURSIVE, &attr, sizeof(attr)));
}

static int move(const struct probe_row *r) {
    return probe_done(syscall(SYS_move_mount, AT_FDCWD, r->path, AT_FDCWD, probe_path("W/mnt"), 0));
}

static int pivot(const struct probe_row *r) {
    return probe_done(syscall(SYS_pivot_root, r->path, r->path));
}

static int change_root(const struct probe_row *r) {
    return probe_done(chroot(probe_path(r->path)));
}

static int leave(const struct probe_row *r) {
    return probe_done(unshare(r->a));
}

/* The rows below need a namespace of users first; says so when there is none to be had. */
static bool nested(int more) {
    if (unshare(CLONE_NEWUSER | more) == 0)
        return true;
    probe_say("unshare %s", probe_error(errno));
    return false;
}

static int nested_mount(const struct probe_row *r) {
    if (!nested(CLONE_NEWNS))
        return PROBE_SAID;
    return probe_done(mount("probe", probe_path(r->path), "tmpfs", 0, NULL));
}

static int nested_remount(const struct probe_row *r) {
    if (!nested(CLONE_NEWNS))
        return PROBE_SAID;
    if (mount(NULL, r->path, NULL, MS_REMOUNT | MS_BIND, NULL) < 0)
        return probe_say("remount %s", probe_error(errno));
    return 0;
}

static int nested_unmount(const struct probe_row *r) {
    if (!nested(CLONE_NEWNS))
        return PROBE_SAID;
    if (umount2(probe_path(r->path), MNT_DETACH) < 0)
        return probe_say("umount %s", probe_error(errno));
    return 0;
}

/* A bind mount that leaves the mounts below it behind shows what they cover. */
static int look_under(const struct probe_row *r) {
    const char *at = probe_path("W/mnt");
    if (!nested(CLONE_NEWNS))
        return PROBE_SAID;
    if (mount(aim.ws, at, NULL, MS_BIND, NULL) < 0)
        return -errno;
    (void)r;
    return probe_create(&(struct probe_row){.path = probe_path("W/mnt/.git/new")});
}

static int nested_raw_socket(const struct probe_row *r) {
    (void)r;
    if (!nested(CLONE_NEWNET))
        return PROBE_SAID;
    int e = probe_opened(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
    return e ? probe_say("raw socket %s", probe_error(-e)) : probe_say("OK raw socket");
}

/* In the nested pid namespace: a /proc of its own, and there what the first one refuses. */
static int write_fresh_proc(void *at) {
    char path[4096], text[1024];
    if (mount("proc", at, "proc", 0, NULL) < 0)
        return errno;
    snprintf(path, sizeof(path), "%s/sys/kernel/core_pattern", (const char *)at);
    ssize_t n = probe_read(path, text, sizeof(text));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || n < 0)
        return errno;
    return write(fd, text, (size_t)n) == n ? 0 : errno;
}

static int nested_proc(const struct probe_row *r) {
    char at[4096];
    snprintf(at, sizeof(at), "%s", probe_path(r->path));
    if (!nested(CLONE_NEWNS | CLONE_NEWPID))
        return PROBE_SAID;
    return -probe_child(write_fresh_proc, at);
}

static int join(const struct probe_row *r) {
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = probe_done(setns(fd, r->a));
    close(fd);
    return e;
}

static int clone_user(const struct probe_row *r) {
    uint64_t args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
    int status;
    (void)r;
    long pid = syscall(SYS_clone3, args, sizeof(args));
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(0);
    waitpid((pid_t)pid, &status, 0);
    return 0;
}

static int become(const struct probe_row *r) {
    (void)r;
    return probe_done(setuid(geteuid() == 12345 ? 12346 : 12345));
}

static int set_groups(const struct probe_row *r) {
    gid_t group = 12346;
    (void)r;
    return probe_done(setgroups(1, &group));
}

static int raise_capabilities(const struct probe_row *r) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{~0u, ~0u, 0}, {~0u, ~0u, 0}};
    (void)r;
    if (syscall(SYS_capset, &header, data) == 0)
        return 0;
    data[0] = (struct __user_cap_data_struct){1u << CAP_SYS_ADMIN, 1u << CAP_SYS_ADMIN, 0};
    data[1] = (struct __user_cap_data_struct){0};
    return probe_done(syscall(SYS_capset, &header, data));
}

/* Number of a line of /proc/PID/status, base 16 for capabilities. */
static bool status_line(pid_t pid, const char *name, int base, unsigned long long *value) {
    char path[64], text[8192];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (probe_read(path, text, sizeof(text)) <= 0)
        return false;
    const char *line = strstr(text, name);
    if (!line)
        return false;
    *value = strtoull(line + strlen(name), NULL, base);
    return true;
}

static int capabilities(const struct probe_row *r) {
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    unsigned long long value;
    int last = r->a ? 5 : 3;
    for (int i = 0; i < last; i++)
        if (!status_line(getpid(), sets[i], 16, &value) || value)
            return probe_say("%s %llx", sets[i], value);
    return probe_say("empty");
}

static int states(const struct probe_row *r) {
    unsigned long long seccomp = 99;
    (void)r;
    status_line(getpid(), "Seccomp:", 10, &seccomp);
    return probe_say("nnp=%d sc=%llu dump=%d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), seccomp,
                     prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

/* su waits for a password on the pipe; meanwhile its rights can be seen. */
static int watch_su(pid_t pid) {
    unsigned long long caps = 0;
    char path[64], text[8192];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    for (int i = 0; i < 400; i++) {
        unsigned real, effective;
        const char *ids;
        if (probe_read(path, text, sizeof(text)) <= 0 || strstr(text, "State:\tZ"))
            break;
        ids = strstr(text, "\nUid:");
        if (strncmp(text, "Name:\tsu\n", 9) == 0 && ids &&
            sscanf(ids, "\nUid:\t%u\t%u", &real, &effective) == 2) {
            status_line(pid, "CapEff:", 16, &caps);
            return effective != geteuid() || caps ? probe_say("OK gain") : probe_say("no gain");
        }
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    return probe_say("no gain");
}

static int run_su(const struct probe_row *r) {
    int in[2], status;
    if (pipe2(in, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(in[0], 0);
        dup2(null, 1);
        dup2(null, 2);
        execl(r->path, "su", "-c", "true", "nobody", (char *)NULL);
        _exit(1);
    }
    int e = watch_su(pid);
    close(in[1]);
    kill(pid, SIGKILL);
    waitpid(pid, &status, WNOHANG);
    return e;
}

static int add_filter(const struct probe_row *r) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    (void)r;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return probe_done(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static int no_randomize(const struct probe_row *r) {
    (void)r;
    return probe_done(personality(ADDR_NO_RANDOMIZE));
}

#ifdef __x86_64__
#define X32 0x40000000L

static int x32_socket(const struct probe_row *r) {
    (void)r;
    return probe_opened((int)syscall(X32 | SYS_socket, AF_INET, SOCK_STREAM, 0));
}

/* A call of the 32-bit kind: the number in a, the first argument in b. */
static int old_call(const struct probe_row *r) {
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"((long)r->a), "b"((long)r->b), "c"((long)SOCK_STREAM), "d"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result < 0 ? (int)result : 0;
}
#else
/* There is no other kind of system call that a 64-bit program could make. */
static int x32_socket(const struct probe_row *r) {
    (void)r;
    return probe_say("no such calls");
}

static int old_call(const struct probe_row *r) {
    (void)r;
    return probe_say("no such calls");
}
#endif

const struct probe_row probe_spaces[] = {
    {91, mount_tmpfs, "W/mnt", 0, 0},
    {92, mount_bind, "W/mnt", 0, 0},
    {93, remount, "/", 0, 0},
    {94, unmount, "W/.git", 0, 0},
    {95, unmount, "/proc", 0, 0},
    {96, open_fs, "tmpfs", 0, 0},
    {97, clone_tree, "/", 0, 0},
    {98, set_mount, "/", 0, 0},
    {99, move, "/proc", 0, 0},
    {100, pivot, ".", 0, 0},
    {101, change_root, "W", 0, 0},
    {102, leave, NULL, CLONE_NEWUSER, 0},
    {103, nested_mount, "W/mnt", 0, 0},
    {104, nested_remount, "/", 0, 0},
    {105, nested_unmount, "W/.git", 0, 0},
    {106, nested_unmount, "D", 0, 0},
    {107, look_under, NULL, 0, 0},
    {108, leave, NULL, CLONE_NEWNS, 0},
    {109, leave, NULL, CLONE_NEWNET, 0},
    {110, leave, NULL, CLONE_NEWPID, 0},
    {111, leave, NULL, CLONE_NEWUTS, 0},
    {112, leave, NULL, CLONE_NEWCGROUP, 0},
    {113, nested_raw_socket, NULL, 0, 0},
    {114, join, "/proc/1/ns/user", CLONE_NEWUSER, 0},
    {115, join, "/proc/1/ns/mnt", CLONE_NEWNS, 0},
    {116, clone_user, NULL, 0, 0},
    {117, become, NULL, 0, 0},
    {118, set_groups, NULL, 0, 0},
    {119, raise_capabilities, NULL, 0, 0},
    {120, capabilities, NULL, 0, 0},
    {121, states, NULL, 0, 0},
    {122, run_su, "/bin/su", 0, 0},
    {123, add_filter, NULL, 0, 0},
    {124, no_randomize, NULL, 0, 0},
    {125, x32_socket, NULL, 0, 0},
    {126, old_call, NULL, 359, AF_INET},
    {127, old_call, NULL, 20, 0},
    /* Not of the table. */
    {227, nested_proc, "W/mnt", 0, 0},
    {228, capabilities, NULL, 1, 0},
    {0, NULL, NULL, 0, 0},
};
