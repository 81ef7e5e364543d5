#include "environment/envconf_api.h"

#include "base/uri.h"
#include "environment/envconf.h"
#include "files/fs_job.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>

/* A request that a thread answers. */
struct envconf_job {
    struct fs_job job;
    struct arena arena; /* of all that the request borrows */
    struct envconf request;
    struct buf result;
};

/* -- params -- */

static int envconf_check_paths(const struct json_node *paths, struct err *e) {
    json_for_each(path, paths) {
        if (path->type != JSON_ARRAY)
            return jsondec_type_error(path, "a sequence", e);
        json_for_each(key, path) {
            if (key->type != JSON_STRING)
                return jsondec_type_error(key, "a string", e);
        }
    }
    return 0;
}

static int envconf_check_cwd(const struct json_node *cwd, struct err *e) {
    _cleanup_free_ char *path = NULL;
    _cleanup_err_ struct err wrong = ERR_INIT;
    int r = uri_to_path(json_str(cwd), &path, &wrong);
    if (r == 0 || r == -EXDEV) /* another machine's is reported last */
        return 0;
    return err_move(e, &wrong);
}

static const struct jsondec_field envconf_fields[] = {
    PARAM_CHECKED(envconf_params, cwd, "cwd", JSONDEC_STR, envconf_check_cwd),
    PARAM_CHECKED(envconf_params, config, "configPaths", JSONDEC_SEQ, envconf_check_paths),
    PARAM_CHECKED(envconf_params, requirements, "requirementsPaths", JSONDEC_SEQ,
                  envconf_check_paths),
};
static const struct jsondec_struct envconf_struct =
    PARAM_STRUCT("EnvironmentConfigReadParams", envconf_fields);

static int envconf_check_count(const struct json_node *paths, struct err *e) {
    if (paths->count > ENVCONF_PATHS_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "at most %d TOML paths are accepted",
                       ENVCONF_PATHS_MAX);
    json_for_each(path, paths) {
        if (path->count == 0)
            return err_set(e, ERR_INVALID_PARAMS,
                           "TOML paths must contain at least one key segment");
    }
    return 0;
}

int envconf_api_decode(const struct json_node *params, void *out, struct err *e) {
    struct envconf_params *p = out;
    *p = (struct envconf_params){.native = NULL};
    int r = jsondec(&envconf_struct, params, p, e);
    if (r < 0)
        return r;
    _cleanup_err_ struct err foreign = ERR_INIT;
    r = uri_to_path(p->cwd, &p->native, &foreign);
    if (r == -EXDEV)
        foreign.code = ERR_INVALID_PARAMS;
    if (r < 0 && r != -EXDEV)
        err_move(e, &foreign);
    if (r == 0 || r == -EXDEV) {
        int first = envconf_check_paths(p->config, e);
        if (first == 0)
            first = envconf_check_paths(p->requirements, e);
        if (first < 0)
            r = first;
    }
    if (r < 0 && r != -EXDEV) {
        jsondec_report_first(&envconf_struct, params, e);
        return r;
    }
    int checked = sandbox_members_check(params, &envconf_struct, NULL, e);
    if (checked == 0 && p->config->count + p->requirements->count == 0)
        checked =
            err_set(e, ERR_INVALID_PARAMS, "at least one config or requirements path is required");
    if (checked == 0)
        checked = envconf_check_count(p->config, e);
    if (checked == 0)
        checked = envconf_check_count(p->requirements, e);
    if (checked == 0 && r < 0)
        checked = err_move(e, &foreign);
    return checked;
}

void envconf_api_release(void *params) {
    free(((struct envconf_params *)params)->native);
}

/* -- the job -- */

static struct envconf_job *envconf_job_of(struct fs_job *j) {
    return container_of(j, struct envconf_job, job);
}

static int envconf_job_work(struct fs_job *j) {
    struct envconf_job *x = envconf_job_of(j);
    x->result.len = 0;
    return envconf_read(&x->request, &x->result, &j->err);
}

static void envconf_job_finish(struct fs_job *j) {
    struct envconf_job *x = envconf_job_of(j);
    struct rpc_call *c = steal_ptr(&j->call);
    struct buf *b = rpc_result_begin(c);
    rpc_done(b, buf_put(b, x->result.p, x->result.len));
    rpc_result_send(c);
}

static void envconf_job_release(struct fs_job *j) {
    struct envconf_job *x = envconf_job_of(j);
    arena_fini(&x->arena);
    buf_fini(&x->result);
    free(x);
}

/* Copies the paths, for the thread. 0 or -ENOMEM. */
static int envconf_keep_paths(struct arena *a, const struct json_node *paths,
                              struct envconf_paths *out) {
    struct envconf_path *kept = arena_calloc(a, paths->count, sizeof *kept);
    if (kept == NULL)
        return -ENOMEM;
    *out = (struct envconf_paths){kept, paths->count};
    json_for_each(path, paths) {
        struct str *keys = arena_calloc(a, path->count, sizeof *keys);
        if (keys == NULL)
            return -ENOMEM;
        *kept++ = (struct envconf_path){keys, path->count};
        json_for_each(key, path) {
            struct str s = json_str(key);
            char *copy = arena_strdup(a, s);
            if (copy == NULL)
                return -ENOMEM;
            *keys++ = (struct str){copy, s.n};
        }
    }
    return 0;
}

/* Copies what the thread will read; the environment is that of the server. 0 or -ENOMEM. */
static int envconf_job_keep(struct envconf_job *x, const struct envconf_params *p,
                            const char *home) {
    const char *own = getenv("HOME"), *codex = getenv("CODEX_HOME");
    struct envconf *c = &x->request;
    if (own != NULL && own[0] != '\0')
        home = own;
    c->cwd = arena_strdup(&x->arena, str_of(p->native));
    c->home = home != NULL ? arena_strdup(&x->arena, str_of(home)) : NULL;
    c->codex_home = codex != NULL ? arena_strdup(&x->arena, str_of(codex)) : NULL;
    c->system_dir = ENVCONF_SYSTEM_DIR;
    c->stop = &x->job.stop;
    if (c->cwd == NULL || (home != NULL) != (c->home != NULL) ||
        (codex != NULL) != (c->codex_home != NULL))
        return -ENOMEM;
    int r = envconf_keep_paths(&x->arena, p->config, &c->config);
    return r < 0 ? r : envconf_keep_paths(&x->arena, p->requirements, &c->requirements);
}

enum rpc_outcome envconf_api_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)result;
    const struct envconf_params *p = params;
    struct fs_conn *f = fs_conn_get(c, e);
    struct envconf_job *x = f != NULL ? calloc(1, sizeof *x) : NULL;
    if (x == NULL)
        return fs_job_no_memory(e);
    x->arena = ARENA_INIT(ENVCONF_API_ARENA_MAX);
    x->result = BUF_INIT(ENVCONF_RESULT_MAX);
    fs_job_init(&x->job, envconf_job_work, envconf_job_finish, envconf_job_release);
    if (envconf_job_keep(x, p, f->host->processes->sandbox.home) < 0) {
        envconf_job_release(&x->job);
        return fs_job_no_memory(e);
    }
    x->job.target = (struct fs_job_target){.path = {x->request.cwd, x->request.codex_home}};
    return fs_job_start(f, &x->job, c, e);
}
