#include "cli/cli_spool.h"

#include "base/uuid.h"
#include "cli/cli_finish.h"
#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <poll.h>

#define PIECE (1 << 20)
#define DROP_MS 2000

static int fail(struct cli_io *io, int err) {
    return cli_finish_start(io, err, "standard input");
}

/* Makes the directory with a mode that keeps others out: the server's own way would not. */
static int make_directory(struct cli_io *io, const char *path) {
    struct xs_options *o = xs_options_new();
    struct xs_process *p = NULL;
    struct cli_wait w;
    const char *const argv[] = {"/bin/sh", "-c", "umask 077; mkdir \"$0\"", path};
    int r = o != NULL ? 0 : XS_ENOMEM;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(argv); i++)
        r = xs_options_add(o, XS_OPT_ARGV, argv[i]);
    cli_io_wait_init(&w);
    if (r == 0)
        r = cli_io_await(io, &w, xs_process_start(io->client, o, &p, &w.call), -1);
    xs_options_free(o);
    if (r < 0)
        return r;
    struct xs_exit e = XS_INIT(struct xs_exit);
    cli_io_wait_init(&w);
    r = cli_io_await(io, &w, xs_process_wait(p, 0, -1, &e, &w.call), -1);
    xs_process_free(p);
    return r;
}

/* Reads one piece of standard input; signals are heard meanwhile. */
static ssize_t read_piece(struct cli_io *io, char *piece, size_t max) {
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = io->signals.fd, .events = POLLIN},
                             {.fd = xs_client_fd(io->client), .events = POLLIN}};
        (void)poll(p, ARRAY_LEN(p), -1);
        if (p[1].revents != 0)
            cli_io_signal_take(io);
        if (p[2].revents != 0)
            xs_client_process(io->client);
        if (io->end != CLI_END_NONE)
            return XS_ECANCELED;
        if (p[0].revents == 0)
            continue;
        ssize_t n = read(STDIN_FILENO, piece, max);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN))
            return n;
    }
}

/* A whole piece, or what is left. */
static ssize_t fill(struct cli_io *io, char *piece) {
    size_t at = 0;
    while (at < PIECE) {
        ssize_t n = read_piece(io, piece + at, PIECE - at);
        if (n < 0)
            return n == -1 ? XS_ELOCAL : n;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

/* Names sort in their order. There is at least one. */
static int copy(struct cli_io *io, struct xs_fs *fs, const char *path, char *piece) {
    struct cli_wait w;
    ssize_t n = PIECE;
    for (unsigned i = 0; n == PIECE; i++) {
        _cleanup_free_ char *name = NULL;
        n = fill(io, piece);
        if (n < 0)
            return (int)n;
        if (asprintf(&name, "%s/%08u", path, i) < 0)
            return XS_ENOMEM;
        cli_io_wait_init(&w);
        int r = xs_fs_write(fs, name, piece, (size_t)n, 0, &w.call);
        r = cli_io_await(io, &w, r, -1);
        if (r < 0)
            return r;
    }
    return 0;
}

static int fill_directory(struct cli_io *io, const char *path) {
    struct xs_fs *fs = NULL;
    _cleanup_free_ char *piece = malloc(PIECE);
    int r = piece != NULL ? xs_fs_new(io->client, NULL, &fs) : XS_ENOMEM;
    if (r == 0)
        r = copy(io, fs, path, piece);
    xs_fs_free(fs);
    return r;
}

void cli_spool_drop(struct cli_io *io) {
    struct xs_fs *fs = NULL;
    struct cli_wait w;
    const char *path = steal_ptr(&io->spool);
    if (path == NULL || xs_fs_new(io->client, NULL, &fs) < 0)
        return;
    cli_io_wait_init(&w);
    int r = xs_fs_remove(fs, path, XS_RECURSIVE | XS_FORCE, &w.call);
    (void)cli_io_await(io, &w, r, DROP_MS);
    xs_fs_free(fs);
}

int cli_spool(struct cli_io *io, char **path) {
    char id[UUID_LEN + 1];
    const char *directory = xs_client_info(io->client)->tmp;
    uuid_random(id);
    if (asprintf(path, "%s/xs-stdin-%s", directory != NULL ? directory : "/tmp", id) < 0) {
        *path = NULL;
        return fail(io, XS_ENOMEM);
    }
    int r = make_directory(io, *path);
    if (r == 0)
        r = fill_directory(io, *path);
    if (r == 0)
        return 0;
    io->spool = *path;
    return fail(io, r);
}
