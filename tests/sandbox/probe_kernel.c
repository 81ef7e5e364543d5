/* Rows 150 to 182: keys, interfaces of the kernel, memory. */

#include "probe.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define LANDLOCK_VERSION 1u /* flag of landlock_create_ruleset(): tell the version only */

static int add_key(const struct probe_row *r) {
    (void)r;
    return probe_done(
        syscall(SYS_add_key, "user", "sandbox-probe-own", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int find_key(const struct probe_row *r) {
    (void)r;
    return probe_done(
        syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", aim.key, 0));
}

static int session_keyring(const struct probe_row *r) {
    (void)r;
    return probe_done(
        syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1, 0, 0));
}

static int read_key(const struct probe_row *r) {
    char text[64];
    (void)r;
    return probe_done(syscall(SYS_keyctl, KEYCTL_READ, aim.serial, text, sizeof(text), 0));
}

static int persistent_keyring(const struct probe_row *r) {
    (void)r;
    return probe_done(
        syscall(SYS_keyctl, KEYCTL_GET_PERSISTENT, -1, KEY_SPEC_PROCESS_KEYRING, 0, 0));
}

static int bpf_program(const struct probe_row *r) {
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
                              {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr attr;
    (void)r;
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = (uint64_t)(uintptr_t)code;
    attr.insn_cnt = 2;
    attr.license = (uint64_t)(uintptr_t) "GPL";
    return probe_opened((int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

static int bpf_map(const struct probe_row *r) {
    union bpf_attr attr;
    (void)r;
    memset(&attr, 0, sizeof(attr));
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    return probe_opened((int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int perf_event(const struct probe_row *r) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    (void)r;
    return probe_opened((int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int user_faults(const struct probe_row *r) {
    return probe_opened((int)syscall(SYS_userfaultfd, r->a | O_CLOEXEC));
}

static int uring(const struct probe_row *r) {
    uint32_t params[30] = {0}; /* struct io_uring_params has 120 bytes */
    (void)r;
    return probe_opened((int)syscall(SYS_io_uring_setup, 4, params));
}

static int old_aio(const struct probe_row *r) {
    aio_context_t context = 0;
    (void)r;
    return probe_done(syscall(SYS_io_setup, 1, &context));
}

static int load_module(const struct probe_row *r) {
    (void)r;
    int e = probe_done(syscall(SYS_init_module, NULL, 0, ""));
    return PROBE_REACHED(PROBE_REACHED(e, ENOEXEC), EFAULT);
}

/* Flags that do not exist; with good ones no segments would unload a kernel that waits. */
static int load_kernel(const struct probe_row *r) {
    (void)r;
    return PROBE_REACHED(probe_done(syscall(SYS_kexec_load, 0, 0, NULL, 0xdeadUL)), EINVAL);
}

static int restart(const struct probe_row *r) {
    (void)r;
    long n = syscall(SYS_reboot, 0xfee1deadu, 672274793, 0xdeadbeefu, NULL);
    return PROBE_REACHED(probe_done(n), EINVAL);
}

static int swap(const struct probe_row *r) {
    return PROBE_REACHED(probe_done(syscall(SYS_swapon, r->path, 0)), ENOENT);
}

static int account(const struct probe_row *r) {
    return PROBE_REACHED(probe_done(syscall(SYS_acct, r->path)), ENOENT);
}

static int kernel_log(const struct probe_row *r) {
    char text[64];
    (void)r;
    return probe_done(klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text)));
}

static int ports(const struct probe_row *r) {
    (void)r;
#ifdef SYS_iopl
    return probe_done(syscall(SYS_iopl, 3));
#else
    return -ENOSYS;
#endif
}

/* The time zone as it is: a moment's difference of the clock would be a change. */
static int set_time(const struct probe_row *r) {
    struct timezone zone = {0, 0};
    (void)r;
    if (syscall(SYS_gettimeofday, NULL, &zone) < 0)
        return -errno;
    return probe_done(syscall(SYS_settimeofday, NULL, &zone));
}

static int set_name(const struct probe_row *r) {
    char name[256];
    (void)r;
    if (gethostname(name, sizeof(name)) < 0)
        return -errno;
    return probe_done(sethostname(name, strlen(name)));
}

static int watch_all(const struct probe_row *r) {
    return probe_opened((int)syscall(SYS_fanotify_init, r->a, O_RDONLY));
}

static int watch(const struct probe_row *r) {
    int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = probe_done(inotify_add_watch(fd, probe_path(r->path), IN_CREATE));
    close(fd);
    return e;
}

static int landlock(const struct probe_row *r) {
    (void)r;
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
    return probe_done(syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION));
}

/* Copies this program to `to`. */
static int copy_self(int to) {
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n;
    if (from < 0)
        return -errno;
    while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
        ;
    close(from);
    return n < 0 ? -errno : 0;
}

static int run_memory(const struct probe_row *r) {
    char name[64];
    int fd = memfd_create("probe", 0);
    (void)r;
    if (fd < 0)
        return -errno;
    int e = copy_self(fd);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (e == 0)
        e = probe_execute(name);
    close(fd);
    return e;
}

static int secret_memory(const struct probe_row *r) {
    (void)r;
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
    return probe_opened((int)syscall(SYS_memfd_secret, 0));
}

static int run_copy(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
    if (fd < 0)
        return -errno;
    int e = copy_self(fd);
    close(fd);
    if (e == 0)
        e = probe_execute(path);
    unlink(path);
    return e;
}

static int map_executable(const struct probe_row *r) {
    (void)r;
    void *at =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -errno : 0;
}

static int sync_quota(const struct probe_row *r) {
    (void)r;
    return probe_done(syscall(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
}

static int hang_up(const struct probe_row *r) {
    (void)r;
    return probe_done(vhangup());
}

static int raise_limit(const struct probe_row *r) {
    struct rlimit limit;
    (void)r;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    limit.rlim_max++;
    return probe_done(setrlimit(RLIMIT_NOFILE, &limit));
}

static int lock_memory(const struct probe_row *r) {
    (void)r;
    return probe_done(mlockall(MCL_CURRENT));
}

static int new_session(const struct probe_row *r) {
    (void)r;
    return probe_done(setsid());
}

const struct probe_row probe_kernel[] = {
    {150, add_key, NULL, 0, 0},
    {151, find_key, NULL, 0, 0},
    {152, session_keyring, NULL, 0, 0},
    {153, read_key, NULL, 0, 0},
    {154, persistent_keyring, NULL, 0, 0},
    {155, bpf_program, NULL, 0, 0},
    {156, bpf_map, NULL, 0, 0},
    {157, perf_event, NULL, 0, 0},
    {158, user_faults, NULL, UFFD_USER_MODE_ONLY, 0},
    {159, user_faults, NULL, 0, 0},
    {160, uring, NULL, 0, 0},
    {161, old_aio, NULL, 0, 0},
    {162, load_module, NULL, 0, 0},
    {163, load_kernel, NULL, 0, 0},
    {164, restart, NULL, 0, 0},
    {165, swap, "/nonexistent", 0, 0},
    {166, account, "/nonexistent", 0, 0},
    {167, kernel_log, NULL, 0, 0},
    {168, ports, NULL, 0, 0},
    {169, set_time, NULL, 0, 0},
    {170, set_name, NULL, 0, 0},
    {171, watch_all, NULL, FAN_CLASS_NOTIF, 0},
    {172, watch, "W", 0, 0},
    {173, landlock, NULL, 0, 0},
    {174, run_memory, NULL, 0, 0},
    {175, secret_memory, NULL, 0, 0},
    {176, run_copy, "W/copy", 0, 0},
    {177, map_executable, NULL, 0, 0},
    {178, sync_quota, NULL, 0, 0},
    {179, hang_up, NULL, 0, 0},
    {180, raise_limit, NULL, 0, 0},
    {181, lock_memory, NULL, 0, 0},
    {182, new_session, NULL, 0, 0},
    /* Not of the table. */
    {248, watch_all, NULL, FAN_CLASS_NOTIF | FAN_REPORT_FID, 0},
    {0, NULL, NULL, 0, 0},
};
