#include "cli/cli_files.h"

#include "cli/cli_json.h"
#include "cli/cli_place.h"
#include "cli/cli_say.h"
#include "cli/cli_stat.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define PIECE (1u << 20)

/* The message about a path, and the exit status. */
static int fail(struct cli *c, const struct cli_place_host *h, const char *path, int otherwise) {
    const struct xs_error *e = xs_client_error(h->client);
    int os = xs_error_os(e);
    if (xs_error_code(e) == XS_EREMOTE && os > 0)
        return cli_say_error(c, otherwise, "%s: %s", path, strerror(os));
    return cli_say_failure(c, e, path, otherwise);
}

static int output_failed(struct cli *c, int num) {
    if (num == EPIPE)
        return CLI_SIGNALED + 13;
    return cli_say_error(c, CLI_FAILED, "standard output: %s", strerror(num));
}

/* One operand; 0 or an exit status. CLI_LOST ends the command. */
typedef int operand_fn(struct cli *c, struct cli_place_host *h, const char *path);

/* Runs a function on each operand from number `first` on; the status is the worst. */
static int each(struct cli *c, size_t first, operand_fn *fn) {
    _cleanup_cli_places_ struct cli_places places = {.cli = c};
    int status = 0;
    for (size_t i = first; i < c->args.operand_count && status != CLI_LOST; i++) {
        struct cli_place_host *h;
        const char *path;
        int one = cli_place_operand(&places, c->args.operands[i], &h, &path);
        if (one != 0)
            return one;
        one = fn(c, h, path);
        status = one != 0 ? one : status;
    }
    return status;
}

/* -- cat -- */

static int write_out(const char *p, size_t n) {
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, p, n);
        if (done < 0 && errno == EAGAIN) /* whoever shares it may have made it so */
            (void)poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (done < 0 && errno != EINTR)
            return -errno;
        if (done < 0)
            continue;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int cat_json(const char *path, uint64_t offset, const char *piece, size_t n) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    cli_json_open(&j, NULL, '{');
    cli_json_path(&j, "path", str_of(path));
    cli_json_u64(&j, "offset", offset);
    cli_json_bytes(&j, "chunk", piece, n);
    cli_json_close(&j, '}');
    return cli_json_print(&j, STDOUT_FILENO);
}

static int cat_file(struct cli *c, struct cli_place_host *h, const char *path, struct xs_file *f) {
    _cleanup_free_ char *piece = malloc(PIECE);
    if (piece == NULL)
        return cli_say_error(c, CLI_FAILED, "out of memory");
    for (uint64_t at = 0;;) {
        int n = xs_file_read(f, at, piece, PIECE, NULL);
        if (n < 0)
            return fail(c, h, path, CLI_FAILED);
        if (n == 0)
            return 0;
        int r = c->json ? cat_json(path, at, piece, (size_t)n) : write_out(piece, (size_t)n);
        if (r < 0)
            return output_failed(c, -r);
        at += (uint64_t)n;
    }
}

static int cat_one(struct cli *c, struct cli_place_host *h, const char *path) {
    struct xs_file *f = NULL;
    if (xs_fs_open(h->fs, path, XS_OPEN_READ, &f, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    int status = cat_file(c, h, path, f);
    xs_file_free(f);
    return status;
}

int cli_files_cat(struct cli *c) {
    return each(c, 0, cat_one);
}

/* With --json a line tells what was done. */
static int done(struct cli *c, const char *what, const char *path) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (!c->json)
        return 0;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "event", str_of(what));
    cli_json_path(&j, "path", str_of(path));
    cli_json_close(&j, '}');
    int r = cli_json_print(&j, STDOUT_FILENO);
    return r < 0 ? output_failed(c, -r) : 0;
}

/* -- write -- */

/* Fills a piece from standard input; fewer bytes mean its end. -errno. */
static ssize_t fill(char *piece) {
    size_t n = 0;
    while (n < PIECE) {
        ssize_t got = read(STDIN_FILENO, piece + n, PIECE - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* What does not fit in one piece goes through a handle. */
static int write_long(struct cli *c, struct cli_place_host *h, const char *path, char *piece) {
    struct xs_file *f = NULL;
    ssize_t n = PIECE;
    int r = xs_fs_open(h->fs, path, XS_OPEN_REPLACE, &f, NULL);
    for (uint64_t at = 0; r >= 0 && n > 0;) {
        r = xs_file_write(f, at, piece, (size_t)n, NULL);
        at += (uint64_t)n;
        if (r >= 0)
            n = n < (ssize_t)PIECE ? 0 : fill(piece);
    }
    if (n < 0) {
        xs_file_free(f);
        return cli_say_error(c, CLI_FAILED, "standard input: %s", strerror((int)-n));
    }
    if (r >= 0)
        r = xs_file_close(f, NULL);
    else
        xs_file_free(f);
    return r < 0 ? fail(c, h, path, CLI_FAILED) : done(c, "written", path);
}

static int write_one(struct cli *c, struct cli_place_host *h, const char *path) {
    _cleanup_free_ char *piece = malloc(PIECE);
    if (piece == NULL)
        return cli_say_error(c, CLI_FAILED, "out of memory");
    ssize_t n = fill(piece);
    if (n < 0)
        return cli_say_error(c, CLI_FAILED, "standard input: %s", strerror((int)-n));
    if (n == (ssize_t)PIECE)
        return write_long(c, h, path, piece);
    unsigned flags = xs_client_can(h->client, "fsAtomicWrite") ? XS_ATOMIC : 0;
    if (xs_fs_write(h->fs, path, piece, (size_t)n, flags, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    return done(c, "written", path);
}

int cli_files_write(struct cli *c) {
    return each(c, 0, write_one);
}

/* -- stat -- */

static int stat_one(struct cli *c, struct cli_place_host *h, const char *path) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    struct xs_stat st = XS_INIT(struct xs_stat);
    if (xs_fs_stat(h->fs, path, XS_NOFOLLOW, &st, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    if (!c->json) {
        cli_stat_print(stdout, path, &st);
        return fflush(stdout) == 0 ? 0 : output_failed(c, errno);
    }
    cli_json_open(&j, NULL, '{');
    cli_json_path(&j, "path", str_of(path));
    cli_stat_json(&j, &st);
    cli_json_close(&j, '}');
    int r = cli_json_print(&j, STDOUT_FILENO);
    return r < 0 ? output_failed(c, -r) : 0;
}

int cli_files_stat(struct cli *c) {
    return each(c, 0, stat_one);
}

/* -- changes -- */

static int rm_one(struct cli *c, struct cli_place_host *h, const char *path) {
    unsigned flags = (cli_has(c, CLI_OPT_RECURSIVE) ? XS_RECURSIVE : 0u) |
                     (cli_has(c, CLI_OPT_FORCE) ? XS_FORCE : 0u);
    if (xs_fs_remove(h->fs, path, flags, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    return done(c, "removed", path);
}

int cli_files_rm(struct cli *c) {
    return each(c, 0, rm_one);
}

static int mkdir_one(struct cli *c, struct cli_place_host *h, const char *path) {
    unsigned flags = cli_has(c, CLI_OPT_PARENTS) ? XS_RECURSIVE : 0;
    if (xs_fs_mkdir(h->fs, path, flags, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    return done(c, "made", path);
}

int cli_files_mkdir(struct cli *c) {
    return each(c, 0, mkdir_one);
}

static int chmod_one(struct cli *c, struct cli_place_host *h, const char *path) {
    unsigned mode = (unsigned)strtoul(c->args.operands[0], NULL, 8);
    if (xs_fs_chmod(h->fs, path, mode, 0, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    return done(c, "changed", path);
}

int cli_files_chmod(struct cli *c) {
    const char *mode = c->args.operands[0];
    if (strlen(mode) > 5 || strspn(mode, "01234567") != strlen(mode) ||
        strtoul(mode, NULL, 8) > 07777)
        return cli_say_error(c, CLI_USAGE, "a mode is octal, as 644; not '%s'", mode);
    return each(c, 1, chmod_one);
}

int cli_files_mv(struct cli *c) {
    _cleanup_cli_places_ struct cli_places places = {.cli = c};
    _cleanup_free_ char *inside = NULL;
    struct cli_place_host *h, *other;
    const char *from, *to;
    struct xs_stat st = XS_INIT(struct xs_stat);
    int status = cli_place_operand(&places, c->args.operands[0], &h, &from);
    if (status == 0)
        status = cli_place_operand(&places, c->args.operands[1], &other, &to);
    if (status != 0)
        return status;
    if (h != other)
        return cli_say_error(c, CLI_USAGE, "mv works on one server; use cp and rm");
    if (xs_fs_stat(h->fs, to, 0, &st, NULL) == 0 && st.kind == XS_KIND_DIRECTORY) {
        inside = cli_path_join(to, cli_path_base(from));
        to = inside != NULL ? inside : to;
    }
    if (xs_fs_rename(h->fs, from, to, 0, NULL) < 0)
        return fail(c, h, from, CLI_FAILED);
    return done(c, "renamed", to);
}

/* -- watch -- */

struct watching {
    struct cli *c;
    int status; /* -1: goes on */
};

static void on_change(struct xs_watch *w, const struct xs_change *change, void *user) {
    struct watching *watching = user;
    struct cli *c = watching->c;
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    (void)w;
    if (change->failed != NULL) {
        watching->status = cli_say_error(c, CLI_LOST, "the watch has ended: %s", change->failed);
        return;
    }
    if (!c->json) {
        for (size_t i = 0; i < change->n; i++) {
            cli_say_text(stdout, str_of(change->paths[i]));
            putchar('\n');
        }
        if (change->overflow)
            cli_say_warning(c, "changes were missed: anything may have changed");
        if (fflush(stdout) != 0)
            watching->status = output_failed(c, errno);
        return;
    }
    cli_json_open(&j, NULL, '{');
    cli_json_open(&j, "changedPaths", '[');
    for (size_t i = 0; i < change->n; i++)
        cli_json_str(&j, NULL, str_of(change->paths[i]));
    cli_json_close(&j, ']');
    cli_json_bool(&j, "overflow", change->overflow);
    cli_json_close(&j, '}');
    int r = cli_json_print(&j, STDOUT_FILENO);
    if (r < 0)
        watching->status = output_failed(c, -r);
}

static int watch_one(struct cli *c, struct cli_place_host *h, const char *path) {
    struct watching watching = {.c = c, .status = -1};
    struct xs_watch *w = NULL;
    unsigned flags = cli_has(c, CLI_OPT_RECURSIVE) ? XS_RECURSIVE : 0;
    if (xs_fs_watch(h->fs, path, flags, on_change, &watching, &w, NULL) < 0)
        return fail(c, h, path, CLI_FAILED);
    cli_say_note(c, 1, "watching %s", path);
    while (watching.status < 0) {
        xs_client_run(h->client, -1);
        if (xs_client_state(h->client) == XS_STATE_FAILED && watching.status < 0)
            watching.status = cli_say_failure(c, xs_client_error(h->client), path, CLI_LOST);
    }
    xs_watch_free(w);
    return watching.status;
}

int cli_files_watch(struct cli *c) {
    return each(c, 0, watch_one);
}
