#include "cli/cli_server.h"

#include "cli/cli_completion.h"
#include "cli/cli_detach.h"
#include "cli/cli_help.h"
#include "cli/cli_json.h"
#include "cli/cli_keep.h"
#include "cli/cli_link.h"
#include "cli/cli_path.h"
#include "cli/cli_say.h"
#include "json/json.h"

#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#define COMPLETE_MS 500
#define INFO_MAX (1u << 20)

static int print_json(struct cli *c, struct cli_json *j) {
    int r = cli_json_print(j, STDOUT_FILENO);
    return r < 0 ? cli_say_error(c, CLI_FAILED, "standard output: %s", strerror(-r)) : 0;
}

/* -- info -- */

static void info_line(const char *name, const char *value) {
    if (value == NULL)
        return;
    printf("%-14s", name);
    cli_say_text(stdout, str_of(value));
    putchar('\n');
}

/* The capabilities of environmentInfo, on one line. */
static void info_capabilities(const struct xs_bytes *raw) {
    struct json_doc doc;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&doc, INFO_MAX, 0);
    const struct json_node *list = NULL;
    if (raw->n <= INFO_MAX && json_parse(&doc, raw->data, raw->n, &e) == 0 &&
        json_root(&doc)->type == JSON_OBJECT)
        list = json_get(json_root(&doc), "capabilities");
    if (list != NULL && list->type == JSON_OBJECT) {
        printf("%-13s", "capabilities");
        json_for_each_member(k, list) {
            if ((k + 1)->type == JSON_FALSE || (k + 1)->type == JSON_NULL)
                continue;
            putchar(' ');
            cli_say_text(stdout, json_str(k));
        }
        putchar('\n');
    }
    json_doc_fini(&doc);
}

static void info_print(const struct xs_info *i, const struct xs_bytes *raw) {
    info_line("url", i->url);
    info_line("version", i->version);
    info_line("shell", i->shell);
    info_line("directory", i->cwd);
    info_line("home", i->home);
    info_line("temporary", i->tmp);
    info_line("sandbox", i->sandbox != NULL ? i->sandbox : "unknown");
    if (i->limits_told)
        printf("%-14ssession %lld s, closed process %lld s, output %lld bytes\n", "kept",
               (long long)i->session_ttl_ms / 1000, (long long)i->closed_retention_ms / 1000,
               (long long)i->retained_output_bytes);
    info_capabilities(raw);
}

static void info_json(struct cli_json *j, const struct xs_info *i, const struct xs_bytes *raw) {
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "url", str_of(i->url));
    cli_json_str(j, "sessionId", str_of(i->session));
    cli_json_bool(j, "resumable", i->resumable);
    if (i->limits_told) {
        cli_json_open(j, "limits", '{');
        cli_json_int(j, "sessionTtlMs", i->session_ttl_ms);
        cli_json_int(j, "closedRetentionMs", i->closed_retention_ms);
        cli_json_int(j, "retainedOutputBytes", i->retained_output_bytes);
        cli_json_close(j, '}');
    } else {
        cli_json_null(j, "limits");
    }
    cli_json_raw(j, "environmentInfo", (struct str){raw->data, raw->n});
    cli_json_close(j, '}');
}

int cli_server_info(struct cli *c) {
    _cleanup_cli_client_ struct xs_client *client = NULL;
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    struct xs_bytes raw = {.data = NULL};
    int status = cli_link_open(c, NULL, &client);
    if (status != 0)
        return status;
    if (xs_client_rpc(client, "environment/info", NULL, &raw, NULL) < 0)
        return cli_say_failure(c, xs_client_error(client), NULL, CLI_FAILED);
    if (c->json) {
        info_json(&j, xs_client_info(client), &raw);
        status = print_json(c, &j);
    } else {
        info_print(xs_client_info(client), &raw);
        status = fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    xs_bytes_free(&raw);
    return status;
}

/* -- ping -- */

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int ping_once(struct cli *c, struct xs_client *client) {
    struct xs_bytes raw = {.data = NULL};
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    int64_t before = now_us();
    if (xs_client_rpc(client, "environment/status", NULL, &raw, NULL) < 0)
        return cli_say_failure(c, xs_client_error(client), NULL, CLI_FAILED);
    int64_t us = now_us() - before;
    xs_bytes_free(&raw);
    if (!c->json) {
        printf("%lld.%03lld ms\n", (long long)us / 1000, (long long)us % 1000);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "url", str_of(xs_client_info(client)->url));
    cli_json_int(&j, "microseconds", us);
    cli_json_close(&j, '}');
    return print_json(c, &j);
}

int cli_server_ping(struct cli *c) {
    _cleanup_cli_client_ struct xs_client *client = NULL;
    int64_t n = cli_has(c, CLI_OPT_COUNT) ? c->args.number[CLI_OPT_COUNT] : 1;
    int status = cli_link_open(c, NULL, &client);
    for (int64_t i = 0; i < n && status == 0; i++)
        status = ping_once(c, client);
    return status;
}

/* -- env -- */

/* Calls fn for each environment that is known. */
static int env_each(struct cli *c, void (*fn)(const struct json_node *v, bool chosen)) {
    struct xs_bytes json = {.data = NULL};
    struct json_doc doc;
    _cleanup_err_ struct err e = ERR_INIT;
    struct xs_options *o = xs_options_new();
    int r = o != NULL ? xs_options_list_environments(o, &json) : XS_ENOMEM;
    if (r < 0) {
        int status =
            o != NULL ? cli_say_failure(c, xs_options_error(o), NULL, CLI_FAILED) : CLI_FAILED;
        xs_options_free(o);
        return status;
    }
    xs_options_free(o);
    if (c->json && fn == NULL) {
        printf("%.*s\n", (int)json.n, json.data);
        xs_bytes_free(&json);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    json_doc_init(&doc, json.n, 0);
    if (json_parse(&doc, json.data, json.n, &e) == 0) {
        const struct json_node *chosen = json_get(json_root(&doc), "default");
        const struct json_node *list = json_get(json_root(&doc), "environments");
        json_for_each(v, list) {
            struct str id = json_str(json_get(v, "id"));
            fn(v, chosen->type == JSON_STRING && str_eq(json_str(chosen), id) &&
                      !str_eqz(id, "local")); /* which xs takes only from -H */
        }
    }
    json_doc_fini(&doc);
    xs_bytes_free(&json);
    return fflush(stdout) == 0 ? 0 : CLI_FAILED;
}

static void env_row(const struct json_node *v, bool chosen) {
    struct str id = json_str(json_get(v, "id"));
    const struct json_node *url = json_get(v, "url"), *program = json_get(v, "program");
    printf("%c %-20.*s ", chosen ? '*' : ' ', (int)id.n, id.p);
    if (url != NULL && url->type == JSON_STRING)
        cli_say_text(stdout, json_str(url));
    else if (program != NULL && program->type == JSON_STRING)
        cli_say_text(stdout, json_str(program));
    putchar('\n');
}

static void env_id(const struct json_node *v, bool chosen) {
    struct str id = json_str(json_get(v, "id"));
    (void)chosen;
    printf("%.*s\n", (int)id.n, id.p);
}

int cli_server_env(struct cli *c) {
    return env_each(c, c->json ? NULL : env_row);
}

/* -- completion -- */

static int complete_names(struct cli *c, struct str word) {
    _cleanup_free_ char *directory = cli_detach_directory(c);
    _cleanup_err_ struct err e = ERR_INIT;
    char **names;
    if (directory == NULL || cli_keep_names(directory, &names, &e) < 0)
        return CLI_FAILED;
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strncmp(names[i], word.p, word.n) == 0)
            printf("%s\n", names[i]);
    }
    cli_keep_names_free(names);
    return 0;
}

/* Names that a shell could not take as one line, or would show as something else, are left out. */
static bool is_plain(const char *name, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    }
    return n > 0;
}

/* Files of the directory that a path has got to. */
static void complete_path(struct xs_client *client, const char *word, const char *path) {
    struct xs_fs *fs = NULL;
    struct xs_entries *entries = NULL;
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    size_t prefix = strlen(word) - strlen(last), n = strlen(last);
    _cleanup_free_ char *directory =
        slash == NULL ? strdup(".") : str_dup((struct str){path, (size_t)(slash - path) + 1});
    if (directory == NULL || xs_fs_new(client, NULL, &fs) < 0)
        return;
    if (xs_fs_list(fs, directory, &entries, NULL) == 0) {
        for (size_t i = 0; i < entries->n; i++) {
            const struct xs_entry *e = &entries->entries[i];
            if (e->name_len < n || memcmp(e->name, last, n) != 0 ||
                !is_plain(e->name, e->name_len) || (n == 0 && e->name[0] == '.'))
                continue;
            printf("%.*s%.*s%s\n", (int)prefix, word, (int)e->name_len, e->name,
                   e->kind == XS_KIND_DIRECTORY ? "/" : "");
        }
        xs_entries_free(entries);
    }
    xs_fs_free(fs);
}

static int complete_remote(struct cli *c, const char *word, bool both) {
    struct cli_path at = cli_path_parse(word);
    _cleanup_cli_client_ struct xs_client *client = NULL;
    /* No answer in time is no completion: the signal ends us. */
    struct itimerval limit = {.it_value = {.tv_usec = COMPLETE_MS * 1000}};
    if (both && !at.remote)
        return 0;
    _cleanup_free_ char *host = str_dup(at.remote ? at.host : (struct str){"", 0});
    const char *path = strcmp(at.path, ".") == 0 && word[strlen(word) - 1] == ':' ? "" : at.path;
    setitimer(ITIMER_REAL, &limit, NULL);
    if (host == NULL || cli_link_open(c, host, &client) != 0)
        return CLI_FAILED;
    complete_path(client, word, path);
    return 0;
}

static int complete(struct cli *c) {
    const char *kind = c->args.operand_count > 1 ? c->args.operands[1] : "";
    const char *word = c->args.operand_count > 2 ? c->args.operands[2] : "";
    if (strcmp(kind, "host") == 0)
        return env_each(c, env_id);
    if (strcmp(kind, "name") == 0)
        return complete_names(c, str_of(word));
    return complete_remote(c, word, strcmp(kind, "both") == 0);
}

int cli_server_completion(struct cli *c) {
    const char *shell = c->args.operands[0];
    if (strcmp(shell, "complete") == 0) {
        int status = complete(c);
        return fflush(stdout) == 0 ? status : CLI_FAILED;
    }
    if (strcmp(shell, "list") == 0) /* for the check of the manual page */
        cli_help_list(stdout);
    else if (!cli_completion_print(stdout, shell))
        return cli_say_error(c, CLI_USAGE, "completion takes bash, zsh or fish; not '%s'", shell);
    return fflush(stdout) == 0 ? 0 : CLI_FAILED;
}
