#include "base/crypto.h"
#include "base/log.h"
#include "base/nullfd.h"
#include "sandbox/inside/launch.h"
#include "app/doctor.h"
#include "app/execpolicy_cmd.h"
#include "app/health.h"
#include "confine/fs_helper_main.h"
#include "app/options.h"
#include "app/sdnotify.h"
#include "app/server.h"
#include "escalate/escalate_wrapper.h"
#include "mcp/mcp.h"
#include "execserver.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/* Fills descriptors 0 to 2: else a socket could become the stdout of a command. */
static void fill_std_fds(void) {
    int fd;
    do
        fd = nullfd_open(O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* Raises the server's soft descriptor limit; returns the old limits, for commands. */
static struct rlimit raise_nofile(void) {
    struct rlimit old = {1024, 4096};
    if (getrlimit(RLIMIT_NOFILE, &old) == 0 && old.rlim_cur < old.rlim_max) {
        struct rlimit high = {old.rlim_max, old.rlim_max};
        (void)setrlimit(RLIMIT_NOFILE, &high);
    }
    return old;
}

static int fail(const char *what) {
    fprintf(stderr, "Error: %s\n", what);
    return 1;
}

/* Fixes the thresholds, so that memory of a large message returns to the system after it. */
static void tune_malloc(void) {
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    mallopt(M_TRIM_THRESHOLD, 256 * 1024);
    mallopt(M_ARENA_MAX, 1); /* threads mostly wait and hardly allocate */
}

static int serve(struct options *opt, bool *hung) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct server s;
    struct rlimit nofile = raise_nofile();
    int r = server_init(&s, opt, nofile, &e);
    if (r == 0)
        r = server_listen(&s, &e);
    int code = r < 0 ? fail(err_msg(&e)) : 0;
    if (r == 0 && options_unauthenticated_exposed(opt))
        fprintf(stderr, "WARNING: listening beyond loopback without authentication; anyone who can "
                        "reach this port can run commands (see --ws-auth, --require-auth)\n");
    if (r == 0)
        sdnotify_send(opt->notify_socket, "READY=1");
    if (r == 0 && (r = server_run(&s)) < 0)
        code = r == -EBUSY ? 1 : fail("the event loop failed");
    *hung = !server_fini(&s);
    return code;
}

/* Serves, then restores the flags of stdin and stdout: other processes may share them. */
static int run(struct options *opt) {
    int in_flags = fcntl(STDIN_FILENO, F_GETFL), out_flags = fcntl(STDOUT_FILENO, F_GETFL);
    bool hung = false;
    int code = serve(opt, &hung);
    if (opt->listen == OPTIONS_LISTEN_STDIO) {
        (void)fcntl(STDIN_FILENO, F_SETFL, in_flags);
        (void)fcntl(STDOUT_FILENO, F_SETFL, out_flags);
    }
    if (hung) /* a thread still uses the server's memory */
        _exit(code);
    return code;
}

int xs_server_stage(int argc, char **argv) {
    if (launcher_is_stage(argc, argv))
        launch_main(fs_helper_main);
    return 0;
}

int xs_server_run(int argc, char **argv) {
    if (argc > 0 && escalate_wrapper_is(argv[0])) /* in every program of a shell: at once */
        return escalate_wrapper_main(argc, argv);
    fill_std_fds();
    tune_malloc();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit fails with EFBIG instead */
    if (mcp_is(argc, argv)) {
        crypto_init();
        return mcp_main(argc, argv, raise_nofile());
    }
    if (execpolicy_cmd_is(argc, argv))
        return execpolicy_cmd_run(argc, argv, stdout, stderr);
    if (health_is(argc, argv))
        return health_run(argc, argv, stdout, stderr);
    struct options opt;
    switch (options_parse(argc, argv, &opt, stdout, stderr)) {
    case OPTIONS_EXIT_0: return 0;
    case OPTIONS_USAGE: return 2;
    case OPTIONS_ERROR: return 1;
    case OPTIONS_DOCTOR: return doctor_run(false, stdout);
    case OPTIONS_DOCTOR_JSON: return doctor_run(true, stdout);
    case OPTIONS_RUN: break;
    }
    log_init(opt.log_level, STDERR_FILENO);
    log_set_format(opt.log_format, log_is_journal(STDERR_FILENO, getenv("JOURNAL_STREAM")));
    crypto_init();
    if (options_auth_file_is_open(&opt))
        log_warn("every user can read %s: run `chmod o-rwx %s`", opt.auth_file, opt.auth_file);
    int code = run(&opt);
    options_fini(&opt);
    return code;
}
