#include "cli/cli_launch.h"

#include "base/utf8.h"
#include "cli/cli_json.h"
#include "cli/cli_path.h"
#include "cli/cli_say.h"
#include "cli/cli_term.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Joins the pieces of a spool into a file that is gone when the command begins. */
#define SPOOL_SCRIPT                                                                               \
    "for f in \"$0\"/*; do cat \"$f\" && rm -f \"$f\" || exit 126; done >\"$0/.all\"; "            \
    "exec <\"$0/.all\"; rm -rf -- \"$0\"; exec \"$@\""
#define COMMAND_SHOWN 1024 /* bytes of a command that people see */

static bool is_null_device(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

void cli_launch_streams(struct cli *c, struct xs_client *client, struct cli_launch *l) {
    bool shell = c->args.command == CLI_SHELL;
    *l = (struct cli_launch){.tty =
                                 cli_has(c, CLI_OPT_TTY) || (shell && !cli_has(c, CLI_OPT_NO_TTY))};
    if (cli_has(c, CLI_OPT_NO_STDIN) || cli_has(c, CLI_OPT_DETACH))
        return;
    if (!l->tty && is_null_device(STDIN_FILENO))
        return;
    l->input = true;
    if (l->tty || xs_client_can(client, "processCloseStdin"))
        return;
    l->spool = !isatty(STDIN_FILENO);
    cli_say_note(c, 1,
                 l->spool ? "the server cannot close stdin: the input goes through files there"
                          : "the server cannot close stdin: the command will not see its end");
}

/* An option bag, and the first error. */
struct bag {
    struct xs_options *o;
    int error;
};

static void add(struct bag *b, const char *key, const char *value) {
    if (b->error == 0)
        b->error = xs_options_add(b->o, key, value);
}

static void put(struct bag *b, const char *key, const char *value) {
    if (b->error == 0)
        b->error = xs_options_str(b->o, key, value);
}

static void num(struct bag *b, const char *key, int64_t value) {
    if (b->error == 0)
        b->error = xs_options_num(b->o, key, value);
}

static void set_argv(struct cli *c, struct xs_client *client, const char *spool, struct bag *b) {
    const char *shell = xs_client_info(client)->shell;
    if (spool != NULL) {
        add(b, XS_OPT_ARGV, "/bin/sh");
        add(b, XS_OPT_ARGV, "-c");
        add(b, XS_OPT_ARGV, SPOOL_SCRIPT);
        add(b, XS_OPT_ARGV, spool);
    }
    if (c->args.command == CLI_SHELL) {
        char arg0[256];
        struct str base = cli_path_base(shell);
        snprintf(arg0, sizeof arg0, "-%.*s", (int)MIN(base.n, (size_t)200), base.p);
        add(b, XS_OPT_ARGV, shell);
        if (spool == NULL)
            put(b, XS_OPT_ARG0, arg0); /* a login shell reads its profile */
        return;
    }
    if (cli_has(c, CLI_OPT_COMMAND)) {
        add(b, XS_OPT_ARGV, shell);
        add(b, XS_OPT_ARGV, "-c");
    }
    for (size_t i = 0; i < c->args.operand_count; i++)
        add(b, XS_OPT_ARGV, c->args.operands[i]);
}

/* `-e NAME=VALUE`, and `-e NAME` for one of ours. */
static int set_variable(struct bag *b, const char *text) {
    char *copy = NULL;
    const char *value = getenv(text);
    if (strchr(text, '=') != NULL) {
        add(b, XS_OPT_ENV, text);
        return 0;
    }
    if (value == NULL)
        return 0;
    if (asprintf(&copy, "%s=%s", text, value) < 0)
        return -ENOMEM;
    add(b, XS_OPT_ENV, copy);
    free(copy);
    return 0;
}

static void set_terminal(struct cli *c, struct xs_client *client, struct bag *b) {
    unsigned rows, cols;
    num(b, XS_OPT_TTY, 1);
    if (getenv("TERM") != NULL && set_variable(b, "TERM") < 0)
        b->error = XS_ENOMEM;
    if (!cli_term_size(STDIN_FILENO, &rows, &cols) && !cli_term_size(STDOUT_FILENO, &rows, &cols) &&
        !cli_term_size(STDERR_FILENO, &rows, &cols))
        return;
    if (!xs_client_can(client, "processStartSize")) {
        cli_say_note(c, 1, "the server cannot set the size of a terminal");
        return;
    }
    num(b, XS_OPT_ROWS, rows);
    num(b, XS_OPT_COLS, cols);
    c->rows = rows;
    c->cols = cols;
}

/* A number with k, m, g, t (powers of 1024) behind it; nice and oom may be negative. */
static bool parse_limit(const char *text, int64_t *out) {
    static const char units[] = "kmgt";
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || errno != 0 || *text == ' ' || *text == '+')
        return false;
    const char *unit = *end != '\0' ? strchr(units, *end | 32) : NULL;
    for (const char *u = units; unit != NULL && u <= unit; u++) {
        if (__builtin_mul_overflow(v, 1024, &v))
            return false;
    }
    *out = v;
    return unit != NULL ? end[1] == '\0' : *end == '\0';
}

static int set_limit(struct cli *c, struct bag *b, const char *text) {
    static const char *const keys[][2] = {
        {"memory", XS_OPT_LIMIT_MEMORY}, {"pids", XS_OPT_LIMIT_PIDS}, {"files", XS_OPT_LIMIT_FILES},
        {"nice", XS_OPT_LIMIT_NICE},     {"oom", XS_OPT_LIMIT_OOM},   {"cpu", XS_OPT_LIMIT_CPU}};
    size_t n = strcspn(text, "=");
    int64_t v;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (strlen(keys[i][0]) != n || strncmp(keys[i][0], text, n) != 0)
            continue;
        if (text[n] != '=' || !parse_limit(text + n + 1, &v))
            break;
        num(b, keys[i][1], v);
        return 0;
    }
    return cli_say_error(c, CLI_USAGE,
                         "--limit takes memory, pids, files, nice, oom or cpu, = and a number; "
                         "not '%.100s'",
                         text);
}

/* A managed network that opens some names. */
static int set_domains(struct cli *c, struct xs_client *client, struct bag *b) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (!xs_client_can(client, "networkProxyLaunch"))
        return cli_say_error(c, CLI_CANNOT,
                             "--allow-domain: this server has no network proxy (it lacks the "
                             "capability networkProxyLaunch)");
    cli_json_open(&j, NULL, '{');
    cli_json_bool(&j, "enforceManagedNetwork", true);
    cli_json_open(&j, "networkProxy", '{');
    cli_json_open(&j, "proxy", '{');
    cli_json_bool(&j, "enabled", true);
    cli_json_bool(&j, "enableSocks5", true);
    cli_json_bool(&j, "enableSocks5Udp", false);
    cli_json_bool(&j, "allowUpstreamProxy", false);
    cli_json_bool(&j, "dangerouslyAllowAllUnixSockets", false);
    cli_json_bool(&j, "allowLocalBinding", false);
    cli_json_str(&j, "mode", STR_LIT("full"));
    cli_json_open(&j, "domains", '{');
    for (size_t i = 0; i < c->args.pair_count; i++) {
        if (c->args.pairs[i].option == CLI_OPT_ALLOW_DOMAIN)
            cli_json_str(&j, c->args.pairs[i].value, STR_LIT("allow"));
    }
    for (int i = 0; i < 4; i++)
        cli_json_close(&j, '}');
    if (j.error < 0 || buf_putc(&j.b, '\0') < 0)
        return cli_say_error(c, CLI_CANNOT, "--allow-domain: the list is too long");
    put(b, XS_OPT_START_JSON, j.b.p);
    return 0;
}

/* Options that may be repeated. 0 or an exit status. */
static int set_pairs(struct cli *c, struct bag *b) {
    for (size_t i = 0; i < c->args.pair_count; i++) {
        const struct cli_pair *p = &c->args.pairs[i];
        int status = 0;
        if (p->option == CLI_OPT_ENV && set_variable(b, p->value) < 0)
            b->error = XS_ENOMEM;
        if (p->option == CLI_OPT_WRITABLE)
            add(b, XS_OPT_WRITABLE, p->value);
        if (p->option == CLI_OPT_LIMIT)
            status = set_limit(c, b, p->value);
        if (status != 0)
            return status;
    }
    return 0;
}

static int fill(struct cli *c, struct xs_client *client, const struct cli_launch *l,
                const char *spool, struct bag *b) {
    set_argv(c, client, spool, b);
    if (l->tty)
        set_terminal(c, client, b);
    else if (l->input && spool == NULL)
        num(b, XS_OPT_STDIN, 1);
    if (cli_has(c, CLI_OPT_WORKDIR))
        put(b, XS_OPT_CWD, cli_value(c, CLI_OPT_WORKDIR));
    if (cli_has(c, CLI_OPT_TIMEOUT))
        num(b, XS_OPT_TIMEOUT_MS, c->args.number[CLI_OPT_TIMEOUT]);
    if (cli_has(c, CLI_OPT_SANDBOX))
        put(b, XS_OPT_SANDBOX, cli_value(c, CLI_OPT_SANDBOX));
    if (cli_has(c, CLI_OPT_NET))
        num(b, XS_OPT_NETWORK, 1);
    int status = cli_has(c, CLI_OPT_ALLOW_DOMAIN) ? set_domains(c, client, b) : 0;
    return status != 0 ? status : set_pairs(c, b);
}

struct xs_options *cli_launch_options(struct cli *c, struct xs_client *client,
                                      const struct cli_launch *l, const char *spool, int *status) {
    struct bag b = {.o = xs_options_new()};
    *status = b.o != NULL ? fill(c, client, l, spool, &b) : CLI_FAILED;
    if (*status == 0 && b.error < 0)
        *status = cli_say_error(c, CLI_USAGE, "%s", xs_error_text(xs_options_error(b.o)));
    if (*status == 0)
        return b.o;
    xs_options_free(b.o);
    return NULL;
}

char *cli_launch_command(const struct cli *c) {
    _cleanup_buf_ struct buf b = BUF_INIT(COMMAND_SHOWN + 2);
    if (c->args.command == CLI_SHELL)
        return strdup("shell");
    for (size_t i = 0; i < c->args.operand_count; i++) {
        struct str word = str_of(c->args.operands[i]);
        if (i > 0 && buf_putc(&b, ' ') < 0)
            break;
        word.n = MIN(word.n, COMMAND_SHOWN - MIN(b.len, (size_t)COMMAND_SHOWN));
        if (buf_put(&b, word.p, word.n) < 0)
            break;
    }
    if (b.len == 0)
        return strdup("?");
    utf8_mend(b.p, b.len);
    return str_dup(buf_str(&b));
}
