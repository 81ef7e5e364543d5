#include "cli/cli_spool.h"

#include "base/uuid.h"
#include "cli/cli_finish.h"
#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <poll.h>

#define PIECE (1u << 20)

static int fail(struct cli_io *io, int err) {
    return cli_finish_start(io, err, "standard input");
}

/* Makes the file with a mode that keeps others out: the server's own way would not. */
static int make_file(struct cli_io *io, const char *path) {
    struct xs_options *o = xs_options_new();
    struct xs_process *p = NULL;
    struct cli_wait w;
    const char *const argv[] = {"/bin/sh", "-c", "umask 077; : >\"$0\"", path};
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
static ssize_t read_piece(struct cli_io *io, char *piece) {
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
        ssize_t n = read(STDIN_FILENO, piece, PIECE);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN))
            return n;
    }
}

static int copy(struct cli_io *io, struct xs_file *f, char *piece) {
    struct cli_wait w;
    for (uint64_t at = 0;;) {
        ssize_t n = read_piece(io, piece);
        if (n <= 0)
            return n == -1 ? XS_ELOCAL : (int)n;
        cli_io_wait_init(&w);
        int r = cli_io_await(io, &w, xs_file_write(f, at, piece, (size_t)n, &w.call), -1);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
}

static int fill_file(struct cli_io *io, const char *path) {
    struct xs_fs *fs = NULL;
    struct xs_file *f = NULL;
    struct cli_wait w;
    _cleanup_free_ char *piece = malloc(PIECE);
    int r = piece != NULL ? xs_fs_new(io->client, NULL, &fs) : XS_ENOMEM;
    cli_io_wait_init(&w);
    if (r == 0)
        r = cli_io_await(io, &w, xs_fs_open(fs, path, XS_OPEN_REPLACE, &f, &w.call), -1);
    if (r == 0)
        r = copy(io, f, piece);
    cli_io_wait_init(&w);
    if (r == 0)
        r = cli_io_await(io, &w, xs_file_close(f, &w.call), -1);
    else
        xs_file_free(f);
    xs_fs_free(fs);
    return r;
}

int cli_spool(struct cli_io *io, char **path) {
    char id[UUID_LEN + 1];
    const char *directory = xs_client_info(io->client)->tmp;
    uuid_random(id);
    if (asprintf(path, "%s/xs-stdin-%s", directory != NULL ? directory : "/tmp", id) < 0) {
        *path = NULL;
        return fail(io, XS_ENOMEM);
    }
    int r = make_file(io, *path);
    if (r == 0)
        r = fill_file(io, *path);
    return r < 0 ? fail(io, r) : 0;
}
