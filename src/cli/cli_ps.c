#include "cli/cli_ps.h"

#include "cli/cli_detach.h"
#include "cli/cli_json.h"
#include "cli/cli_keep.h"
#include "cli/cli_link.h"
#include "cli/cli_probe.h"
#include "cli/cli_say.h"
#include "cli/cli_text.h"

#include <poll.h>

#define AT_ONCE 32    /* servers asked at a time */
#define EVERY_MS 1000 /* of -w */

/* Asks the servers of some processes, all at the same time. */
static void ask(struct cli *c, struct cli_probe *probes, size_t n) {
    for (size_t i = 0; i < n; i++)
        cli_probe_start(c, &probes[i]);
    for (;;) {
        struct pollfd p[AT_ONCE];
        nfds_t busy = 0;
        for (size_t i = 0; i < n; i++) {
            p[i] = (struct pollfd){.fd = -1};
            if (!probes[i].done) {
                p[i] = (struct pollfd){.fd = xs_client_fd(probes[i].client), .events = POLLIN};
                busy++;
            }
        }
        if (busy == 0)
            return;
        (void)poll(p, n, -1);
        for (size_t i = 0; i < n; i++) {
            if (!probes[i].done && p[i].revents != 0)
                xs_client_process(probes[i].client);
        }
    }
}

static void age_text(int64_t started_ms, char out[16]) {
    int64_t s = (cli_state_now_ms() - started_ms) / 1000;
    if (s < 0)
        s = 0;
    if (s < 120)
        snprintf(out, 16, "%llds", (long long)s);
    else if (s < 7200)
        snprintf(out, 16, "%lldm", (long long)s / 60);
    else if (s < 172800)
        snprintf(out, 16, "%lldh", (long long)s / 3600);
    else
        snprintf(out, 16, "%lldd", (long long)MIN(s / 86400, (int64_t)99999));
}

static void print_row(const struct cli_probe *p) {
    char age[16], state[48];
    _cleanup_free_ char *host = cli_text_dup(str_of(p->state.host), 40);
    _cleanup_free_ char *command = cli_text_dup(str_of(p->state.command), 60);
    age_text(p->state.started_ms, age);
    if (p->has_code)
        snprintf(state, sizeof state, "%.16s %d", p->what, p->code);
    else
        snprintf(state, sizeof state, "%.40s", p->what);
    printf("%-20s %-12s %6s  %-24s %s\n", p->state.name, state, age, host ? host : "?",
           command ? command : "?");
}

static void put_json(struct cli_json *j, const struct cli_probe *p) {
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "name", str_of(p->state.name));
    cli_json_str(j, "host", str_of(p->state.host));
    cli_json_str(j, "sessionId", str_of(p->state.session));
    cli_json_str(j, "processId", str_of(p->state.process));
    cli_json_str(j, "command", str_of(p->state.command));
    cli_json_bool(j, "tty", p->state.tty);
    cli_json_int(j, "startedAtMs", p->state.started_ms);
    cli_json_str(j, "state", str_of(p->what));
    if (p->has_code)
        cli_json_int(j, "exitCode", p->code);
    else
        cli_json_null(j, "exitCode");
    if (p->error != NULL)
        cli_json_str(j, "error", str_of(p->error));
    cli_json_close(j, '}');
}

/* Reads the state of a name; false if there is nothing to show. */
static bool take(struct cli *c, const char *directory, const char *name, struct cli_probe *p) {
    _cleanup_err_ struct err e = ERR_INIT;
    *p = (struct cli_probe){.cli = c};
    if (cli_keep_read(directory, name, &p->state, &e) == 0)
        return true;
    cli_say_warning(c, "%s: %s", name, err_msg(&e));
    return false;
}

/* The next names, at most AT_ONCE. Returns how many were used. */
static size_t show_some(struct cli *c, const char *directory, char **names, struct cli_json *j) {
    struct cli_probe probes[AT_ONCE];
    size_t used = 0, n = 0;
    for (; names[used] != NULL && n < AT_ONCE; used++)
        n += take(c, directory, names[used], &probes[n]);
    ask(c, probes, n);
    for (size_t i = 0; i < n; i++) {
        if (c->json)
            put_json(j, &probes[i]);
        else
            print_row(&probes[i]);
        if (probes[i].gone)
            cli_keep_remove(directory, probes[i].state.name, probes[i].state.session);
        cli_probe_fini(&probes[i]);
    }
    return used;
}

static int show(struct cli *c, const char *directory) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    char **names;
    if (cli_keep_names(directory, &names, &e) < 0)
        return cli_say_error(c, CLI_FAILED, "%s", err_msg(&e));
    cli_json_open(&j, NULL, '{');
    cli_json_open(&j, "processes", '[');
    if (!c->json)
        printf("%-20s %-12s %6s  %-24s %s\n", "NAME", "STATE", "AGE", "SERVER", "COMMAND");
    for (size_t at = 0; names[at] != NULL;)
        at += show_some(c, directory, names + at, &j);
    cli_keep_names_free(names);
    cli_json_close(&j, ']');
    cli_json_close(&j, '}');
    if (c->json)
        return cli_json_print(&j, STDOUT_FILENO) == 0 ? 0 : CLI_FAILED;
    return fflush(stdout) == 0 ? 0 : CLI_FAILED;
}

int cli_ps(struct cli *c) {
    _cleanup_free_ char *directory = cli_detach_directory(c);
    int status = directory != NULL ? 0 : CLI_FAILED;
    if (status != 0 || !cli_has(c, CLI_OPT_PS_WATCH))
        return status != 0 ? status : show(c, directory);
    while (status == 0) {
        if (isatty(STDOUT_FILENO) && !c->json)
            printf("\033[H\033[J");
        status = show(c, directory);
        (void)poll(NULL, 0, EVERY_MS);
    }
    return status;
}
