#include "server/start.h"

#include "base/uri.h"
#include "base/uuid.h"
#include "json/jsondec.h"
#include "server/job.h"
#include "server/sandbox_params.h"

#include <errno.h>

/* Where programs are looked up when the command has no PATH. */
#define START_DEFAULT_PATH "/usr/local/bin:/bin:/usr/bin"
#define START_ROWS 24
#define START_COLS 80

/* -- decoding -- */

#define FIELD(type, member, wire, kind_, flags_)                                                   \
    {.name = (wire), .kind = (kind_), .flags = (flags_), .offset = offsetof(struct type, member),  \
     .present = JSONDEC_NO_PRESENT}
#define FIELD_P(type, member, has, wire, kind_, flags_)                                            \
    {.name = (wire), .kind = (kind_), .flags = (flags_), .offset = offsetof(struct type, member),  \
     .present = offsetof(struct type, has)}

static const struct jsondec_field metadata_fields[] = {
    FIELD_P(start_metadata, thread_id, has_thread_id, "threadId", JSONDEC_STR, JSONDEC_NULLABLE),
    FIELD_P(start_metadata, tool_call_id, has_tool_call_id, "toolCallId", JSONDEC_STR,
            JSONDEC_NULLABLE),
};
static const struct jsondec_struct metadata_struct = {"ExecMetadata", metadata_fields,
                                                      ARRAY_LEN(metadata_fields)};

static const struct jsondec_field policy_fields[] = {
    FIELD(start_env_policy, inherit_node, "inherit", JSONDEC_NODE, JSONDEC_REQUIRED),
    FIELD(start_env_policy, ignore_default_excludes, "ignoreDefaultExcludes", JSONDEC_BOOL,
          JSONDEC_REQUIRED),
    FIELD(start_env_policy, exclude, "exclude", JSONDEC_STRS, JSONDEC_REQUIRED),
    FIELD(start_env_policy, set, "set", JSONDEC_STRMAP, JSONDEC_REQUIRED),
    FIELD(start_env_policy, include_only, "includeOnly", JSONDEC_STRS, JSONDEC_REQUIRED),
};
static const struct jsondec_struct policy_struct = {"ExecEnvPolicy", policy_fields,
                                                    ARRAY_LEN(policy_fields)};

static const struct jsondec_field shell_fields[] = {
    FIELD(start_shell, name, "name", JSONDEC_STR, JSONDEC_REQUIRED),
    FIELD(start_shell, path, "path", JSONDEC_STR, JSONDEC_REQUIRED),
};
static const struct jsondec_struct shell_struct = {"ShellInfo", shell_fields,
                                                   ARRAY_LEN(shell_fields)};

static const struct jsondec_field snapshot_fields[] = {
    FIELD(start_snapshot, scope_id, "scopeId", JSONDEC_STR, JSONDEC_REQUIRED),
    {.name = "shell",
     .kind = JSONDEC_STRUCT,
     .flags = JSONDEC_REQUIRED,
     .offset = offsetof(struct start_snapshot, shell),
     .present = JSONDEC_NO_PRESENT,
     .sub = &shell_struct},
};
static const struct jsondec_struct snapshot_struct = {"ShellSnapshotRequest", snapshot_fields,
                                                      ARRAY_LEN(snapshot_fields)};

static const struct jsondec_field start_fields[] = {
    FIELD(start_params, process_id, "processId", JSONDEC_STR, JSONDEC_REQUIRED),
    {.name = "metadata",
     .kind = JSONDEC_STRUCT,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct start_params, metadata),
     .present = JSONDEC_NO_PRESENT,
     .sub = &metadata_struct},
    FIELD(start_params, argv, "argv", JSONDEC_STRS, JSONDEC_REQUIRED),
    FIELD(start_params, cwd, "cwd", JSONDEC_STR, JSONDEC_REQUIRED),
    {.name = "envPolicy",
     .kind = JSONDEC_STRUCT,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct start_params, env_policy),
     .present = offsetof(struct start_params, has_env_policy),
     .sub = &policy_struct},
    {.name = "shellSnapshot",
     .kind = JSONDEC_STRUCT,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct start_params, snapshot),
     .present = JSONDEC_NO_PRESENT,
     .sub = &snapshot_struct},
    FIELD(start_params, env, "env", JSONDEC_STRMAP, JSONDEC_REQUIRED),
    FIELD(start_params, tty, "tty", JSONDEC_BOOL, JSONDEC_REQUIRED),
    FIELD(start_params, pipe_stdin, "pipeStdin", JSONDEC_BOOL, 0),
    FIELD_P(start_params, arg0, has_arg0, "arg0", JSONDEC_STR, JSONDEC_NULLABLE),
    FIELD(start_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE),
    FIELD(start_params, enforce_managed_network, "enforceManagedNetwork", JSONDEC_BOOL, 0),
    FIELD(start_params, managed_network, "managedNetwork", JSONDEC_NODE, JSONDEC_NULLABLE),
    FIELD(start_params, network_proxy, "networkProxy", JSONDEC_NODE, JSONDEC_NULLABLE),
};
static const struct jsondec_struct start_struct = {"WireExecParams", start_fields,
                                                   ARRAY_LEN(start_fields)};

static int start_decode_policy(struct start_params *p, struct err *e) {
    static const char *const names[] = {
        [ENV_CORE] = "core", [ENV_ALL] = "all", [ENV_NONE] = "none"};
    int r = jsondec_variant(p->env_policy.inherit_node, names, ARRAY_LEN(names), e);
    if (r >= 0)
        p->inherit = (enum env_inherit)r;
    return MIN(r, 0);
}

/* Checks that cwd is a path at all; whether it is one of this host comes later. */
static int start_decode_cwd(const struct start_params *p, struct err *e) {
    _cleanup_free_ char *path = NULL;
    int r = uri_to_path(p->cwd, &path, e);
    if (r == -EXDEV) {
        err_fini(e);
        r = 0;
    }
    return r;
}

int start_decode(const struct json_node *params, void *out, struct err *e) {
    struct start_params *p = out;
    *p = (struct start_params){0};
    int r = jsondec(&start_struct, params, p, e);
    if (r == 0 && p->has_env_policy)
        r = start_decode_policy(p, e);
    if (r == 0)
        r = start_decode_cwd(p, e);
    if (r == 0 && p->metadata.has_thread_id && !uuid_parse(p->metadata.thread_id, p->thread_id))
        r = err_set(e, ERR_INVALID_PARAMS, "invalid thread ID: not a UUID");
    if (r == 0 && p->process_id.n > JOB_ID_MAX)
        r = err_set(e, ERR_INVALID_PARAMS, "processId must not exceed %d bytes", JOB_ID_MAX);
    return r == 0 ? sandbox_params_check(p, e) : r;
}

/* -- running -- */

/* Native cwd, owned by the caller. The refusal of a foreign one names the field. */
static int start_cwd(const struct start_params *p, char **path, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    if (uri_to_path(p->cwd, path, &why) == 0)
        return 0;
    /* The text is "'URI' is invalid on 'linux'", and the URI may hold anything but that. */
    const char *uri = err_msg(&why) + 1, *end = strstr(uri, "' is invalid on ");
    return err_set(e, ERR_INVALID_PARAMS,
                   "cwd URI `%.*s` is not valid on this exec-server host: %s",
                   end ? (int)(end - uri) : 0, uri, err_msg(&why));
}

static int start_argv(struct job *j, const struct start_params *p, struct spawn_spec *spec,
                      struct err *e) {
    size_t count = p->argv->count, i = 0;
    char **argv = arena_calloc(&j->start, count + 1, sizeof *argv);
    bool nul = p->has_arg0 && str_has_nul(p->arg0), failed = argv == NULL;
    json_for_each(v, p->argv) {
        nul |= str_has_nul(json_str(v));
        if (!failed)
            failed = (argv[i++] = arena_strdup(&j->start, json_str(v))) == NULL;
    }
    if (!failed && argv[0][0] == '\0' && !nul)
        return err_set(e, ERR_INTERNAL, "missing program for %s spawn", p->tty ? "PTY" : "pipe");
    if (nul)
        return err_set(e, ERR_INTERNAL, "nul byte found in provided data");
    if (!failed) {
        spec->program = argv[0];
        if (p->has_arg0)
            failed = (argv[0] = arena_strdup(&j->start, p->arg0)) == NULL;
    }
    spec->argv = argv;
    return failed ? err_os(e, ERR_INTERNAL, ENOMEM) : 0;
}

static int start_env(struct job *j, const struct start_params *p, struct spawn_spec *spec,
                     struct err *e) {
    const struct start_env_policy *w = &p->env_policy;
    struct env_policy policy = {p->inherit, w->ignore_default_excludes, w->exclude, w->set,
                                w->include_only};
    struct env_request r = {.policy = p->has_env_policy ? &policy : NULL,
                            .env = p->env,
                            .shell = p->tty ? j->server->shell : NULL};
    if (p->metadata.has_thread_id)
        r.thread_id = str_of(p->thread_id);
    if (p->metadata.has_tool_call_id)
        r.tool_call_id = p->metadata.tool_call_id.n ? p->metadata.tool_call_id : STR_LIT("");
    char **envp;
    int built = env_build(&j->start, &r, environ, &envp);
    if (built == -EINVAL)
        return err_set(e, ERR_INTERNAL, "data provided contains a nul byte");
    if (built == -E2BIG)
        return err_set(e, ERR_INVALID_PARAMS, "the patterns of envPolicy are too expensive");
    if (built < 0)
        return err_os(e, ERR_INTERNAL, -built);
    spec->envp = envp;
    if (strchr(spec->program, '/') == NULL) {
        const char *path = env_get(envp, "PATH");
        spec->search = path ? path : START_DEFAULT_PATH;
    }
    return 0;
}

static int start_prepare(struct job *j, const struct start_params *p, const char *cwd,
                         struct spawn_spec *spec, struct err *e) {
    *spec = (struct spawn_spec){
        .tty = p->tty, .pipe_stdin = p->pipe_stdin, .rows = START_ROWS, .cols = START_COLS};
    spec->cwd = arena_strdup(&j->start, str_of(cwd));
    if (spec->cwd == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    int r = start_argv(j, p, spec, e);
    return r < 0 ? r : start_env(j, p, spec, e);
}

/* What is checked before the id is reserved, in this order. *cwd is the caller's on success. */
static int start_check(const struct session *s, const struct start_params *p, char **cwd,
                       struct err *e) {
    int r = start_cwd(p, cwd, e);
    if (r == 0)
        r = sandbox_params_refuse(p, e);
    if (r == 0 && p->argv->count == 0)
        r = err_set(e, ERR_INVALID_PARAMS, "argv must not be empty");
    if (r == 0 && job_find(s, p->process_id) != NULL)
        r = err_about(e, ERR_INVALID_REQUEST, "process ", p->process_id, " already exists");
    return r;
}

enum rpc_outcome start_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    const struct start_params *p = params;
    struct session *s = c->peer->user;
    _cleanup_free_ char *cwd = NULL;
    if (start_check(s, p, &cwd, e) < 0)
        return RPC_ERROR;
    struct job *j = job_new(s, p->process_id);
    if (j == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    struct spawn_spec spec;
    if (start_prepare(j, p, cwd, &spec, e) < 0 || (j->start_call = rpc_keep(c, e)) == NULL) {
        job_free(j);
        return RPC_ERROR;
    }
    struct rpc_call *call = j->start_call;
    int r = job_start(j, &spec);
    if (r < 0) {
        rpc_forget(call);
        err_os(e, ERR_INTERNAL, -r);
        return RPC_ERROR;
    }
    return RPC_LATER;
}
