#include "cli/cli_transfer.h"

#include "cli/cli_io.h"
#include "cli/cli_meter.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define METER_MS 200 /* between two lines */
#define WIDTH 80     /* if the terminal does not tell */

static void set_file(struct cli_transfer *t, const char *file) {
    if (file == NULL || (t->file != NULL && strcmp(t->file, file) == 0))
        return;
    free(t->file);
    t->file = strdup(file);
}

static bool has_meter(const struct cli *c) {
    return !c->quiet && !c->json && isatty(STDERR_FILENO);
}

/* Writes the line anew. */
static void show(struct cli_transfer *t) {
    char line[CLI_METER_LINE];
    unsigned rows, cols;
    int64_t now = cli_io_now();
    if (!has_meter(t->cli) || now - t->begun_ms < CLI_METER_DELAY_MS ||
        now - t->shown_ms < METER_MS)
        return;
    t->shown_ms = now;
    if (!cli_term_size(STDERR_FILENO, &rows, &cols))
        cols = WIDTH;
    struct cli_meter m = {.file = t->file != NULL ? t->file : t->from,
                          .bytes = t->bytes,
                          .total = t->total,
                          .rate = t->rate,
                          .still_ms = now - t->moved_ms};
    cli_meter_line(&m, cols, line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    t->cli->meter_shown = true;
}

static void end_line(struct cli_transfer *t) {
    if (!t->cli->meter_shown)
        return;
    t->shown_ms = 0;
    show(t);
    fprintf(stderr, "\n");
    t->cli->meter_shown = false;
}

static int on_progress(void *user, const struct xs_progress *p) {
    struct cli_transfer *t = user;
    if (p->warning != NULL)
        cli_say_warning(t->cli, "%s", p->warning);
    set_file(t, p->file);
    if (p->bytes != t->bytes)
        t->moved_ms = cli_io_now();
    t->bytes = p->bytes;
    t->total = p->total;
    t->files = p->files;
    t->rate = p->rate;
    return 0;
}

void cli_transfer_moved(struct cli_transfer *t, const char *file, uint64_t bytes) {
    int64_t now = cli_io_now();
    set_file(t, file);
    t->bytes += bytes;
    t->moved_ms = now;
    if (now > t->begun_ms)
        t->rate = (double)t->bytes * 1000 / (double)(now - t->begun_ms);
    if (t->cli->meter_shown || now - t->begun_ms >= CLI_METER_DELAY_MS)
        show(t);
}

struct waiting {
    bool done;
    int result;
};

static void on_done(struct xs_call *call, int result) {
    struct waiting *w = call->user;
    w->done = true;
    w->result = result;
}

/* The message about a copy that failed. The library names the file that is to blame, which may be
 * one below the operand. */
static int fail(struct cli_transfer *t, const struct xs_error *e) {
    const char *text = xs_error_text(e), *tail = ": is a directory";
    size_t n = strlen(t->from), len = strlen(text);
    int status = cli_say_status(xs_error_code(e), CLI_FAILED);
    const char *what = strncmp(text, t->from, n) == 0 ? "" : t->from;
    const char *hint = len > strlen(tail) && strcmp(text + len - strlen(tail), tail) == 0 &&
                               !cli_has(t->cli, CLI_OPT_RECURSIVE)
                           ? " (use -r)"
                           : "";
    return cli_say_error(t->cli, status, "%s%s%s%s", what, *what != '\0' ? ": " : "", text, hint);
}

/* Runs a copy to its end; the meter goes on while nothing comes. */
static int finish(struct cli_transfer *t, struct xs_client *client, struct waiting *w, int r) {
    while (r >= 0 && !w->done) {
        struct pollfd p = {.fd = xs_client_fd(client), .events = POLLIN};
        if (poll(&p, 1, has_meter(t->cli) ? METER_MS : -1) > 0)
            xs_client_process(client);
        show(t);
    }
    end_line(t);
    r = r >= 0 ? w->result : r;
    if (r > 0) {
        t->left_out += (uint64_t)r;
        return CLI_FAILED;
    }
    if (r == 0)
        return 0;
    return fail(t, xs_client_error(client));
}

int cli_transfer_up(struct cli_transfer *t, struct cli_place_host *to) {
    struct waiting w = {.done = false};
    struct xs_call call = {.done = on_done, .user = &w};
    t->begun_ms = t->moved_ms = cli_io_now();
    int r = xs_copy_upload(to->client, t->from, t->to, t->options, on_progress, t, &call);
    return finish(t, to->client, &w, r);
}

int cli_transfer_down(struct cli_transfer *t, struct cli_place_host *from) {
    struct waiting w = {.done = false};
    struct xs_call call = {.done = on_done, .user = &w};
    t->begun_ms = t->moved_ms = cli_io_now();
    int r = xs_copy_download(from->client, t->from, t->to, t->options, on_progress, t, &call);
    return finish(t, from->client, &w, r);
}

void cli_transfer_fini(struct cli_transfer *t) {
    free(t->file);
    t->file = NULL;
}
