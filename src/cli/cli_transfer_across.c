#include "cli/cli_say.h"
#include "cli/cli_transfer.h"

#include <errno.h>
#include <stdio.h>

#define PIECE (1u << 20)

struct across {
    struct cli_transfer *t;
    struct cli_place_host *from, *to;
    bool preserve, recursive, follow;
    char *piece; /* owned: PIECE bytes */
};

/* One file, link or directory was left out: says why. Only a lost connection ends the copy. */
static int leave_out(struct across *a, struct cli_place_host *h, const char *path) {
    const struct xs_error *e = xs_client_error(h->client);
    a->t->left_out++;
    return cli_say_failure(a->t->cli, e, path, CLI_FAILED);
}

static int copy_bytes(struct across *a, struct xs_file *in, struct xs_file *out, const char *from,
                      const char *to) {
    for (uint64_t at = 0;;) {
        int n = xs_file_read(in, at, a->piece, PIECE, NULL);
        if (n < 0)
            return leave_out(a, a->from, from);
        if (n == 0)
            return 0;
        if (xs_file_write(out, at, a->piece, (size_t)n, NULL) < 0)
            return leave_out(a, a->to, to);
        at += (uint64_t)n;
        cli_transfer_moved(a->t, from, (uint64_t)n);
    }
}

/* Mode always, times with -p; a server that cannot is told about with -v. */
static void set_attributes(struct across *a, const char *path, const struct xs_stat *st) {
    if (st->mode != ~0u && xs_fs_chmod(a->to->fs, path, st->mode & 07777, 0, NULL) < 0)
        cli_say_note(a->t->cli, 1, "%s: %s", path, xs_error_text(xs_client_error(a->to->client)));
    if (a->preserve && xs_fs_set_times(a->to->fs, path, st->modified_ms, 0, NULL) < 0)
        cli_say_note(a->t->cli, 1, "%s: %s", path, xs_error_text(xs_client_error(a->to->client)));
}

/* Writes beside the name and renames, where the server can: no half file has the name. */
static int copy_file(struct across *a, const char *from, const char *to, const struct xs_stat *st) {
    struct xs_file *in = NULL, *out = NULL;
    struct str base = cli_path_base(to);
    _cleanup_free_ char *part = NULL;
    bool rename = xs_client_can(a->to->client, "fsRename");
    if (asprintf(&part, "%.*s.%.*s.xs-part", (int)(base.p - to), to, (int)base.n, base.p) < 0)
        return cli_say_error(a->t->cli, CLI_FAILED, "out of memory");
    const char *target = rename ? part : to;
    if (xs_fs_open(a->from->fs, from, XS_OPEN_READ, &in, NULL) < 0)
        return leave_out(a, a->from, from);
    if (xs_fs_open(a->to->fs, target, XS_OPEN_REPLACE, &out, NULL) < 0) {
        xs_file_free(in);
        return leave_out(a, a->to, to);
    }
    int status = copy_bytes(a, in, out, from, to);
    xs_file_free(in);
    if (xs_file_close(out, NULL) < 0 && status == 0)
        status = leave_out(a, a->to, to);
    if (status == 0)
        set_attributes(a, target, st);
    if (status == 0 && rename && xs_fs_rename(a->to->fs, part, to, 0, NULL) < 0)
        status = leave_out(a, a->to, to);
    if (status != 0 && rename)
        (void)xs_fs_remove(a->to->fs, part, XS_FORCE, NULL);
    if (status == 0)
        a->t->files++;
    return status;
}

static int copy_link(struct across *a, const char *from, const char *to) {
    struct xs_bytes target = {.data = NULL};
    if (xs_fs_read_link(a->from->fs, from, &target, NULL) < 0)
        return leave_out(a, a->from, from);
    (void)xs_fs_remove(a->to->fs, to, XS_FORCE | XS_NOFOLLOW, NULL);
    int r = xs_fs_symlink(a->to->fs, to, target.data, NULL);
    xs_bytes_free(&target);
    return r < 0 ? leave_out(a, a->to, to) : 0;
}

static int copy_one(struct across *a, const char *from, const char *to, unsigned depth);

static bool is_safe_name(struct str name) {
    return name.n > 0 && !str_eqz(name, ".") && !str_eqz(name, "..") && !str_has_nul(name);
}

/* The names of a directory: exact ones where the server has them, and then also names further
 * below. */
static int list(struct across *a, const char *path, struct xs_entries **out) {
    struct xs_walk one = XS_INIT(struct xs_walk);
    one.max_depth = 1;
    one.links = 1;
    if (xs_client_can(a->from->client, "fsLinks")) {
        int r = xs_fs_walk(a->from->fs, path, &one, out, NULL);
        if (r < 0 || !(*out)->truncated)
            return r;
        xs_entries_free(*out);
    }
    return xs_fs_list(a->from->fs, path, out, NULL);
}

static int copy_directory(struct across *a, const char *from, const char *to,
                          const struct xs_stat *st, unsigned depth) {
    struct xs_entries *entries = NULL;
    int status = 0;
    if (depth == 0)
        return cli_say_error(a->t->cli, CLI_FAILED, "%s: too deep", from);
    if (xs_fs_mkdir(a->to->fs, to, XS_RECURSIVE, NULL) < 0)
        return leave_out(a, a->to, to);
    if (list(a, from, &entries) < 0)
        return leave_out(a, a->from, from);
    for (size_t i = 0; i < entries->n && status != CLI_LOST; i++) {
        struct str name = {entries->entries[i].name, entries->entries[i].name_len};
        if (memchr(name.p, '/', name.n) != NULL)
            continue; /* it comes with its own directory */
        _cleanup_free_ char *source = cli_path_join(from, name), *target = cli_path_join(to, name);
        int one = !is_safe_name(name) || source == NULL || target == NULL
                      ? cli_say_error(a->t->cli, CLI_FAILED, "%s: a name that cannot be", from)
                      : copy_one(a, source, target, depth - 1);
        status = one != 0 ? one : status;
    }
    for (size_t i = 0; i < entries->n_errors; i++) {
        a->t->left_out++;
        status = cli_say_error(a->t->cli, status != 0 ? status : CLI_FAILED, "%s: %s",
                               entries->errors[i].path, entries->errors[i].text);
    }
    xs_entries_free(entries);
    set_attributes(a, to, st);
    return status;
}

static int copy_one(struct across *a, const char *from, const char *to, unsigned depth) {
    struct xs_stat st = XS_INIT(struct xs_stat);
    if (xs_fs_stat(a->from->fs, from, a->follow ? 0 : XS_NOFOLLOW, &st, NULL) < 0)
        return leave_out(a, a->from, from);
    if (st.is_link && !a->follow)
        return copy_link(a, from, to);
    if (st.kind == XS_KIND_FILE)
        return copy_file(a, from, to, &st);
    if (st.kind == XS_KIND_DIRECTORY && a->recursive)
        return copy_directory(a, from, to, &st, depth);
    a->t->left_out++;
    return cli_say_error(
        a->t->cli, CLI_FAILED,
        st.kind == XS_KIND_DIRECTORY ? "%s: is a directory (use -r)" : "%s: is no file", from);
}

int cli_transfer_across(struct cli_transfer *t, struct cli_place_host *from,
                        struct cli_place_host *to) {
    struct across a = {.t = t,
                       .from = from,
                       .to = to,
                       .preserve = cli_has(t->cli, CLI_OPT_PRESERVE),
                       .recursive = cli_has(t->cli, CLI_OPT_RECURSIVE),
                       .follow = cli_has(t->cli, CLI_OPT_DEREFERENCE),
                       .piece = malloc(PIECE)};
    if (a.piece == NULL)
        return cli_say_error(t->cli, CLI_FAILED, "out of memory");
    int status = copy_one(&a, t->from, t->to, 256);
    free(a.piece);
    if (t->cli->meter_shown)
        fprintf(stderr, "\n");
    t->cli->meter_shown = false;
    return status;
}
