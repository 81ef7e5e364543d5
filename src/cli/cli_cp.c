#include "cli/cli_cp.h"

#include "cli/cli_io.h"
#include "cli/cli_json.h"
#include "cli/cli_link.h"
#include "cli/cli_say.h"
#include "cli/cli_transfer.h"

#include <errno.h>
#include <sys/stat.h>

#define IN_FLIGHT 8 /* blocks of 1 MiB, each 1.4 MB as a message: cp stays below 16 MB */

/* A command on its way. */
struct copying {
    struct cli *c;
    struct cli_places places;
    struct xs_options *options;
    struct cli_path to;
    struct cli_place_host *to_host; /* NULL: here */
    bool into;                      /* the destination is a directory */
};

static int set_options(struct cli *c, struct xs_options *o) {
    int r = xs_options_num(o, XS_OPT_RECURSIVE, cli_has(c, CLI_OPT_RECURSIVE));
    if (r == 0)
        r = xs_options_num(o, XS_OPT_PRESERVE, cli_has(c, CLI_OPT_PRESERVE));
    if (r == 0)
        r = xs_options_num(o, XS_OPT_IN_FLIGHT, IN_FLIGHT);
    if (r == 0 && cli_has(c, CLI_OPT_DEREFERENCE))
        r = xs_options_str(o, XS_OPT_LINKS, "follow");
    return r;
}

/* Finds out what the destination is. 0 or an exit status. */
static int look_at_destination(struct copying *k) {
    struct cli *c = k->c;
    const char *operand = c->args.operands[c->args.operand_count - 1];
    k->to = cli_path_parse(operand);
    if (k->to.remote) {
        struct xs_stat st = XS_INIT(struct xs_stat);
        int status = cli_place_open(&k->places, k->to.host, &k->to_host);
        if (status != 0)
            return status;
        k->into = xs_fs_stat(k->to_host->fs, k->to.path, 0, &st, NULL) == 0 &&
                  st.kind == XS_KIND_DIRECTORY;
    } else {
        struct stat st;
        k->into = stat(k->to.path, &st) == 0 && S_ISDIR(st.st_mode);
    }
    if (c->args.operand_count > 2 && !k->into)
        return cli_say_error(c, CLI_FAILED, "%s: is no directory", operand);
    return 0;
}

static int print_json(const char *from, const char *to, const struct cli_transfer *t) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    cli_json_open(&j, NULL, '{');
    cli_json_path(&j, "source", str_of(from));
    cli_json_path(&j, "destination", str_of(to));
    cli_json_u64(&j, "bytes", t->bytes);
    cli_json_u64(&j, "files", t->files);
    cli_json_u64(&j, "leftOut", t->left_out);
    cli_json_close(&j, '}');
    return cli_json_print(&j, STDOUT_FILENO) < 0 ? CLI_FAILED : 0;
}

static int transfer(struct copying *k, struct cli_transfer *t, struct cli_place_host *from) {
    if (from != NULL && k->to_host != NULL)
        return cli_transfer_across(t, from, k->to_host);
    if (from != NULL)
        return cli_transfer_down(t, from);
    if (k->to_host != NULL)
        return cli_transfer_up(t, k->to_host);
    return cli_say_error(k->c, CLI_USAGE, "%s and %s are both here; :PATH is there", t->from,
                         t->to);
}

static int copy_one(struct copying *k, const char *operand) {
    struct cli_path at = cli_path_parse(operand);
    struct cli_place_host *from = NULL;
    _cleanup_free_ char *inside = NULL;
    struct str base = cli_path_base(at.path);
    int status = at.remote ? cli_place_open(&k->places, at.host, &from) : 0;
    if (status != 0)
        return status;
    if (k->into && base.n > 0 && !str_eqz(base, ".") && !str_eqz(base, ".."))
        inside = cli_path_join(k->to.path, base);
    struct cli_transfer t = {.cli = k->c,
                             .options = k->options,
                             .from = at.path,
                             .to = inside != NULL ? inside : k->to.path,
                             .begun_ms = cli_io_now()};
    status = transfer(k, &t, from);
    if (k->c->json && status != CLI_USAGE && print_json(operand, t.to, &t) != 0)
        status = CLI_FAILED;
    cli_transfer_fini(&t);
    return status;
}

int cli_cp(struct cli *c) {
    struct copying k = {.c = c, .places = {.cli = c}, .options = xs_options_new()};
    int status = 0;
    if (k.options == NULL || set_options(c, k.options) < 0)
        status = cli_say_error(c, CLI_FAILED, "out of memory");
    if (status == 0)
        status = look_at_destination(&k);
    for (size_t i = 0; status != CLI_LOST && status != CLI_USAGE && k.options != NULL &&
                       i + 1 < c->args.operand_count;
         i++) {
        if (i == 0 && status != 0)
            break;
        int one = copy_one(&k, c->args.operands[i]);
        status = one != 0 ? one : status;
    }
    cli_place_fini(&k.places);
    xs_options_free(k.options);
    return status;
}
