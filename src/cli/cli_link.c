#include "cli/cli_link.h"

#include "cli/cli_say.h"

void cli_link_free_options(struct xs_options **o) {
    xs_options_free(*o);
    *o = NULL;
}

void cli_link_free_client(struct xs_client **client) {
    xs_client_free(*client);
    *client = NULL;
}

const char *cli_link_selected(const struct cli *c) {
    const char *host = cli_value(c, CLI_OPT_HOST);
    if (host == NULL)
        host = getenv("XS_HOST");
    return host != NULL && *host != '\0' ? host : NULL;
}

/* The file wins over the variable, and both over environments.toml. */
static int set_token(const struct cli *c, struct xs_options *o) {
    const char *file = cli_value(c, CLI_OPT_TOKEN_FILE);
    if (file != NULL) {
        int r = xs_options_str(o, XS_OPT_TOKEN, NULL);
        return r < 0 ? r : xs_options_str(o, XS_OPT_TOKEN_FILE, file);
    }
    return c->token != NULL ? xs_options_str(o, XS_OPT_TOKEN, c->token) : 0;
}

struct xs_options *cli_link_options(struct cli *c, const char *host, int *status) {
    const char *selected = cli_link_selected(c);
    bool other = host != NULL && *host != '\0' && (selected == NULL || strcmp(host, selected) != 0);
    struct xs_options *o = xs_options_new();
    if (o == NULL) {
        *status = cli_say_error(c, CLI_FAILED, "out of memory");
        return NULL;
    }
    int r = xs_options_environment(o, other ? host : selected);
    if (r == 0 && !other)
        r = set_token(c, o);
    if (r == 0)
        r = xs_options_str(o, XS_OPT_NAME, "xs");
    if (r == 0 && c->verbose > 1)
        r = xs_options_num(o, XS_OPT_LOG_WIRE, 1);
    if (r < 0) {
        *status = cli_say_failure(c, xs_options_error(o), NULL, CLI_USAGE);
        xs_options_free(o);
        return NULL;
    }
    return o;
}

static void on_log(int level, const char *line, void *user) {
    static const int needed[] = {[XS_LOG_ERROR] = 1,
                                 [XS_LOG_WARN] = 1,
                                 [XS_LOG_INFO] = 1,
                                 [XS_LOG_DEBUG] = 2,
                                 [XS_LOG_WIRE] = 2};
    if (level >= XS_LOG_ERROR && level <= XS_LOG_WIRE)
        cli_say_note(user, needed[level], "%s", line);
}

int cli_link_new(struct cli *c, const struct xs_options *o, struct xs_client **out) {
    int r = xs_client_new(o, out);
    if (r < 0) { /* the client exists, for its error alone */
        int status = cli_say_failure(c, xs_client_error(*out), NULL, CLI_USAGE);
        xs_client_free(steal_ptr(out));
        return status;
    }
    if (c->verbose > 0)
        xs_client_on_log(*out, on_log, c);
    return 0;
}

int cli_link_open(struct cli *c, const char *host, struct xs_client **out) {
    int status = CLI_FAILED;
    _cleanup_cli_options_ struct xs_options *o = cli_link_options(c, host, &status);
    if (o == NULL)
        return status;
    status = cli_link_new(c, o, out);
    if (status != 0)
        return status;
    int r = xs_client_connect(*out, NULL);
    if (r == 0)
        return 0;
    status = cli_say_failure(c, xs_client_error(*out), NULL, CLI_LOST);
    xs_client_free(*out);
    *out = NULL;
    return status;
}
