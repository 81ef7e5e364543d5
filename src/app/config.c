#include "app/config.h"

#include "base/utf8.h"
#include "json/json.h"
#include "json/jsonw.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

struct config {
    const char *path;
    struct options_args *args;
    struct arena *strings;
};

/* "config file PATH: `KEY` REASON". Returns -EINVAL. */
static int config_bad(const struct config *c, const struct option_spec *spec, const char *reason,
                      struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "config file %s: `%s` %s", c->path, spec->key, reason);
}

static const struct option_spec *config_find(struct str key) {
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (options_table[id].key != NULL && str_eqz(key, options_table[id].key))
            return &options_table[id];
    }
    return NULL;
}

/* -- values -- */

/* A copy that can be used like an argument; NULL with the reason in e. */
static const char *config_text(const struct config *c, const struct option_spec *spec,
                               const struct json_node *v, struct err *e) {
    struct str s = json_str(v);
    if (str_has_nul(s)) {
        config_bad(c, spec, "must not contain a NUL character", e);
        return NULL;
    }
    const char *text = arena_strdup(c->strings, s);
    if (text == NULL)
        err_os(e, ERR_INTERNAL, ENOMEM);
    return text;
}

static int config_bad_choice(const struct config *c, const struct option_spec *spec,
                             struct err *e) {
    char list[128] = "must be one of ";
    size_t n = strlen(list);
    for (const char *const *choice = spec->choices; *choice != NULL && n < sizeof list; choice++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s`%s`",
                              choice == spec->choices ? "" : ", ", *choice);
    return config_bad(c, spec, list, e);
}

static int config_check_listen(const struct config *c, const struct option_spec *spec,
                               const char *url, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    if (options_check_listen(url, &why) == 0)
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "config file %s: `%s`: %s", c->path, spec->key,
                   err_msg(&why));
}

static int config_string(const struct config *c, const struct option_spec *spec,
                         const struct json_node *v, struct err *e) {
    if (v->type != JSON_STRING)
        return config_bad(c, spec, "must be a string", e);
    const char *text = config_text(c, spec, v, e);
    if (text == NULL)
        return -EINVAL;
    if (spec->kind == OPTION_PATH && *text == '\0')
        return config_bad(c, spec, "must not be empty", e);
    if (spec->kind == OPTION_CHOICE && !options_value_is_choice(text, spec->choices))
        return config_bad_choice(c, spec, e);
    c->args->value[spec - options_table] = text;
    return spec == &options_table[OPT_LISTEN] ? config_check_listen(c, spec, text, e) : 0;
}

static int config_bool(const struct config *c, const struct option_spec *spec,
                       const struct json_node *v, struct err *e) {
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        return config_bad(c, spec, "must be true or false", e);
    c->args->on[spec - options_table] = v->type == JSON_TRUE;
    return 0;
}

static int config_number(const struct config *c, const struct option_spec *spec,
                         const struct json_node *v, struct err *e) {
    char text[OPTIONS_REASON_MAX];
    uint64_t *number = &c->args->number[spec - options_table];
    int r = v->type == JSON_NUMBER ? json_u64(v, number) : -EINVAL;
    if (r == -EINVAL)
        return config_bad(c, spec, "must be a whole number", e);
    if (r == -ERANGE)
        *number = spec->max == UINT64_MAX ? 0 : UINT64_MAX; /* a number that is out of range, too */
    const char *reason = options_value_range(spec, *number, true, text);
    if (r == -ERANGE && reason == NULL)
        reason = "is out of range";
    return reason != NULL ? config_bad(c, spec, reason, e) : 0;
}

static int config_list(const struct config *c, const struct option_spec *spec,
                       const struct json_node *v, struct err *e) {
    const char *want = spec->kind == OPTION_NETS ? "must be an array of networks"
                                                 : "must be an array of host names";
    if (v->type != JSON_ARRAY)
        return config_bad(c, spec, want, e);
    json_for_each(name, v) {
        if (name->type != JSON_STRING)
            return config_bad(c, spec, want, e);
        const char *text = config_text(c, spec, name, e);
        if (text == NULL)
            return -EINVAL;
        const char *reason = options_value_add(c->args, spec->kind, text);
        if (reason != NULL)
            return err_set(e, ERR_INVALID_PARAMS, "config file %s: `%s`: `%s`: %s", c->path,
                           spec->key, text, reason);
    }
    return 0;
}

static int config_value(const struct config *c, const struct option_spec *spec,
                        const struct json_node *v, struct err *e) {
    switch (spec->kind) {
    case OPTION_FLAG:
    case OPTION_BOOL: return config_bool(c, spec, v, e);
    case OPTION_COUNT:
    case OPTION_SECONDS: return config_number(c, spec, v, e);
    case OPTION_HOSTS:
    case OPTION_CONSOLE_HOSTS:
    case OPTION_NETS: return config_list(c, spec, v, e);
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_CHOICE: return config_string(c, spec, v, e);
    }
    return 0;
}

/* -- the file -- */

/* Reads the file whole; *text is owned. */
static int config_read(const char *path, char **text, size_t *n, struct err *e) {
    const size_t room = CONFIG_FILE_MAX + 1;
    _cleanup_free_ char *p = malloc(room);
    if (p == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t r = fd < 0 ? -1 : 1;
    for (*n = 0; r > 0 && *n < room; *n += (size_t)r) {
        do
            r = read(fd, p + *n, room - *n);
        while (r < 0 && errno == EINTR);
        if (r < 0)
            break;
    }
    if (r < 0) {
        int num = errno;
        err_set(e, ERR_INVALID_PARAMS, "failed to read config file %s: %s (os error %d)", path,
                err_os_text(num), num);
        return -num;
    }
    if (*n > CONFIG_FILE_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "config file %s is larger than %u bytes", path,
                       CONFIG_FILE_MAX);
    if (!utf8_valid(p, *n))
        return err_set(e, ERR_INVALID_PARAMS, "config file %s is not valid UTF-8", path);
    *text = steal_ptr(&p);
    return 0;
}

/* Whether neither the command line nor the environment sets this option. */
static bool config_wanted(const struct option_spec *spec, const bool *given) {
    enum option_id id = (enum option_id)(spec - options_table);
    static const enum option_id tokens[] = {OPT_WS_TOKEN_FILE, OPT_WS_TOKEN_SHA256,
                                            OPT_WS_TOKENS_FILE};
    bool is_token = false, one_given = false;
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        is_token |= id == tokens[i];
        one_given |= given[tokens[i]];
    }
    if (is_token && one_given)
        return false;
    return !given[id] && !(spec->auth && given[OPT_WS_AUTH]);
}

/* Checks every member, also one that the command line overrides. */
static int config_members(const struct config *c, const struct json_node *root, struct err *e) {
    if (root->type != JSON_OBJECT)
        return err_set(e, ERR_INVALID_PARAMS, "config file %s: must be a JSON object", c->path);
    struct options_args file = *c->args;
    file.hosts.count = file.nets.count = file.console_hosts.count = 0;
    const struct config checked = {c->path, &file, c->strings};
    json_for_each_member(k, root) {
        const struct option_spec *spec = config_find(json_str(k));
        if (spec == NULL)
            return err_set(e, ERR_INVALID_PARAMS, "config file %s: unknown key `%.*s`", c->path,
                           (int)MIN(k->n, (size_t)ERR_MSG_MAX), k->p);
        int r = config_value(&checked, spec, k + 1, e);
        if (r < 0)
            return r;
        file.from_file[spec - options_table] = config_wanted(spec, c->args->given);
    }
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (!file.from_file[id])
            continue;
        c->args->from_file[id] = c->args->given[id] = true;
        c->args->value[id] = file.value[id];
        c->args->on[id] = file.on[id];
        c->args->number[id] = file.number[id];
    }
    if (file.from_file[OPT_HTTP_HOST])
        c->args->hosts = file.hosts;
    if (file.from_file[OPT_TRUSTED_PROXY])
        c->args->nets = file.nets;
    if (file.from_file[OPT_CONSOLE_HOST])
        c->args->console_hosts = file.console_hosts;
    return 0;
}

int config_load(const char *path, struct options_args *args, struct arena *strings, struct err *e) {
    if (path == NULL)
        return 0;
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    int r = config_read(path, &text, &n, e);
    if (r < 0)
        return r;
    struct json_doc d;
    json_doc_init(&d, CONFIG_FILE_MAX, 0);
    const struct config c = {path, args, strings};
    _cleanup_err_ struct err why = ERR_INIT;
    r = json_parse(&d, text, n, &why);
    if (r < 0)
        err_set(e, ERR_INVALID_PARAMS, "config file %s: %s", path, err_msg(&why));
    else
        r = config_members(&c, json_root(&d), e);
    json_doc_fini(&d);
    return r;
}

/* -- printing -- */

static int config_print_string(const char *text, FILE *out) {
    struct str s = str_of(text);
    _cleanup_buf_ struct buf b = BUF_INIT(6 * s.n + 2);
    int r = jsonw_str(&b, s);
    if (r == 0)
        fwrite(b.p, 1, b.len, out);
    return r;
}

static int config_print_list(const struct options_list *list, FILE *out) {
    int r = 0;
    fputc('[', out);
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        r = config_print_string(list->items[i], out);
    }
    fputc(']', out);
    return r;
}

static int config_print_value(const struct options_args *args, enum option_id id, FILE *out) {
    switch (options_table[id].kind) {
    case OPTION_FLAG:
    case OPTION_BOOL: fputs(args->on[id] ? "true" : "false", out); return 0;
    case OPTION_COUNT:
    case OPTION_SECONDS: fprintf(out, "%" PRIu64, args->number[id]); return 0;
    case OPTION_HOSTS: return config_print_list(&args->hosts, out);
    case OPTION_NETS: return config_print_list(&args->nets, out);
    case OPTION_CONSOLE_HOSTS: return config_print_list(&args->console_hosts, out);
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_CHOICE: return config_print_string(args->value[id], out);
    }
    return 0;
}

/* Authentication members are printed only if they were given. */
static bool config_is_set(const struct options_args *args, enum option_id id) {
    enum option_kind kind = options_table[id].kind;
    bool text = kind == OPTION_TEXT || kind == OPTION_PATH || kind == OPTION_CHOICE;
    if (options_table[id].key == NULL || (options_table[id].auth && !args->given[id]))
        return false;
    return !text || args->value[id] != NULL;
}

int config_print(const struct options_args *args, FILE *out, struct err *e) {
    const char *before = "{\n";
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        const char *path = options_table[id].kind == OPTION_PATH ? args->value[id] : NULL;
        if (path != NULL && options_table[id].key != NULL && !utf8_valid(path, strlen(path)))
            return err_set(e, ERR_INVALID_PARAMS, "`%s` cannot be printed: it is not valid UTF-8",
                           options_table[id].key);
    }
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (!config_is_set(args, (enum option_id)id))
            continue;
        fprintf(out, "%s  \"%s\": ", before, options_table[id].key);
        int r = config_print_value(args, (enum option_id)id, out);
        if (r < 0)
            return err_os(e, ERR_INTERNAL, -r);
        before = ",\n";
    }
    fputs("\n}\n", out);
    return 0;
}
