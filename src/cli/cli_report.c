#include "cli/cli_report.h"

#include "cli/cli_io.h"
#include "cli/cli_json.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {
    [CLI_REPORT_EXITED] = "exited",
    [CLI_REPORT_SIGNALED] = "signaled",
    [CLI_REPORT_TIMED_OUT] = "timedOut",
    [CLI_REPORT_CANNOT_RUN] = "cannotRun",
    [CLI_REPORT_NOT_CONNECTED] = "notConnected",
    [CLI_REPORT_LOST] = "sessionLost",
    [CLI_REPORT_OUTPUT_LOST] = "outputLost",
    [CLI_REPORT_INTERRUPTED] = "interrupted",
    [CLI_REPORT_LEFT] = "left",
    [CLI_REPORT_READER_GONE] = "readerGone",
    [CLI_REPORT_OUTPUT_FAILED] = "outputFailed",
    [CLI_REPORT_DETACHED] = "detached",
};

int cli_report_open(struct cli *c) {
    int fd = (int)c->args.number[CLI_OPT_STATUS_FD];
    if (!cli_has(c, CLI_OPT_STATUS_FD))
        return 0;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        errno = EBADF;
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return cli_say_error(c, CLI_USAGE, "--status-fd: cannot write to descriptor %d: %s", fd,
                             strerror(errno));
    if (fd > STDERR_FILENO)
        (void)!fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int cli_report(struct cli *c, int status, enum cli_report_kind kind, const struct xs_exit *exit,
               const char *error, const char *name) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (!cli_has(c, CLI_OPT_STATUS_FD))
        return status;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "end", str_of(kinds[kind]));
    cli_json_int(&j, "status", status);
    if (exit != NULL && exit->exited)
        cli_io_output_exit(&j, exit);
    if (error != NULL)
        cli_json_str(&j, "error", str_of(error));
    if (name != NULL)
        cli_json_str(&j, "name", str_of(name));
    cli_json_close(&j, '}');
    int r = cli_json_print(&j, (int)c->args.number[CLI_OPT_STATUS_FD]);
    if (r < 0)
        cli_say_warning(c, "cannot write to descriptor %lld: %s",
                        (long long)c->args.number[CLI_OPT_STATUS_FD], strerror(-r));
    return status;
}
