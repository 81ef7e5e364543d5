/*
 * Writes the seccomp programs (filters.h) as C to standard output. Runs at build time, so that a
 * launch needs neither libseccomp nor its work.
 *
 *     filters-gen ARCHITECTURE     the target, as meson calls it: x86_64, aarch64
 */
#include "sandbox/inside/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define GEN_SETDELEG 1040 /* F_SETDELEG, Linux 6.19 */
#define GEN_CODE_MAX 4096 /* instructions of a program: the kernel's maximum */

/* Calls of kernels newer than the library; their numbers are equal everywhere. */
#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR 469

/* The library's names; errno values and arguments are equal on all architectures. */
static const struct gen_arch {
    const char *name;
    uint32_t token; /* also the kernel's seccomp_data.arch */
} gen_archs[] = {{"x86_64", SCMP_ARCH_X86_64}, {"aarch64", SCMP_ARCH_AARCH64}};

/* Ways past the filter: system calls made by the kernel, or by and from other processes. */
static const char *const gen_always[] = {
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "pidfd_getfd",
};

/* Calls that look into, or change, another process. Debuggers work with the network enabled. */
static const char *const gen_no_trace[] = {
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
};

static const char *const gen_no_network[] = {
    "accept", "accept4", "bind", "connect", "listen", "recvmmsg", "sendmmsg", "setsockopt",
};

static const char *const gen_confined[] = {
    "acct",
    "add_key",
    "bpf",
    "clock_settime",
    "clock_settime64",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount",
    "umount2",
    "userfaultfd",
    "vhangup",
};

/* Calls that Landlock does not cover: owners, modes, times, attributes; IPC by number or name. */
static const char *const gen_alone[] = {
    "chmod",        "chown",     "fchmod",    "fchmodat",    "fchown",       "fchownat",
    "fremovexattr", "fsetxattr", "futimesat", "lchown",      "lremovexattr", "lsetxattr",
    "mq_open",      "mq_unlink", "msgget",    "removexattr", "semget",       "setxattr",
    "shmat",        "shmget",    "utime",     "utimensat",   "utimes",
};

/* What the HTTP program never does: run programs, change files, serve, change what it may do. */
static const char *const gen_http[] = {
    "accept",     "accept4",   "chroot",   "copy_file_range", "creat",   "execve",
    "execveat",   "fallocate", "fork",     "ftruncate",       "kill",    "link",
    "linkat",     "listen",    "mkdir",    "mkdirat",         "mknod",   "mknodat",
    "pidfd_open", "rename",    "renameat", "renameat2",       "rmdir",   "symlink",
    "symlinkat",  "truncate",  "unlink",   "unlinkat",        "unshare", "vfork",
};

/* A program being made. */
struct gen {
    scmp_filter_ctx c;
    uint32_t arch;
    unsigned numbers[8]; /* denied calls that have no name */
    size_t number_count;
};

static void gen_must(int r, const char *what) {
    if (r >= 0)
        return;
    fprintf(stderr, "filters-gen: %s: %s\n", what, strerror(-r));
    exit(1);
}

/* The library takes the build machine's numbers, for any architecture. */
static void gen_deny(struct gen *g, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (seccomp_syscall_resolve_name_arch(g->arch, names[i]) < 0)
            continue; /* this architecture lacks it */
        int nr = seccomp_syscall_resolve_name(names[i]);
        gen_must(seccomp_rule_add(g->c, SCMP_ACT_ERRNO(EPERM), nr, 0), names[i]);
    }
}

static void gen_deny_number(struct gen *g, unsigned nr) {
    gen_must(g->number_count < ARRAY_LEN(g->numbers) ? 0 : -ENOBUFS, "numbers");
    g->numbers[g->number_count++] = nr;
}

/* Compares an argument: its value; the bits of a mask. */
#define ARG_IS(arg, op, value) ((struct scmp_arg_cmp){(arg), (op), (value), 0})
#define ARG_BITS(arg, mask, value)                                                                 \
    ((struct scmp_arg_cmp){(arg), SCMP_CMP_MASKED_EQ, (mask), (value)})

/* Denies a call if one argument compares so. */
static void gen_deny_if(struct gen *g, int nr, struct scmp_arg_cmp arg) {
    gen_must(seccomp_rule_add_array(g->c, SCMP_ACT_ERRNO(EPERM), nr, 1, &arg), "rule");
}

/* The kernel uses only the low 32 bits of an int argument. To deny a value, compare these bits; to
 * deny all others, compare the whole: a value with high bits set is another one. */
#define LOW_IS(arg, value) ARG_BITS(arg, 0xffffffffull, value)

/* AF_UNIX datagram sockets (and raw ones, which are equal) can send to any address, even those of a
 * pair; the arguments of sendmsg() do not show which. */
static void gen_unix_pairs(struct gen *g, int nr) {
    gen_deny_if(g, nr, ARG_BITS(1, 0xf, SOCK_DGRAM));
    gen_deny_if(g, nr, ARG_BITS(1, 0xf, SOCK_RAW));
}

static void gen_restricted(struct gen *g) {
    gen_deny(g, gen_no_network, ARRAY_LEN(gen_no_network));
    gen_deny_if(g, SCMP_SYS(socket), ARG_IS(0, SCMP_CMP_NE, AF_UNIX));
    gen_unix_pairs(g, SCMP_SYS(socket));
    /* send() is sendto() without an address */
    gen_deny_if(g, SCMP_SYS(sendto), ARG_IS(4, SCMP_CMP_NE, 0));
    /* shells ask this about stdin: any other error tells them it is a socket */
    gen_must(seccomp_rule_add(g->c, SCMP_ACT_ERRNO(ENOTSOCK), SCMP_SYS(getpeername), 0), "rule");
}

/* Sockets of a managed network: families 2 and 10, and 1 on request; none between or beyond. */
static void gen_managed(struct gen *g, bool with_unix) {
    uint64_t first = with_unix ? AF_UNIX : AF_INET;
    gen_deny_if(g, SCMP_SYS(socket), ARG_IS(0, SCMP_CMP_GT, AF_INET6));
    for (uint64_t family = 0; family < AF_INET6; family++) {
        if (family < first || family > AF_INET)
            gen_deny_if(g, SCMP_SYS(socket), ARG_IS(0, SCMP_CMP_EQ, family));
    }
}

static void gen_network(struct gen *g, enum filter_network network) {
    if (network == FILTER_ENABLED) {
        gen_deny_if(g, SCMP_SYS(socket), LOW_IS(0, AF_VSOCK));
        gen_deny_if(g, SCMP_SYS(socketpair), LOW_IS(0, AF_VSOCK));
        return;
    }
    if (network == FILTER_RESTRICTED)
        gen_restricted(g);
    else
        gen_managed(g, network == FILTER_INET_UNIX);
    gen_deny_if(g, SCMP_SYS(socketpair), ARG_IS(0, SCMP_CMP_NE, AF_UNIX));
    if (network != FILTER_INET_UNIX)
        gen_unix_pairs(g, SCMP_SYS(socketpair));
    gen_deny(g, gen_no_trace, ARRAY_LEN(gen_no_trace));
}

/* More that Landlock does not cover: file attributes that ioctl() sets through a read-only
 * descriptor, whatever the size of their argument, and btrfs subvolumes. */
static void gen_attributes(struct gen *g) {
    static const unsigned commands[] = {
        0x6613,                         /* FS_IOC_SET_ENCRYPTION_POLICY */
        0x9401, 0x940e, 0x940f, 0x9417, /* BTRFS_IOC_SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, */
        0x9418, 0x941a, 0x943f,         /* those with _V2; SUBVOL_SETFLAGS */
    };
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        gen_deny_if(g, SCMP_SYS(ioctl), ARG_BITS(1, 0xffffull, commands[i]));
    /* All _IOW('f', ...) and _IOW('X', ...): flags, version, verity; extended attributes. */
    gen_deny_if(g, SCMP_SYS(ioctl), ARG_BITS(1, 0xc000ff00ull, _IOC(_IOC_WRITE, 'f', 0, 0)));
    gen_deny_if(g, SCMP_SYS(ioctl), ARG_BITS(1, 0xc000ff00ull, _IOC(_IOC_WRITE, 'X', 0, 0)));
}

static void gen_files(struct gen *g, enum filter_files files) {
    if (files >= FILTER_CONFINED) {
        gen_deny(g, gen_confined, ARRAY_LEN(gen_confined));
        gen_deny_number(g, NR_OPEN_TREE_ATTR);
        /* It can put a child into another cgroup, even through a read-only mount. The C library
         * falls back to clone(). */
        gen_must(seccomp_rule_add(g->c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
        /* A lease on a readable file delays everybody who opens it for writing. */
        gen_deny_if(g, SCMP_SYS(fcntl), LOW_IS(1, F_SETLEASE));
        gen_deny_if(g, SCMP_SYS(fcntl), LOW_IS(1, GEN_SETDELEG));
    }
    if (files >= FILTER_HOST_PIDS) /* limits can end another process */
        gen_deny_if(g, SCMP_SYS(prlimit64), ARG_IS(0, SCMP_CMP_NE, 0));
    if (files >= FILTER_ALONE) {
        gen_deny(g, gen_alone, ARRAY_LEN(gen_alone));
        gen_attributes(g);
        gen_deny_number(g, NR_FCHMODAT2);
        gen_deny_number(g, NR_SETXATTRAT);
        gen_deny_number(g, NR_REMOVEXATTRAT);
        gen_deny_number(g, NR_FILE_SETATTR);
    }
}

/* Denies a call that opens a file to change it: the flags are argument `arg`. */
static void gen_deny_writing(struct gen *g, int nr, unsigned arg) {
    gen_deny_if(g, nr, ARG_BITS(arg, O_ACCMODE, O_WRONLY));
    gen_deny_if(g, nr, ARG_BITS(arg, O_ACCMODE, O_RDWR));
    gen_deny_if(g, nr, ARG_BITS(arg, O_ACCMODE, O_ACCMODE)); /* as good as O_RDWR for ioctl() */
    gen_deny_if(g, nr, ARG_BITS(arg, O_CREAT, O_CREAT));
    gen_deny_if(g, nr, ARG_BITS(arg, O_TRUNC, O_TRUNC));
}

/* Threads, but no processes: curl resolves names in threads. */
static void gen_only_threads(struct gen *g) {
    gen_deny_if(g, SCMP_SYS(clone), ARG_BITS(0, CLONE_THREAD, 0));
    gen_must(seccomp_rule_add(g->c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
}

/* Sockets of the internet, and of routes, which the resolver asks for its own addresses. */
static void gen_client(struct gen *g) {
    static const int families[] = {AF_INET, AF_INET6};
    gen_deny_if(g, SCMP_SYS(socket), ARG_IS(0, SCMP_CMP_GT, AF_NETLINK));
    for (uint64_t family = 0; family < AF_NETLINK; family++) {
        if (family != AF_INET && family != AF_INET6)
            gen_deny_if(g, SCMP_SYS(socket), ARG_IS(0, SCMP_CMP_EQ, family));
    }
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const struct scmp_arg_cmp raw[] = {ARG_IS(0, SCMP_CMP_EQ, (uint64_t)families[i]),
                                           ARG_BITS(1, 0xf, SOCK_RAW)};
        gen_must(seccomp_rule_add_array(g->c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2, raw),
                 "raw sockets");
    }
    gen_deny_if(g, SCMP_SYS(socketpair), ARG_IS(0, SCMP_CMP_NE, AF_UNIX));
    gen_unix_pairs(g, SCMP_SYS(socketpair));
}

static void gen_http_rules(struct gen *g) {
    gen_deny(g, gen_no_trace, ARRAY_LEN(gen_no_trace));
    gen_files(g, FILTER_ALONE);
    gen_deny(g, gen_http, ARRAY_LEN(gen_http));
    gen_only_threads(g);
    gen_client(g);
    if (seccomp_syscall_resolve_name_arch(g->arch, "open") >= 0)
        gen_deny_writing(g, SCMP_SYS(open), 1);
    gen_deny_writing(g, SCMP_SYS(openat), 2);
    /* Its flags lie in memory. */
    gen_must(seccomp_rule_add(g->c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0), "openat2");
}

static void gen_rules(struct gen *g, unsigned program) {
    gen_must(seccomp_attr_set(g->c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "attribute");
    gen_must(seccomp_attr_set(g->c, SCMP_FLTATR_CTL_OPTIMIZE, 2), "tree"); /* not a list */
    gen_deny(g, gen_always, ARRAY_LEN(gen_always));
    if (program == FILTER_HTTP) {
        gen_http_rules(g);
    } else {
        gen_network(g, (enum filter_network)(program / FILTER_FILES));
        gen_files(g, (enum filter_files)(program % FILTER_FILES));
    }
    /* Types into the terminal of the next reader. */
    gen_deny_if(g, SCMP_SYS(ioctl), LOW_IS(1, TIOCSTI));
    gen_deny_if(g, SCMP_SYS(ioctl), LOW_IS(1, TIOCLINUX));
}

/* Goes before the library's program: numbers it cannot translate. Other architectures skip it. */
static size_t gen_numbers(const struct gen *g, struct sock_filter *out) {
    size_t n = g->number_count, len = 0;
    if (n == 0)
        return 0;
    out[len++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    out[len++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, g->arch, 0, (uint8_t)(n + 2));
    out[len++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++)
        out[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, g->numbers[i],
                                                  (uint8_t)(n - 1 - i), i == n - 1);
    out[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    return len;
}

/* The library can write its program only to a descriptor. */
static size_t gen_export(scmp_filter_ctx c, struct sock_filter *out, size_t room) {
    int fd = memfd_create("filter", MFD_CLOEXEC);
    gen_must(fd < 0 ? -errno : seccomp_export_bpf(c, fd), "export");
    ssize_t n = pread(fd, out, room * sizeof *out, 0);
    close(fd);
    gen_must(n <= 0 || (size_t)n == room * sizeof *out ? -E2BIG : 0, "program");
    return (size_t)n / sizeof *out;
}

/* Prints one program; returns the number of its instructions. */
static size_t gen_program(uint32_t arch, unsigned program) {
    static struct sock_filter code[GEN_CODE_MAX];
    struct gen g = {.c = seccomp_init(SCMP_ACT_ALLOW), .arch = arch};
    gen_must(g.c == NULL ? -ENOMEM : 0, "library");
    if (arch != seccomp_arch_native()) {
        gen_must(seccomp_arch_remove(g.c, SCMP_ARCH_NATIVE), "own architecture");
        gen_must(seccomp_arch_add(g.c, arch), "architecture");
    }
    gen_rules(&g, program);
    size_t n = gen_numbers(&g, code);
    n += gen_export(g.c, code + n, GEN_CODE_MAX - n);
    seccomp_release(g.c);
    for (size_t i = 0; i < n; i++)
        printf("    {0x%02x, %u, %u, 0x%x},\n", (unsigned)code[i].code, (unsigned)code[i].jt,
               (unsigned)code[i].jf, code[i].k);
    return n;
}

static void gen_all(uint32_t arch) {
    size_t start[FILTER_PROGRAMS + 1] = {0};
    /* Do not ask this kernel: the build may run under an emulator, or on an old one. */
    gen_must(seccomp_api_set(3), "level of the interface");
    printf("#include \"sandbox/inside/filters.h\"\n\nconst struct sock_filter filter_code[] = {\n");
    for (unsigned i = 0; i < FILTER_PROGRAMS; i++)
        start[i + 1] = start[i] + gen_program(arch, i);
    gen_must(start[FILTER_PROGRAMS] > UINT16_MAX ? -E2BIG : 0, "programs");
    printf("};\n\nconst uint16_t filter_start[FILTER_PROGRAMS + 1] = {\n");
    for (unsigned i = 0; i <= FILTER_PROGRAMS; i++)
        printf("    %zu,\n", start[i]);
    printf("};\n");
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(gen_archs); i++) {
        if (strcmp(argv[1], gen_archs[i].name) == 0) {
            gen_all(gen_archs[i].token);
            return fflush(stdout) == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "filters-gen: no filters for this architecture\n");
    return 1;
}
