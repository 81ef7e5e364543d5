#include "process/start.h"

#include "base/uri.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "json/jsonw.h"
#include "process/process.h"
#include "process/params.h"
#include "process/events.h"
#include "sandbox/host/sandbox_host.h"
#include "process/sandbox_members.h"
#include "process/start_internal.h"
#include "process/start_shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Where to look for programs if the command has no PATH. */
#define START_DEFAULT_PATH "/usr/local/bin:/bin:/usr/bin"
#define START_CWD_MAX 4096 /* bytes of a directory that are kept */
#define START_CWD_JSON_MAX (6 * START_CWD_MAX + 2)
#define START_ARENA_MAX ((size_t)CONN_MSG_MAX * 2) /* bytes of argv, environment and cwd */

/* -- decoding -- */

static int start_parse_thread(struct str text, char out[40], struct err *e) {
    if (uuid_parse(text, out))
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "invalid thread ID: not a UUID");
}

static int start_check_thread(const struct json_node *v, struct err *e) {
    char canonical[40];
    return start_parse_thread(json_str(v), canonical, e);
}

static const struct jsondec_field metadata_fields[] = {
    {.name = "threadId",
     .kind = JSONDEC_STR,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct start_metadata, thread_id),
     .present = offsetof(struct start_metadata, has_thread_id),
     .check = start_check_thread},
    PARAM_HAS(start_metadata, tool_call_id, has_tool_call_id, "toolCallId", JSONDEC_STR,
              JSONDEC_NULLABLE),
};
static const struct jsondec_struct metadata_struct = PARAM_STRUCT("ExecMetadata", metadata_fields);

static const char *const start_inherits[] = {
    [ENV_CORE] = "core", [ENV_ALL] = "all", [ENV_NONE] = "none"};

static int start_check_inherit(const struct json_node *v, struct err *e) {
    return MIN(jsondec_variant(v, start_inherits, ARRAY_LEN(start_inherits), e), 0);
}

static const struct jsondec_field policy_fields[] = {
    PARAM_CHECKED(start_env_policy, inherit_node, "inherit", JSONDEC_NODE, start_check_inherit),
    PARAM(start_env_policy, ignore_default_excludes, "ignoreDefaultExcludes", JSONDEC_BOOL),
    PARAM(start_env_policy, exclude, "exclude", JSONDEC_STRS),
    PARAM(start_env_policy, set, "set", JSONDEC_STRMAP),
    PARAM(start_env_policy, include_only, "includeOnly", JSONDEC_STRS),
};
static const struct jsondec_struct policy_struct = PARAM_STRUCT("ExecEnvPolicy", policy_fields);

static const struct jsondec_field shell_fields[] = {
    PARAM(start_shell, name, "name", JSONDEC_STR),
    PARAM(start_shell, path, "path", JSONDEC_STR),
};
static const struct jsondec_struct shell_struct = PARAM_STRUCT("ShellInfo", shell_fields);

static const struct jsondec_field snapshot_fields[] = {
    PARAM(start_snapshot, scope_id, "scopeId", JSONDEC_STR),
    PARAM_SUB(start_snapshot, shell, "shell", &shell_struct, JSONDEC_REQUIRED),
};
static const struct jsondec_struct snapshot_struct =
    PARAM_STRUCT("ShellSnapshotRequest", snapshot_fields);

static const struct jsondec_field size_fields[] = {
    PARAM(start_size, rows, "rows", JSONDEC_U16),
    PARAM(start_size, cols, "cols", JSONDEC_U16),
};
const struct jsondec_struct start_size_struct = PARAM_STRUCT("TerminalSize", size_fields);

/* Checks that cwd is a path at all; start_cwd() checks later that this host has it. */
static int start_parse_cwd(struct str cwd, struct err *e) {
    _cleanup_free_ char *path = NULL;
    int r = uri_to_path(cwd, &path, e);
    if (r == -EXDEV) {
        err_fini(e);
        *e = ERR_INIT;
        r = 0;
    }
    return r;
}

static int start_check_cwd(const struct json_node *v, struct err *e) {
    return start_parse_cwd(json_str(v), e);
}

static const struct jsondec_field start_fields[] = {
    PARAM(start_params, process_id, "processId", JSONDEC_STR),
    PARAM_SUB_HAS(start_params, metadata, has_metadata, "metadata", &metadata_struct,
                  JSONDEC_NULLABLE),
    PARAM(start_params, argv, "argv", JSONDEC_STRS),
    PARAM_CHECKED(start_params, cwd, "cwd", JSONDEC_STR, start_check_cwd),
    PARAM_SUB_HAS(start_params, env_policy, has_env_policy, "envPolicy", &policy_struct,
                  JSONDEC_NULLABLE),
    PARAM_SUB_HAS(start_params, snapshot, has_snapshot, "shellSnapshot", &snapshot_struct,
                  JSONDEC_NULLABLE),
    PARAM(start_params, env, "env", JSONDEC_STRMAP),
    PARAM_HAS(start_params, tty, has_tty, "tty", JSONDEC_BOOL, 0),
    PARAM_HAS(start_params, pipe_stdin, has_pipe_stdin, "pipeStdin", JSONDEC_BOOL, 0),
    PARAM_HAS(start_params, arg0, has_arg0, "arg0", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_OPT_CHECKED(start_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE,
                      sandbox_params_check_profile),
    PARAM_OPT(start_params, enforce_managed_network, "enforceManagedNetwork", JSONDEC_BOOL, 0),
    PARAM_OPT(start_params, managed_network, "managedNetwork", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_OPT_CHECKED(start_params, network_proxy, "networkProxy", JSONDEC_NODE, JSONDEC_NULLABLE,
                      network_params_check),
    /* Extensions. */
    PARAM_OPT(start_params, io, "io", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_SUB_HAS(start_params, size, has_size, "size", &start_size_struct, JSONDEC_NULLABLE),
    PARAM_HAS(start_params, timeout_ms, has_timeout, "timeoutMs", JSONDEC_U64, JSONDEC_NULLABLE),
    PARAM_OPT(start_params, limits_node, "limits", JSONDEC_NODE, JSONDEC_NULLABLE),
};
static const struct jsondec_struct start_struct = PARAM_STRUCT("WireExecParams", start_fields);

static int start_inherit(const struct start_env_policy *w, enum env_inherit *out, struct err *e) {
    int r = jsondec_variant(w->inherit_node, start_inherits, ARRAY_LEN(start_inherits), e);
    if (r >= 0)
        *out = (enum env_inherit)r;
    return MIN(r, 0);
}

int start_env_policy(const struct json_node *v, struct env_policy *out, struct err *e) {
    struct start_env_policy w = {.inherit_node = NULL};
    *out = (struct env_policy){.inherit = ENV_CORE};
    int r = jsondec(&policy_struct, v, &w, e);
    if (r == 0)
        r = start_inherit(&w, &out->inherit, e);
    out->ignore_default_excludes = w.ignore_default_excludes;
    out->exclude = w.exclude;
    out->set = w.set;
    out->include_only = w.include_only;
    return r;
}

int start_check_size(const struct start_size *size, struct err *e) {
    if (size->rows > 0 && size->cols > 0)
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "rows and cols must be at least 1");
}

static int start_check_extensions(const struct start_params *p, struct err *e) {
    if (!p->has_tty && p->io == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "missing field `tty`");
    if (p->has_size && !p->tty)
        return err_set(e, ERR_INVALID_PARAMS, "size needs a PTY");
    if (p->has_timeout && p->timeout_ms == 0)
        return err_set(e, ERR_INVALID_PARAMS, "timeoutMs must be at least 1");
    return p->has_size ? start_check_size(&p->size, e) : 0;
}

/* Checks what the types alone do not tell. */
static int start_check_values(struct start_params *p, struct err *e) {
    int r = p->io != NULL ? start_shape_io(p, e) : 0;
    if (r == 0 && p->limits_node != NULL)
        r = start_shape_limits(p, e);
    if (r == 0)
        r = start_check_extensions(p, e);
    if (r == 0 && p->has_env_policy)
        r = start_inherit(&p->env_policy, &p->inherit, e);
    if (r == 0)
        r = start_parse_cwd(p->cwd, e);
    if (r == 0 && p->metadata.has_thread_id)
        r = start_parse_thread(p->metadata.thread_id, p->thread_id, e);
    if (r == 0 && p->process_id.n > PROCESS_ID_MAX)
        r = err_set(e, ERR_INVALID_PARAMS, "processId must not exceed %d bytes", PROCESS_ID_MAX);
    return r == 0 ? sandbox_params_decode(p, e) : r;
}

int start_decode(const struct json_node *params, void *out, struct err *e) {
    struct start_params *p = out;
    *p = (struct start_params){.arena = ARENA_INIT(SANDBOX_PARAMS_ARENA_MAX)};
    const struct json_node *flat = params;
    p->shape = start_shape_of(params, &flat);
    if (flat != params && params->count != 1) /* a member beside it would be ignored */
        return err_set(e, ERR_INVALID_PARAMS, "direct and prepared stand alone in the params");
    int r = p->shape == START_PREPARED ? start_shape_prepared(flat, p, e)
                                       : jsondec(&start_struct, flat, p, e);
    if (r == 0 && p->shape == START_DIRECT)
        r = sandbox_members_check(flat, &start_struct, &p->sandbox, e);
    if (r < 0)
        return r;
    r = start_check_values(p, e);
    if (r < 0 && p->shape == START_DIRECT)
        jsondec_report_first(&start_struct, flat, e);
    return r;
}

void start_release(void *params) {
    arena_fini(&((struct start_params *)params)->arena);
}

/* -- running -- */

/* Sets the native cwd. The refusal of a foreign one names the field. */
static int start_cwd(const struct start_params *p, struct start *s, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    int r = uri_to_path(p->cwd, &path, &why);
    if (r == 0 && (s->spec.cwd = arena_strdup(&s->strings, str_of(path))) == NULL)
        r = -ENOMEM;
    if (r == 0 || r == -ENOMEM)
        return r == 0 ? 0 : err_os(e, ERR_INTERNAL, ENOMEM);
    struct str uri = err_subject(&why);
    return err_set(e, ERR_INVALID_PARAMS,
                   "%scwd URI `%.*s` is not valid on this exec-server host: %s",
                   p->sandbox != NULL ? "sandbox " : "", (int)uri.n, uri.p, err_msg(&why));
}

static int start_argv(const struct start_params *p, struct start *s, struct err *e) {
    size_t count = p->argv->count, i = 0;
    char **argv = arena_calloc(&s->strings, count + 1, sizeof *argv);
    bool nul = p->has_arg0 && str_has_nul(p->arg0), failed = argv == NULL;
    json_for_each(v, p->argv) {
        nul |= str_has_nul(json_str(v));
        if (!failed)
            failed = (argv[i++] = arena_strdup(&s->strings, json_str(v))) == NULL;
    }
    if (!failed && argv[0][0] == '\0' && !nul)
        return err_set(e, ERR_INTERNAL, "missing program for %s spawn", p->tty ? "PTY" : "pipe");
    if (nul)
        return err_set(e, ERR_INTERNAL, "nul byte found in provided data");
    if (!failed) {
        s->spec.program = argv[0];
        if (p->has_arg0)
            failed = (argv[0] = arena_strdup(&s->strings, p->arg0)) == NULL;
    }
    s->spec.argv = argv;
    return failed ? err_os(e, ERR_INTERNAL, ENOMEM) : 0;
}

static int start_env(const struct start_params *p, const char *shell, struct start *s,
                     struct err *e) {
    const struct start_env_policy *w = &p->env_policy;
    struct env_policy policy = {p->inherit, w->ignore_default_excludes, w->exclude, w->set,
                                w->include_only};
    struct env_request r = {.policy = p->has_env_policy ? &policy : NULL,
                            .env = p->env,
                            .no_thread_id = p->has_metadata,
                            .shell = p->tty ? shell : NULL};
    struct env_variable extra[NETWORK_VARIABLES];
    if (s->network != NULL) {
        int n = network_environment(s->network, &s->strings, extra);
        if (n < 0)
            return err_os(e, ERR_INTERNAL, ENOMEM);
        r.extra = extra;
        r.extra_count = (size_t)n;
    }
    if (p->metadata.has_thread_id)
        r.thread_id = str_of(p->thread_id);
    if (p->metadata.has_tool_call_id)
        r.tool_call_id = p->metadata.tool_call_id.n ? p->metadata.tool_call_id : STR_LIT("");
    char **envp;
    int built = env_build(&s->strings, &r, environ, &envp);
    if (built == -EINVAL)
        return err_set(e, ERR_INTERNAL, "data provided contains a nul byte");
    if (built == -E2BIG)
        return err_set(e, ERR_INVALID_PARAMS, "the patterns of envPolicy are too expensive");
    if (built < 0)
        return err_os(e, ERR_INTERNAL, -built);
    s->spec.envp = envp;
    if (strchr(s->spec.program, '/') == NULL) {
        const char *path = env_get(envp, "PATH");
        s->spec.search = path ? path : START_DEFAULT_PATH;
    }
    return 0;
}

static size_t start_bytes(const struct json_node *strings) {
    size_t n = 0;
    for (const struct json_node *v = strings + 1; v < json_next(strings); v++)
        n += v->n + 1;
    return n;
}

/* Whether every kernel would refuse the command: do not even build it. */
static bool start_is_hopeless(const struct start_params *p) {
    const struct start_env_policy *w = &p->env_policy;
    size_t n = start_bytes(p->argv) + start_bytes(p->env);
    if (p->has_env_policy && w->include_only->count == 0)
        n += start_bytes(w->set);
    return n > START_STRINGS_MAX;
}

/* The command without its sandbox. */
static int start_command(const struct start_params *p, const char *shell, struct start *s,
                         struct err *e) {
    if (p->argv->count == 0) /* start_check() refuses it */
        return 0;
    if (start_is_hopeless(p))
        return err_os(e, ERR_INTERNAL, E2BIG);
    int r = start_argv(p, s, e);
    return r == 0 ? start_env(p, shell, s, e) : r;
}

/* Puts the proxy's ports before the others of a managed network. */
static int start_plan_proxy(struct start_params *p, struct start *s, struct err *e) {
    struct plan *plan = &s->plan;
    if (plan->network != PLAN_NET_MANAGED)
        return 0;
    if (plan->port_count > PLAN_PORTS_MAX - PLAN_PROXY_PORTS_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "managedNetwork has more than %d loopbackPorts",
                       PLAN_PORTS_MAX - PLAN_PROXY_PORTS_MAX);
    uint16_t *ports =
        arena_calloc(&p->arena, plan->port_count + PLAN_PROXY_PORTS_MAX, sizeof *ports);
    if (ports == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    for (int i = 0; i < PROXY_LISTENERS; i++) {
        uint16_t port = proxy_port(&s->network->proxy, (enum proxy_listener)i);
        if (port != 0)
            ports[plan->proxy_ports++] = port;
    }
    if (plan->port_count > 0)
        memcpy(ports + plan->proxy_ports, plan->ports, plan->port_count * sizeof *ports);
    plan->port_count += plan->proxy_ports;
    plan->ports = ports;
    return 0;
}

/* Plans the sandbox, and refuses what this host cannot have. */
static int start_plan(const struct sandbox_host *host, struct start_params *p, struct start *s,
                      struct err *e) {
    if (!p->policy.confined)
        return 0;
    static char *const nothing[] = {NULL};
    char *const *envp = s->spec.envp != NULL ? s->spec.envp : nothing;
    const char *home = env_get(envp, "HOME");
    const struct profile_context context = {
        .call = PROFILE_PROCESS,
        .cwd = s->spec.cwd,
        .tmpdir = env_get(envp, "TMPDIR"),
        .home = home != NULL && home[0] != '\0' ? home : host->home,
        .inherit_pids = host->inherit_pids,
    };
    int r = sandbox_params_plan(&p->policy, &context, &p->arena, &s->plan, e);
    return r == 0 && s->network != NULL ? start_plan_proxy(p, s, e) : r;
}

/* Makes the proxy: inside a managed network its listeners follow, else they are on this host. */
static int start_network(struct process_host *host, const struct start_params *p, struct start *s,
                         struct err *e) {
    struct proxy_config config = PROXY_CONFIG_INIT;
    if (p->network_proxy == NULL)
        return 0;
    int r = network_params_config(&p->network, p->process_id, &config, e);
    if (r == 0 && (s->network = network_new(host, &config)) == NULL)
        r = err_os(e, ERR_INTERNAL, ENOMEM);
    arena_fini(&config.arena);
    if (r < 0)
        return r;
    if (p->policy.managed) {
        proxy_reserve(&s->network->proxy, p->policy.ports, p->policy.port_count);
        return 0;
    }
    r = proxy_listen(&s->network->proxy);
    return r < 0 ? err_set(e, ERR_INTERNAL,
                           "failed to start executor network proxy: %s (os error %d)",
                           err_os_text(-r), -r)
                 : 0;
}

/* What a command gets: what its client asks for within the maximum, else the operator's default. */
static int start_limit(bool *given, uint64_t *value, uint64_t usual, uint64_t max, const char *name,
                       struct err *e) {
    if (*given && max > 0 && *value > max)
        return err_set(e, ERR_INVALID_REQUEST, "%s must be at most %" PRIu64 " on this server",
                       name, max);
    if (!*given && (usual > 0 || max > 0)) {
        *given = true;
        *value = usual > 0 ? usual : max;
    }
    return 0;
}

/* Applies the operator's limits to the request. */
static int start_limits(const struct process_settings *o, struct start_params *p, struct err *e) {
    int r = start_limit(&p->has_timeout, &p->timeout_ms, o->timeout_ms, o->timeout_max_ms,
                        "timeoutMs", e);
    for (int k = 0; k < LIMITS_KINDS && r == 0; k++) {
        char name[32];
        uint64_t usual = o->limits.given[k] ? (uint64_t)o->limits.value[k] : 0;
        uint64_t max = o->limits_max.given[k] ? (uint64_t)o->limits_max.value[k] : 0;
        uint64_t value = (uint64_t)p->limits.value[k];
        if (usual == 0 && max == 0)
            continue;
        snprintf(name, sizeof name, "limits.%s", limits_name((enum limits_kind)k));
        r = start_limit(&p->limits.given[k], &value, usual, max, name, e);
        p->limits.value[k] = (int64_t)value;
    }
    return r;
}

/* Whether this server accepts the request at all. */
static int start_admit(const struct session *s, const struct start_params *p, struct err *e) {
    const struct process_settings *o = &s->host->settings;
    if (s->host->draining)
        return err_set(e, ERR_INVALID_REQUEST, "the server is shutting down");
    if (p->shape == START_DIRECT && !p->policy.confined && !o->allow_direct_exec)
        return err_set(e, ERR_INVALID_REQUEST, "direct execution is disabled on this server");
    if (p->shape == START_PREPARED && !o->allow_prepared_exec)
        return err_set(e, ERR_INVALID_REQUEST, "prepared execution is disabled on this server");
    if (o->max_processes > 0 && s->running >= o->max_processes)
        return err_set(e, ERR_INVALID_REQUEST, "process limit reached (%u)", o->max_processes);
    return 0;
}

/* Builds the command and its plan. The protocol fixes the order of refusals. */
static int start_check(const struct session *session, struct start_params *p, struct start *s,
                       struct err *e) {
    struct process_host *host = session->host;
    int r = start_network(host, p, s, e);
    if (r < 0)
        return r;
    _cleanup_err_ struct err bad_cwd = ERR_INIT, bad_command = ERR_INIT;
    int cwd = start_cwd(p, s, &bad_cwd);
    int command = start_command(p, host->shell, s, &bad_command);
    r = start_plan(&host->sandbox, p, s, e);
    if (r < 0)
        return r;
    if (cwd < 0)
        return err_move(e, &bad_cwd);
    r = start_snapshot_check(p, e);
    if (r < 0)
        return r;
    if (p->argv->count == 0)
        return err_set(e, ERR_INVALID_PARAMS, "argv must not be empty");
    if (process_find(session, p->process_id) != NULL)
        return err_about(e, ERR_INVALID_REQUEST, "process ", p->process_id, " already exists");
    r = start_admit(session, p, e);
    if (r == 0)
        r = start_limits(&host->settings, p, e);
    s->limits = p->limits;
    return r == 0 && command < 0 ? err_move(e, &bad_command) : r;
}

/* Keeps the command for process/list as a JSON array: as many whole arguments as fit. */
static int start_keep_argv(struct process *j, const struct start_params *p) {
    _cleanup_buf_ struct buf b = BUF_INIT(START_ARGV_JSON_MAX);
    int r = buf_putc(&b, '[');
    json_for_each(v, p->argv) {
        size_t n = b.len;
        if (r == 0 && v != p->argv + 1)
            r = buf_putc(&b, ',');
        if (r == 0 && jsonw_str_len(json_str(v)) + b.len + 1 < START_ARGV_JSON_MAX)
            r = jsonw_str(&b, json_str(v));
        else
            b.len = n, r = -ENOBUFS;
        if (r < 0)
            break;
        j->argv_kept++;
    }
    j->argv_count = p->argv->count;
    if (r == -ENOMEM || buf_putc(&b, ']') < 0)
        return -ENOMEM;
    j->argv_json = (struct str){steal_ptr(&b.p), b.len};
    return 0;
}

/* Keeps the directory for those who watch all processes. 0 or -ENOMEM. */
static int start_keep_cwd(struct process *j) {
    if (!j->host->ledger.on)
        return 0;
    _cleanup_free_ char *cwd = strdup(j->command.cwd);
    _cleanup_buf_ struct buf b = BUF_INIT(START_CWD_JSON_MAX);
    if (cwd == NULL)
        return -ENOMEM;
    size_t n = strlen(cwd);
    utf8_mend(cwd, n);
    if (jsonw_str(&b, (struct str){cwd, utf8_cut(cwd, n, START_CWD_MAX)}) < 0)
        return -ENOMEM;
    j->cwd_json = (struct str){steal_ptr(&b.p), b.len};
    return 0;
}

/* Adds the limits, and the sandbox around it all. */
static int start_confine(struct process *j, struct start *s, struct err *e) {
    struct process_host *host = j->host;
    struct limits limits = s->limits;
    if (s->confined) /* the sandbox's own processes do not count as the command's */
        limits.value[LIMITS_PIDS] += SANDBOX_PROCESSES;
    int r = limits_plan(&limits, &host->procs.cgroups, &j->cgroup, &s->spec.limits, e);
    if (r < 0 || !s->confined)
        return r;
    /* planted: unsandboxed-start */
    return sandbox_host_prepare(&host->sandbox, &s->plan, host->procs.children.nofile, &s->spec,
                                &s->launch, e);
}

/* ENOENT before the search for the program means a missing device: the text names it. */
static int start_spawn_error(bool tty, int error, struct err *e) {
    if (!tty || error != ENOENT)
        return err_os(e, ERR_INTERNAL, error);
    err_set(e, ERR_INTERNAL, "cannot open a terminal: /dev/ptmx: %s (os error %d)",
            err_os_text(error), error);
    return -error;
}

void start_fini(struct start *s) {
    limits_steps_fini(&s->spec.limits);
    sandbox_host_launch_fini(&s->launch);
    network_free(s->network);
    arena_fini(&s->strings);
    arena_fini(&s->policy);
}

/* Hands the strings over to a new process. 0 or -ENOMEM. */
static int start_keep(struct process *j, const struct start_params *p, struct start *s) {
    j->start = s->strings;
    s->strings = ARENA_INIT(0);
    j->command = (struct process_command){s->spec.program, s->spec.cwd, s->spec.argv};
    j->proc.timeout_ms = p->has_timeout ? p->timeout_ms : 0;
    j->sandboxed = p->policy.profile != NULL;
    if (s->spec.tty && j->host->ledger.on)
        sizes_add(&j->sizes, 0, s->spec.rows, s->spec.cols);
    int r = start_keep_argv(j, p);
    return r == 0 ? start_keep_cwd(j) : r;
}

int start_launch(struct process *j, struct start *s, struct err *e) {
    bool tty = s->spec.tty;
    int r = start_confine(j, s, e);
    if (r == 0 && s->network != NULL) {
        j->network = steal_ptr(&s->network);
        r = network_adopt(j->network, j, steal_fd(&s->launch.proxy));
        if (r < 0)
            r = err_os(e, ERR_INTERNAL, -r);
    }
    if (r < 0)
        return r;
    r = process_start(j, &s->spec);
    if (r < 0)
        return start_spawn_error(tty, -r, e);
    s->launch.child.channel = -1; /* the process owns it now, and the list */
    s->launch.child.placeholders = NULL;
    return 0;
}

/* Starts the command as a new process, maybe later. 0, or -errno with e set and the process
 * gone. */
static int start_process(struct rpc_call *c, struct start_params *p, struct start *s,
                         struct err *e) {
    struct process *j = process_new(session_of_call(c), p->process_id);
    if (j == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    int r = start_keep(j, p, s);
    r = r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
    if (r == 0 && (j->start_call = rpc_defer(c, e)) == NULL)
        r = -EAGAIN;
    if (r < 0) {
        process_free(j);
        return r;
    }
    struct rpc_call *call = j->start_call;
    if (start_snapshot_take(j, p, s))
        return 0;
    r = start_launch(j, s, e);
    if (r < 0) {
        process_free(j);
        rpc_forget(call);
    }
    return r;
}

enum rpc_outcome start_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    struct start_params *p = params;
    __attribute__((cleanup(start_fini))) struct start s = {
        .strings = ARENA_INIT(START_ARENA_MAX),
        .confined = p->policy.confined,
        .spec = {.tty = p->tty,
                 .pipe_stdin = p->pipe_stdin,
                 .rows = p->has_size ? p->size.rows : START_ROWS,
                 .cols = p->has_size ? p->size.cols : START_COLS},
        .launch = SANDBOX_LAUNCH_INIT};
    int r = start_check(session_of_call(c), p, &s, e);
    if (r == 0)
        r = start_process(c, p, &s, e);
    if (r == 0)
        return RPC_LATER;
    events_refused(c, p, e);
    return RPC_ERROR;
}
