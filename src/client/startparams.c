#include "client/startparams.h"

#include "base/utf8.h"
#include "base/uuid.h"
#include "client/sandboxparams.h"
#include "json/json_put.h"

#include <errno.h>
#include <stdio.h>

#define STARTPARAMS_ENV_MAX 65536 /* variables */

/* What one start is made from. */
struct startparams_job {
    struct xs_client *client;
    const struct xs_options *o;
    struct params p;
    const struct json_node *over; /* members of START_JSON, which replace ours; or NULL */
    struct xs_error *e;
};

/* Whether START_JSON leaves this member to us. */
static bool startparams_ours(const struct startparams_job *j, const char *key) {
    return j->over == NULL || json_get(j->over, key) == NULL;
}

static int startparams_needs(const struct startparams_job *j, const char *capability,
                             const char *what) {
    if (client_can(j->client, capability))
        return 0;
    return xs_error_set(j->e, XS_ENOTSUP, "start: the server cannot %s", what);
}

/* -- argv, directory -- */

static int startparams_argv(struct startparams_job *j, const char *key) {
    size_t n = 0;
    const char *const *argv = xs_options_list(j->o, XS_OPT_ARGV, &n);
    if (!startparams_ours(j, key))
        return 0;
    if (n == 0)
        return xs_error_set(j->e, XS_EINVAL, "start: no program was named (option argv)");
    params_open(&j->p, key, '[');
    for (size_t i = 0; i < n; i++)
        params_strz(&j->p, NULL, argv[i]);
    params_close(&j->p, ']');
    return 0;
}

/* -- environment -- */

static const char *const startparams_agent[] = {
    "NO_COLOR=1", "TERM=dumb", "LANG=C.UTF-8",  "LC_CTYPE=C.UTF-8", "LC_ALL=C.UTF-8",
    "COLORTERM=", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat",
};

static struct str startparams_name(const char *variable) {
    const char *end = strchr(variable, '=');
    return (struct str){variable, end != NULL ? (size_t)(end - variable) : strlen(variable)};
}

/* Whether a later element of the list has this name. */
static bool startparams_again(struct str name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (str_eq(startparams_name(list[i]), name))
            return true;
    }
    return false;
}

static int startparams_env(struct startparams_job *j) {
    size_t n = 0;
    const char *const *list = xs_options_list(j->o, XS_OPT_ENV, &n);
    const char *preset = xs_options_get(j->o, XS_OPT_ENV_PRESET, NULL);
    if (!startparams_ours(j, "env"))
        return 0;
    if (n > STARTPARAMS_ENV_MAX)
        return xs_error_set(j->e, XS_EINVAL, "option env: too many variables");
    if (preset != NULL && !str_eqz(str_of(preset), "agent"))
        return xs_error_set(j->e, XS_EINVAL, "option env-preset: \"%s\" is unknown", preset);
    params_open(&j->p, "env", '{');
    for (size_t i = 0; preset != NULL && i < ARRAY_LEN(startparams_agent); i++) {
        struct str name = startparams_name(startparams_agent[i]);
        char key[16];
        snprintf(key, sizeof(key), "%.*s", (int)name.n, name.p);
        if (!startparams_again(name, list, n))
            params_strz(&j->p, key, startparams_agent[i] + name.n + 1);
    }
    for (size_t i = 0; i < n; i++) {
        struct str name = startparams_name(list[i]);
        if (list[i][name.n] == '\0')
            return xs_error_set(j->e, XS_EINVAL, "option env: \"%s\" is not NAME=VALUE", list[i]);
        if (startparams_again(name, list + i + 1, n - i - 1))
            continue;
        _cleanup_free_ char *key = str_dup(name);
        if (key == NULL)
            return xs_error_set(j->e, XS_ENOMEM, "start: out of memory");
        if (!utf8_valid(name.p, name.n))
            return xs_error_set(j->e, XS_EINVAL, "option env: a name is not UTF-8");
        params_strz(&j->p, key, list[i] + name.n + 1);
    }
    params_close(&j->p, '}');
    return 0;
}

static void startparams_list(struct startparams_job *j, const char *key, const char *option) {
    size_t n = 0;
    const char *const *list = xs_options_list(j->o, option, &n);
    params_open(&j->p, key, '[');
    for (size_t i = 0; i < n; i++)
        params_strz(&j->p, NULL, list[i]);
    params_close(&j->p, ']');
}

static int startparams_policy(struct startparams_job *j) {
    const char *inherit = xs_options_get(j->o, XS_OPT_INHERIT, "all");
    if (!startparams_ours(j, "envPolicy"))
        return 0;
    if (strcmp(inherit, "all") != 0 && strcmp(inherit, "core") != 0 && strcmp(inherit, "none") != 0)
        return xs_error_set(j->e, XS_EINVAL, "option inherit: \"%s\" is not all, core or none",
                            inherit);
    params_open(&j->p, "envPolicy", '{');
    params_strz(&j->p, "inherit", inherit);
    params_bool(&j->p, "ignoreDefaultExcludes", true);
    startparams_list(j, "exclude", XS_OPT_ENV_EXCLUDE);
    params_open(&j->p, "set", '{');
    params_close(&j->p, '}');
    startparams_list(j, "includeOnly", XS_OPT_ENV_ONLY);
    params_close(&j->p, '}');
    return 0;
}

/* -- terminal, time, limits -- */

static int startparams_size(struct startparams_job *j, bool tty, bool inside_io) {
    int64_t rows = xs_options_get_num(j->o, XS_OPT_ROWS, 0);
    int64_t cols = xs_options_get_num(j->o, XS_OPT_COLS, 0);
    if (rows == 0 && cols == 0)
        return 0;
    if (!tty)
        return xs_error_set(j->e, XS_EINVAL, "options rows and cols need a terminal (tty)");
    rows = rows != 0 ? rows : 24;
    cols = cols != 0 ? cols : 80;
    if (rows < 1 || rows > 65535 || cols < 1 || cols > 65535)
        return xs_error_set(j->e, XS_EINVAL, "options rows and cols: 1 to 65535");
    int r = startparams_needs(j, "processStartSize", "set the size of a terminal");
    if (r < 0)
        return r;
    if (!inside_io && !startparams_ours(j, "size"))
        return 0;
    if (!inside_io)
        params_open(&j->p, "size", '{');
    params_i64(&j->p, "rows", rows);
    params_i64(&j->p, "cols", cols);
    if (!inside_io)
        params_close(&j->p, '}');
    return 0;
}

static int startparams_timeout(struct startparams_job *j, struct startparams *out) {
    int64_t ms = xs_options_get_num(j->o, XS_OPT_TIMEOUT_MS, 0);
    if (ms < 0)
        return xs_error_set(j->e, XS_EINVAL, "option timeout-ms is negative");
    if (ms == 0 || !startparams_ours(j, "timeoutMs"))
        return 0;
    if (client_can(j->client, "processTimeout"))
        params_i64(&j->p, "timeoutMs", ms);
    else
        out->timeout_ms = (uint64_t)ms;
    return 0;
}

static int startparams_limits(struct startparams_job *j) {
    static const struct {
        const char *option, *member;
    } limits[] = {
        {XS_OPT_LIMIT_MEMORY, "memoryBytes"}, {XS_OPT_LIMIT_PIDS, "pids"},
        {XS_OPT_LIMIT_FILES, "openFiles"},    {XS_OPT_LIMIT_NICE, "nice"},
        {XS_OPT_LIMIT_OOM, "oomScoreAdj"},    {XS_OPT_LIMIT_CPU, "cpuWeight"},
    };
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        any = any || xs_options_has(j->o, limits[i].option);
    if (!any || !startparams_ours(j, "limits"))
        return 0;
    int r = startparams_needs(j, "processLimits", "limit processes");
    if (r < 0)
        return r;
    params_open(&j->p, "limits", '{');
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (xs_options_has(j->o, limits[i].option))
            params_i64(&j->p, limits[i].member, xs_options_get_num(j->o, limits[i].option, 0));
    }
    params_close(&j->p, '}');
    return 0;
}

/* -- the two shapes -- */

static void startparams_metadata(struct startparams_job *j) {
    const char *thread = xs_options_get(j->o, XS_OPT_THREAD_ID, NULL);
    const char *call = xs_options_get(j->o, XS_OPT_TOOL_CALL_ID, NULL);
    if ((thread == NULL && call == NULL) || !startparams_ours(j, "metadata"))
        return;
    params_open(&j->p, "metadata", '{');
    params_strz(&j->p, "threadId", thread);
    params_strz(&j->p, "toolCallId", call);
    params_close(&j->p, '}');
}

static void startparams_cwd(struct startparams_job *j) {
    if (startparams_ours(j, "cwd"))
        params_path(&j->p, "cwd", j->client, xs_options_get(j->o, XS_OPT_CWD, "."));
}

static int startparams_flat(struct startparams_job *j, struct startparams *out) {
    int r = startparams_argv(j, "argv");
    if (r < 0)
        return r;
    startparams_cwd(j);
    if (startparams_ours(j, "arg0"))
        params_strz(&j->p, "arg0", xs_options_get(j->o, XS_OPT_ARG0, NULL));
    if ((r = startparams_env(j)) < 0 || (r = startparams_policy(j)) < 0)
        return r;
    if (startparams_ours(j, "tty") && startparams_ours(j, "io"))
        params_bool(&j->p, "tty", out->tty);
    if (!out->tty && startparams_ours(j, "pipeStdin") && startparams_ours(j, "io"))
        params_bool(&j->p, "pipeStdin", out->stdin_open);
    startparams_metadata(j);
    if ((r = startparams_size(j, out->tty, false)) < 0 || (r = startparams_timeout(j, out)) < 0 ||
        (r = startparams_limits(j)) < 0)
        return r;
    if (!startparams_ours(j, "sandbox"))
        return 0;
    return sandboxparams_put(&j->p, j->client, j->o, xs_options_get(j->o, XS_OPT_CWD, NULL), j->e);
}

static int startparams_io(struct startparams_job *j, const struct startparams *out) {
    if (!startparams_ours(j, "io"))
        return 0;
    params_open(&j->p, "io", '{');
    params_strz(&j->p, "type", out->tty ? "pty" : "pipe");
    if (!out->tty)
        params_strz(&j->p, "stdin", out->stdin_open ? "open" : "closed");
    int r = startparams_size(j, out->tty, true);
    params_close(&j->p, '}');
    return r;
}

/* Options that a prepared start has no place for. */
static int startparams_check_prepared(struct startparams_job *j) {
    static const char *const foreign[] = {
        XS_OPT_INHERIT,   XS_OPT_ENV_EXCLUDE,  XS_OPT_ENV_ONLY,
        XS_OPT_SANDBOX,   XS_OPT_NETWORK,      XS_OPT_SANDBOX_JSON,
        XS_OPT_THREAD_ID, XS_OPT_TOOL_CALL_ID, XS_OPT_WRITABLE,
    };
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        if (xs_options_has(j->o, foreign[i]))
            return xs_error_set(j->e, XS_EINVAL, "option %s: not with a prepared start",
                                foreign[i]);
    }
    return startparams_needs(j, "processStartSize", "take a prepared start");
}

static int startparams_prepared(struct startparams_job *j, struct startparams *out) {
    int r = startparams_check_prepared(j);
    if (r < 0)
        return r;
    if (startparams_ours(j, "request")) {
        params_open(&j->p, "request", '{');
        if ((r = startparams_argv(j, "command")) < 0)
            return r;
        startparams_cwd(j);
        if ((r = startparams_env(j)) < 0)
            return r;
        params_strz(&j->p, "arg0", xs_options_get(j->o, XS_OPT_ARG0, NULL));
        params_close(&j->p, '}');
    }
    if ((r = startparams_io(j, out)) < 0 || (r = startparams_timeout(j, out)) < 0)
        return r;
    return startparams_limits(j);
}

static void startparams_merge(struct startparams_job *j) {
    if (j->over == NULL)
        return;
    json_for_each_member(key, j->over) {
        struct buf text = BUF_INIT(CALLS_TEXT_MAX);
        _cleanup_free_ char *name = str_dup(json_str(key));
        int r = name != NULL ? json_put(&text, key + 1) : -ENOMEM;
        if (r == 0)
            params_raw(&j->p, name, buf_str(&text));
        else if (j->p.r == 0)
            j->p.r = r;
        buf_fini(&text);
    }
}

static int startparams_body(struct startparams_job *j, struct startparams *out) {
    bool prepared = xs_options_get_num(j->o, XS_OPT_PREPARED, 0) != 0;
    params_open(&j->p, NULL, '{');
    if (prepared)
        params_open(&j->p, "prepared", '{');
    params_strz(&j->p, "processId", out->process_id);
    int r = prepared ? startparams_prepared(j, out) : startparams_flat(j, out);
    if (r < 0)
        return r;
    startparams_merge(j);
    if (prepared)
        params_close(&j->p, '}');
    params_close(&j->p, '}');
    if (j->p.r == 0)
        return 0;
    return xs_error_set(j->e, j->p.r == -ENOMEM ? XS_ENOMEM : XS_EINVAL,
                        j->p.r == -ENOMEM    ? "start: out of memory"
                        : j->p.r == -ENOBUFS ? "start: arguments and environment are too long"
                                             : "start: an option is not UTF-8");
}

static int startparams_with(struct startparams_job *j, struct startparams *out) {
    const char *json = xs_options_get(j->o, XS_OPT_START_JSON, NULL);
    if (json == NULL)
        return startparams_body(j, out);
    struct str s = str_of(json);
    struct json_doc d;
    _cleanup_err_ struct err why = ERR_INIT;
    json_doc_init(&d, s.n, 0);
    int r = utf8_valid(s.p, s.n) ? json_parse(&d, s.p, s.n, &why) : -1;
    if (r < 0 || json_root(&d)->type != JSON_OBJECT) {
        r = xs_error_set(j->e, XS_EINVAL, "option start-json: not a JSON object");
    } else {
        j->over = json_root(&d);
        r = json_get(j->over, "processId") != NULL
                ? xs_error_set(j->e, XS_EINVAL, "option start-json: use process-id")
                : startparams_body(j, out);
    }
    json_doc_fini(&d);
    return r;
}

int startparams_put(struct xs_client *c, const struct xs_options *o, struct buf *b,
                    struct startparams *out, struct xs_error *e) {
    struct startparams_job j = {.client = c, .o = o, .p = {.b = b}, .e = e};
    *out = (struct startparams){.tty = xs_options_get_num(o, XS_OPT_TTY, 0) != 0};
    out->stdin_open = out->tty || xs_options_get_num(o, XS_OPT_STDIN, 0) != 0;
    uuid_random(out->id);
    out->process_id = xs_options_get(o, XS_OPT_PROCESS_ID, out->id);
    return startparams_with(&j, out);
}
