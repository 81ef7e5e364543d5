#include "cli/cli_ls.h"

#include "cli/cli_json.h"
#include "cli/cli_place.h"
#include "cli/cli_say.h"
#include "cli/cli_stat.h"

#include <errno.h>

#define AT_ONCE 64 /* questions about files in flight */

/* A file of a directory. */
struct row {
    struct str name; /* borrowed */
    int kind;
    bool known;
    struct xs_stat st;
    struct xs_call call;
    size_t *busy;
};

static void on_stat(struct xs_call *call, int result) {
    struct row *row = call->user;
    row->known = result == 0;
    --*row->busy;
}

/* Asks about all files, many at a time. 0 or a negative error. */
static int ask(struct cli_place_host *h, const char *directory, struct row *rows, size_t n) {
    size_t busy = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        _cleanup_free_ char *path = cli_path_join(directory, rows[i].name);
        if (path == NULL)
            return XS_ENOMEM;
        rows[i].st = (struct xs_stat)XS_INIT(struct xs_stat);
        rows[i].call = (struct xs_call){.done = on_stat, .user = &rows[i]};
        rows[i].busy = &busy;
        r = xs_fs_stat(h->fs, path, XS_NOFOLLOW, &rows[i].st, &rows[i].call);
        busy += r == 0;
        while (busy >= AT_ONCE)
            xs_client_run(h->client, -1);
    }
    while (busy > 0)
        xs_client_run(h->client, -1);
    return r;
}

static void print_row(struct cli *c, const struct row *row) {
    char mode[11] = "??????????", modified[32] = "-";
    if (cli_has(c, CLI_OPT_LONG)) {
        if (row->known) {
            cli_stat_mode(&row->st, mode);
            cli_stat_time(row->st.modified_ms, modified);
        }
        printf("%s %12llu %-17s ", mode, (unsigned long long)(row->known ? row->st.bytes : 0),
               modified);
    }
    cli_say_text(stdout, row->name);
    putchar('\n');
}

static void put_json(struct cli_json *j, struct cli *c, const struct row *row) {
    cli_json_open(j, NULL, '{');
    cli_json_path(j, "fileName", row->name);
    if (cli_has(c, CLI_OPT_LONG) && row->known) {
        cli_stat_json(j, &row->st);
    } else {
        cli_json_bool(j, "isDirectory", row->kind == XS_KIND_DIRECTORY);
        cli_json_bool(j, "isFile", row->kind == XS_KIND_FILE);
    }
    cli_json_close(j, '}');
}

static int print(struct cli *c, const char *path, const struct row *rows, size_t n) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (!c->json) {
        for (size_t i = 0; i < n; i++)
            print_row(c, &rows[i]);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    cli_json_open(&j, NULL, '{');
    cli_json_path(&j, "path", str_of(path));
    cli_json_open(&j, "entries", '[');
    for (size_t i = 0; i < n; i++)
        put_json(&j, c, &rows[i]);
    cli_json_close(&j, ']');
    cli_json_close(&j, '}');
    return cli_json_print(&j, STDOUT_FILENO) < 0 ? CLI_FAILED : 0;
}

static int by_name(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    int r = memcmp(x->name.p, y->name.p, MIN(x->name.n, y->name.n));
    return r != 0 ? r : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

static int list_directory(struct cli *c, struct cli_place_host *h, const char *path,
                          const struct xs_entries *entries) {
    size_t n = 0;
    _cleanup_free_ struct row *rows = calloc(entries->n + 1, sizeof *rows);
    if (rows == NULL)
        return cli_say_error(c, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < entries->n; i++) {
        const struct xs_entry *e = &entries->entries[i];
        if (e->name_len == 0 || (e->name[0] == '.' && !cli_has(c, CLI_OPT_ALL)))
            continue;
        rows[n++] = (struct row){.name = {e->name, e->name_len}, .kind = e->kind};
    }
    qsort(rows, n, sizeof *rows, by_name);
    if (cli_has(c, CLI_OPT_LONG) && ask(h, path, rows, n) < 0)
        return cli_say_failure(c, xs_client_error(h->client), path, CLI_FAILED);
    return print(c, path, rows, n);
}

static int fail(struct cli *c, struct cli_place_host *h, const char *path) {
    const struct xs_error *e = xs_client_error(h->client);
    if (xs_error_code(e) == XS_EREMOTE && xs_error_os(e) > 0)
        return cli_say_error(c, CLI_FAILED, "%s: %s", path, strerror(xs_error_os(e)));
    return cli_say_failure(c, e, path, CLI_FAILED);
}

static int list(struct cli *c, struct cli_place_host *h, const char *path) {
    struct xs_entries *entries = NULL;
    struct row self = {.name = str_of(path), .known = true, .st = XS_INIT(struct xs_stat)};
    if (xs_fs_list(h->fs, path, &entries, NULL) == 0) {
        int status = list_directory(c, h, path, entries);
        xs_entries_free(entries);
        return status;
    }
    if (xs_error_os(xs_client_error(h->client)) != ENOTDIR ||
        xs_fs_stat(h->fs, path, XS_NOFOLLOW, &self.st, NULL) < 0)
        return fail(c, h, path);
    self.kind = self.st.kind;
    return print(c, path, &self, 1);
}

int cli_ls(struct cli *c) {
    static const char *const here[] = {"."};
    _cleanup_cli_places_ struct cli_places places = {.cli = c};
    size_t n = c->args.operand_count;
    const char *const *operands = n > 0 ? (const char *const *)c->args.operands : here;
    int status = 0;
    for (size_t i = 0; i < MAX(n, (size_t)1) && status != CLI_LOST; i++) {
        struct cli_place_host *h;
        const char *path;
        int one = cli_place_operand(&places, operands[i], &h, &path);
        if (one != 0)
            return one;
        if (n > 1 && !c->json) {
            cli_say_text(stdout, str_of(operands[i]));
            printf(":\n");
        }
        one = list(c, h, path);
        status = one != 0 ? one : status;
    }
    return status;
}
