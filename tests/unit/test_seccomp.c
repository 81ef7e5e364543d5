/* Each case runs in a child under a filter; its exit status is the errno of the call. */
#include "sandbox/inside/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#define KILLED 1000

static const struct plan restricted = {.confine_files = true, .network = PLAN_NET_RESTRICTED};
static const struct plan bare = {.network = PLAN_NET_RESTRICTED};
static const struct plan enabled = {.confine_files = true, .network = PLAN_NET_ENABLED};
static const struct plan managed = {.confine_files = true, .network = PLAN_NET_MANAGED};
static const struct plan managed_unix = {
    .confine_files = true, .network = PLAN_NET_MANAGED, .all_unix_sockets = true};
static const struct plan host_pids = {
    .confine_files = true, .network = PLAN_NET_RESTRICTED, .inherit_pids = true};

static int under(const struct plan *p, enum launch_backend b, long nr, const long args[6]) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_enter(p, b) < 0)
            _exit(250);
        long r = syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
        _exit(r < 0 ? errno : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

#define UNDER(plan, nr, ...) under(plan, LAUNCH_USERNS, nr, (long[6]){__VA_ARGS__})
#define HIGH (1l << 40)

static void only_pairs_of_unix_sockets(void **state) {
    (void)state;
    long fds[2];
    long p = (long)fds;
    assert_int_equal(UNDER(&restricted, SYS_socket, AF_UNIX, SOCK_STREAM), 0);
    assert_int_equal(UNDER(&restricted, SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC), 0);
    assert_int_equal(UNDER(&restricted, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, p), 0);
    for (int family = 0; family < 64; family++) {
        if (family != AF_UNIX) {
            assert_int_equal(UNDER(&restricted, SYS_socket, family, SOCK_STREAM), EPERM);
            assert_int_equal(UNDER(&restricted, SYS_socketpair, family, SOCK_STREAM, 0, p), EPERM);
        }
    }
    assert_int_equal(UNDER(&restricted, SYS_socket, HIGH | AF_INET, SOCK_STREAM), EPERM);
    /* Datagram sockets could send anywhere, those of a pair too; raw ones are the same. */
    static const long types[] = {SOCK_DGRAM, SOCK_RAW, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 HIGH | SOCK_DGRAM};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        assert_int_equal(UNDER(&restricted, SYS_socket, AF_UNIX, types[i]), EPERM);
        assert_int_equal(UNDER(&restricted, SYS_socketpair, AF_UNIX, types[i], 0, p), EPERM);
        assert_int_equal(UNDER(&managed, SYS_socketpair, AF_UNIX, types[i], 0, p), EPERM);
    }
}

static void calls_on_sockets(void **state) {
    (void)state;
    static const long denied[] = {SYS_connect, SYS_accept,   SYS_accept4,  SYS_bind,
                                  SYS_listen,  SYS_sendmmsg, SYS_recvmmsg, SYS_setsockopt};
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        assert_int_equal(UNDER(&restricted, denied[i], -1), EPERM);
        assert_int_equal(UNDER(&bare, denied[i], -1), EPERM);
        assert_int_equal(UNDER(&managed, denied[i], -1), EBADF);
        assert_int_equal(UNDER(&enabled, denied[i], -1), EBADF);
    }
    static const long allowed[] = {SYS_shutdown, SYS_getsockopt, SYS_getsockname, SYS_sendmsg,
                                   SYS_recvmsg,  SYS_recvfrom,   SYS_sendto};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        assert_int_equal(UNDER(&restricted, allowed[i], -1), EBADF);
    struct sockaddr to = {.sa_family = AF_UNIX};
    assert_int_equal(UNDER(&restricted, SYS_sendto, -1, 0, 0, 0, (long)&to, sizeof to), EPERM);
    assert_int_equal(UNDER(&restricted, SYS_getpeername, 0, 0, 0), ENOTSOCK);
    assert_int_equal(UNDER(&enabled, SYS_getpeername, -1, 0, 0), EBADF);
}

static void families_of_a_managed_network(void **state) {
    (void)state;
    for (int family = 0; family < 64; family++) {
        bool inet = family == AF_INET || family == AF_INET6;
        int r = UNDER(&managed, SYS_socket, family, SOCK_STREAM);
        assert_true(inet ? r != EPERM : r == EPERM);
        r = UNDER(&managed_unix, SYS_socket, family, SOCK_STREAM);
        assert_true(inet || family == AF_UNIX ? r != EPERM : r == EPERM);
    }
    assert_int_equal(UNDER(&managed, SYS_socket, HIGH | AF_UNIX, SOCK_STREAM), EPERM);
    assert_int_equal(UNDER(&managed_unix, SYS_socket, AF_UNIX, SOCK_DGRAM), 0);
}

static void the_enabled_network(void **state) {
    (void)state;
    assert_int_equal(UNDER(&enabled, SYS_socket, AF_INET, SOCK_STREAM), 0);
    assert_int_equal(UNDER(&enabled, SYS_socket, AF_UNIX, SOCK_DGRAM), 0);
    assert_int_equal(UNDER(&enabled, SYS_socket, AF_VSOCK, SOCK_STREAM), EPERM);
    assert_int_equal(UNDER(&enabled, SYS_socket, HIGH | AF_VSOCK, SOCK_STREAM), EPERM);
    /* Debuggers work in it, and only there. */
    assert_int_equal(UNDER(&enabled, SYS_ptrace, 0x7777, -1), ESRCH);
    assert_int_equal(UNDER(&restricted, SYS_ptrace, 0x7777, -1), EPERM);
    assert_int_equal(UNDER(&managed, SYS_process_vm_readv, -1), EPERM);
}

static void typing_into_a_terminal(void **state) {
    (void)state;
    const struct plan *const plans[] = {&restricted, &bare, &enabled, &managed};
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        assert_int_equal(UNDER(plans[i], SYS_ioctl, -1, TIOCSTI), EPERM);
        assert_int_equal(UNDER(plans[i], SYS_ioctl, -1, HIGH | TIOCSTI), EPERM);
        assert_int_equal(UNDER(plans[i], SYS_ioctl, -1, TIOCLINUX), EPERM);
        assert_int_equal(UNDER(plans[i], SYS_ioctl, -1, HIGH | TIOCLINUX), EPERM);
        assert_int_equal(UNDER(plans[i], SYS_ioctl, -1, TIOCGWINSZ), EBADF);
    }
}

static void managing_the_system(void **state) {
    (void)state;
    static const long calls[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_open_tree,
        SYS_move_mount,
        SYS_mount_setattr,
        SYS_fsopen,
        SYS_fsmount,
        SYS_fsconfig,
        SYS_fspick,
        467,
        SYS_setns,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_add_key,
        SYS_keyctl,
        SYS_request_key,
        SYS_quotactl,
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_kexec_load,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_acct,
        SYS_fanotify_init,
        SYS_vhangup,
        SYS_syslog,
        SYS_settimeofday,
        SYS_clock_settime,
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (UNDER(&restricted, calls[i], -1, -1, -1, -1, -1) != EPERM)
            fail_msg("call %ld is allowed", calls[i]);
        if (UNDER(&enabled, calls[i], -1, -1, -1, -1, -1) != EPERM)
            fail_msg("call %ld is allowed", calls[i]);
    }
    /* Where files are not confined, only ways past the filter are closed. */
    assert_true(UNDER(&bare, SYS_keyctl, 0x7777) != EPERM);
    static const long always[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
                                  SYS_pidfd_getfd};
    for (size_t i = 0; i < ARRAY_LEN(always); i++) {
        assert_int_equal(UNDER(&bare, always[i], -1, -1, -1), EPERM);
        assert_int_equal(UNDER(&enabled, always[i], -1, -1, -1), EPERM);
    }
}

static void without_namespaces(void **state) {
    (void)state;
    struct stat st;
    long args[6] = {AT_FDCWD, (long)"/nonexistent", 0};
    assert_int_equal(under(&restricted, LAUNCH_LANDLOCK, SYS_fchmodat, args), EPERM);
    assert_int_equal(under(&restricted, LAUNCH_USERNS, SYS_fchmodat, args), ENOENT);
    assert_int_equal(under(&restricted, LAUNCH_LANDLOCK, 452, args), EPERM);
    assert_int_equal(under(&restricted, LAUNCH_LANDLOCK, SYS_shmget, (long[6]){1, 1}), EPERM);
    args[2] = (long)&st;
    assert_int_equal(under(&restricted, LAUNCH_LANDLOCK, SYS_newfstatat, args), ENOENT);
    long other[6] = {getpid(), RLIMIT_CORE};
    assert_int_equal(under(&host_pids, LAUNCH_USERNS, SYS_prlimit64, other), EPERM);
    assert_int_equal(under(&restricted, LAUNCH_USERNS, SYS_prlimit64, other), 0);
    assert_int_equal(under(&host_pids, LAUNCH_USERNS, SYS_prlimit64, (long[6]){0, RLIMIT_CORE}), 0);
}

static void other_architectures(void **state) {
    (void)state;
#ifdef __x86_64__
    const long x32 = 0x40000000;
    assert_int_equal(UNDER(&restricted, x32 | SYS_getpid, 0), KILLED + SIGSYS);
    assert_int_equal(UNDER(&enabled, x32 | SYS_socket, AF_INET, SOCK_STREAM), KILLED + SIGSYS);
#endif
    assert_int_equal(UNDER(&restricted, SYS_getpid, 0), 0);
}

static void every_kind_has_a_program(void **state) {
    (void)state;
    for (unsigned i = 0; i < 3 * 2 * 2 * 2 * LAUNCH_BACKENDS; i++) {
        struct plan p = {.network = (enum plan_network)(i % 3),
                         .confine_files = (i / 3) % 2,
                         .all_unix_sockets = (i / 6) % 2,
                         .inherit_pids = (i / 12) % 2};
        enum launch_backend b = (enum launch_backend)(i / 24);
        assert_int_equal(under(&p, b, SYS_getpid, (long[6]){0}), 0);
        assert_int_equal(under(&p, b, SYS_ioctl, (long[6]){-1, TIOCSTI}), EPERM);
        assert_int_equal(under(&p, b, SYS_io_uring_setup, (long[6]){-1}), EPERM);
    }
}

int main(void) {
    if (getenv("EXEC_SERVER_EMULATED") != NULL) {
        printf("an emulator has no filters of its own\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_pairs_of_unix_sockets),
        cmocka_unit_test(calls_on_sockets),
        cmocka_unit_test(families_of_a_managed_network),
        cmocka_unit_test(the_enabled_network),
        cmocka_unit_test(typing_into_a_terminal),
        cmocka_unit_test(managing_the_system),
        cmocka_unit_test(without_namespaces),
        cmocka_unit_test(other_architectures),
        cmocka_unit_test(every_kind_has_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
