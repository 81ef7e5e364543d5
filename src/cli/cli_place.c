#include "cli/cli_place.h"

#include "cli/cli_link.h"
#include "cli/cli_say.h"

int cli_place_open(struct cli_places *p, struct str host, struct cli_place_host **out) {
    for (size_t i = 0; i < p->n; i++) {
        if (str_eqz(host, p->hosts[i].name)) {
            *out = &p->hosts[i];
            return 0;
        }
    }
    if (p->n == CLI_PLACE_MAX)
        return cli_say_error(p->cli, CLI_USAGE, "more than %d servers in one command",
                             CLI_PLACE_MAX);
    struct cli_place_host *h = &p->hosts[p->n];
    *h = (struct cli_place_host){.name = str_dup(host)};
    if (h->name == NULL)
        return cli_say_error(p->cli, CLI_FAILED, "out of memory");
    p->n++;
    int status = cli_link_open(p->cli, h->name, &h->client);
    if (status == 0 && xs_fs_new(h->client, NULL, &h->fs) < 0)
        status = cli_say_failure(p->cli, xs_client_error(h->client), NULL, CLI_FAILED);
    *out = h;
    return status;
}

int cli_place_operand(struct cli_places *p, const char *operand, struct cli_place_host **out,
                      const char **path) {
    struct cli_path at = cli_path_parse(operand);
    *path = at.path;
    return cli_place_open(p, at.remote ? at.host : (struct str){"", 0}, out);
}

void cli_place_fini(struct cli_places *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->hosts[i].name);
        xs_fs_free(p->hosts[i].fs);
        xs_client_free(p->hosts[i].client);
    }
    p->n = 0;
}
