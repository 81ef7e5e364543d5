#include "base/crypto.h"
#include "cli/cli_attach.h"
#include "cli/cli_cp.h"
#include "cli/cli_files.h"
#include "cli/cli_help.h"
#include "cli/cli_ls.h"
#include "cli/cli_ps.h"
#include "cli/cli_report.h"
#include "cli/cli_run.h"
#include "cli/cli_say.h"
#include "cli/cli_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

static int (*const commands[CLI_COMMANDS])(struct cli *c) = {
    [CLI_RUN] = cli_run,
    [CLI_SHELL] = cli_run,
    [CLI_PS] = cli_ps,
    [CLI_ATTACH] = cli_attach,
    [CLI_LOGS] = cli_attach_logs,
    [CLI_WAIT] = cli_attach_wait,
    [CLI_KILL] = cli_attach_kill,
    [CLI_CP] = cli_cp,
    [CLI_LS] = cli_ls,
    [CLI_CAT] = cli_files_cat,
    [CLI_WRITE] = cli_files_write,
    [CLI_STAT] = cli_files_stat,
    [CLI_RM] = cli_files_rm,
    [CLI_MKDIR] = cli_files_mkdir,
    [CLI_MV] = cli_files_mv,
    [CLI_CHMOD] = cli_files_chmod,
    [CLI_WATCH] = cli_files_watch,
    [CLI_INFO] = cli_server_info,
    [CLI_PING] = cli_server_ping,
    [CLI_ENV] = cli_server_env,
    [CLI_COMPLETION] = cli_server_completion,
};

/* Descriptors 0 to 2 are open, so that none of ours takes their place. */
static void open_streams(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* The token leaves the environment: programs that we start would have it too. */
static char *take_token(void) {
    const char *value = getenv("XS_TOKEN");
    char *token = value != NULL && *value != '\0' ? strdup(value) : NULL;
    unsetenv("XS_TOKEN");
    return token;
}

static int usage(struct cli *c, const struct err *e) {
    bool known = c->args.command != CLI_COMMANDS;
    return cli_say_error(c, CLI_USAGE, "%s; see 'xs %s%s--help'", err_msg(e),
                         known ? cli_table_commands[c->args.command].name : "", known ? " " : "");
}

static int run(struct cli *c) {
    if (cli_has(c, CLI_OPT_HELP)) {
        cli_help_print(stdout, c->args.command);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    if (cli_has(c, CLI_OPT_VERSION)) {
        cli_help_version(stdout);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    int status = cli_report_open(c);
    return status != 0 ? status : commands[c->args.command](c);
}

int main(int argc, char **argv) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct cli c = {.args = {.command = CLI_COMMANDS}};
    open_streams();
    signal(SIGPIPE, SIG_IGN);
    crypto_init();
    _cleanup_free_ char *token = take_token();
    int r = cli_args_parse(argc, argv, &c.args, &e);
    c.token = token;
    c.quiet = cli_has(&c, CLI_OPT_QUIET);
    c.json = cli_has(&c, CLI_OPT_JSON);
    c.verbose = c.quiet ? 0 : (int)MIN(c.args.count[CLI_OPT_VERBOSE], 2u);
    const char *plain = getenv("NO_COLOR");
    c.colour = isatty(STDERR_FILENO) && (plain == NULL || *plain == '\0');
    int status = r < 0 ? usage(&c, &e) : run(&c);
    cli_args_fini(&c.args);
    return status;
}
