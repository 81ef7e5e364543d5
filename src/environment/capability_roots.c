#include "environment/capability_roots.h"

#include "base/uri.h"
#include "environment/discover_source.h"
#include "files/fs_params.h"
#include "json/jsonw.h"
#include "process/params.h"
#include "process/sandbox_members.h"
#include "process/sandbox_params.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* -- params -- */

struct root_params {
    struct str id, path;
    const struct json_node *sandbox;
};

static int roots_check_path(const struct json_node *v, struct err *e) {
    bool foreign = false;
    return fs_params_check_path(json_str(v), &foreign, e);
}

/* Checks the shape of a `sandbox` member. */
static int roots_check_sandbox(const struct json_node *v, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile;
    return v->type == JSON_NULL ? 0 : profile_decode(v, PROFILE_FILES, &a, &profile, e);
}

static const struct jsondec_field root_fields[] = {
    PARAM(root_params, id, "id", JSONDEC_STR),
    PARAM_CHECKED(root_params, path, "path", JSONDEC_STR, roots_check_path),
    PARAM_OPT_CHECKED(root_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE,
                      roots_check_sandbox),
};
static const struct jsondec_struct root_struct =
    PARAM_STRUCT("WireCapabilityRootDiscoverRequest", root_fields);

static int roots_decode_one(const struct json_node *v, struct root_params *p, struct err *e) {
    *p = (struct root_params){.sandbox = NULL};
    bool foreign = false;
    int r = jsondec(&root_struct, v, p, e);
    if (r < 0)
        return r;
    r = fs_params_check_path(p->path, &foreign, e);
    if (r == 0 && p->sandbox != NULL)
        r = roots_check_sandbox(p->sandbox, e);
    if (r < 0) {
        jsondec_report_first(&root_struct, v, e);
        return r;
    }
    return sandbox_members_check(v, &root_struct, &p->sandbox, e);
}

static int roots_check(const struct json_node *roots, struct err *e) {
    struct root_params ignored;
    int r = 0;
    json_for_each(v, roots) {
        if (r == 0)
            r = roots_decode_one(v, &ignored, e);
    }
    return r;
}

static const struct jsondec_field roots_fields[] = {
    PARAM_CHECKED(capability_roots_params, roots, "roots", JSONDEC_SEQ, roots_check),
};
static const struct jsondec_struct roots_struct =
    PARAM_STRUCT("WireCapabilityRootsDiscoverParams", roots_fields);

int capability_roots_decode(const struct json_node *params, void *out, struct err *e) {
    struct capability_roots_params *p = out;
    *p = (struct capability_roots_params){.roots = NULL};
    int r = jsondec(&roots_struct, params, p, e);
    if (r == 0)
        r = roots_check(p->roots, e);
    return r < 0 ? r : sandbox_members_check(params, &roots_struct, NULL, e);
}

/* -- the answer -- */

int capability_roots_put_file(struct buf *b, const struct discover_file *f) {
    if (f->uri.p == NULL)
        return buf_putz(b, "null");
    int r = buf_putz(b, "{\"path\":");
    if (r == 0)
        r = jsonw_str(b, f->uri);
    if (r == 0)
        r = buf_putz(b, ",\"contents\":");
    if (r == 0)
        r = jsonw_str(b, f->text);
    return r < 0 ? r : buf_putc(b, '}');
}

static int roots_put_member(struct buf *b, const char *before, const struct discover_file *f) {
    int r = buf_putz(b, before);
    return r < 0 ? r : capability_roots_put_file(b, f);
}

static int roots_put_plugin(struct buf *b, const struct discovery *d) {
    if (d->manifest.uri.p == NULL)
        return buf_putz(b, ",\"plugin\":null");
    int r = roots_put_member(b, ",\"plugin\":{\"manifest\":", &d->manifest);
    if (r == 0)
        r = roots_put_member(b, ",\"mcpConfig\":", &d->mcp);
    if (r == 0)
        r = roots_put_member(b, ",\"appsConfig\":", &d->apps);
    return r < 0 ? r : buf_putc(b, '}');
}

static int roots_put_lists(struct buf *b, const struct discovery *d) {
    int r = buf_putz(b, ",\"skills\":[");
    for (size_t i = 0; r == 0 && i < d->skill_count; i++) {
        r = roots_put_member(
            b, i > 0 ? ",{\"instructions\":" : "{\"instructions\":", &d->skills[i].instructions);
        if (r == 0)
            r = roots_put_member(b, ",\"metadata\":", &d->skills[i].metadata);
        if (r == 0)
            r = buf_putc(b, '}');
    }
    if (r == 0)
        r = buf_putz(b, "],\"namespaceManifests\":[");
    for (size_t i = 0; r == 0 && i < d->namespace_count; i++)
        r = roots_put_member(b, i > 0 ? "," : "", &d->namespaces[i]);
    if (r == 0)
        r = buf_putz(b, "],\"warnings\":[");
    for (size_t i = 0; r == 0 && i < d->warning_count; i++) {
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = jsonw_str(b, d->warnings[i]);
    }
    return r < 0 ? r : buf_putc(b, ']');
}

static int roots_put(struct buf *b, struct str id, struct str uri, const struct discovery *d) {
    int r = b->len > 0 ? buf_putc(b, ',') : 0;
    if (r == 0)
        r = buf_putz(b, "{\"id\":");
    if (r == 0)
        r = jsonw_str(b, id);
    if (r == 0)
        r = buf_putz(b, ",\"path\":");
    if (r == 0)
        r = jsonw_str(b, uri);
    if (r == 0)
        r = roots_put_plugin(b, d);
    if (r == 0)
        r = roots_put_lists(b, d);
    if (r == 0)
        r = buf_putz(b, ",\"error\":");
    if (r == 0)
        r = d->error.p != NULL ? jsonw_str(b, d->error) : buf_putz(b, "null");
    return r < 0 ? r : buf_putc(b, '}');
}

/* -- the job -- */

/* A root of the request. Texts are in the job's arena. */
struct root {
    struct str id;
    struct discover_path path;   /* native.p NULL: this host cannot have it */
    struct str refusal;          /* p set: why it cannot be read */
    struct fs_confined confined; /* until the job takes it; zero: no sandbox */
};

struct roots_job {
    struct fs_job job;
    struct arena arena;
    struct root *roots;
    size_t count, at; /* `at` is the one being read */
    struct discovery found;
    struct buf result; /* the roots so far */
};

static struct roots_job *roots_job_of(struct fs_job *j) {
    return container_of(j, struct roots_job, job);
}

/* Sets an error of the root as if it had been found. */
static int roots_refuse(struct roots_job *x, const struct root *root) {
    static const char before[] = "failed to inspect capability root ";
    size_t n = sizeof before - 1 + root->path.uri.n + 2 + root->refusal.n;
    char *text = arena_alloc(&x->found.arena, n + 1);
    if (text == NULL)
        return -ENOMEM;
    snprintf(text, n + 1, "%s%.*s: %.*s", before, (int)root->path.uri.n, root->path.uri.p,
             (int)root->refusal.n, root->refusal.p);
    x->found.error = (struct str){text, strlen(text)};
    return 0;
}

/* Adds the root to the answer. */
static int roots_add(struct roots_job *x, const struct root *root) {
    size_t before = x->result.len;
    int r = roots_put(&x->result, root->id, root->path.uri, &x->found);
    if (r != -ENOBUFS)
        return r;
    x->result.len = before;
    discover_reset(&x->found);
    x->found.error = STR_LIT("the answer has no room for the files of this capability root");
    return roots_put(&x->result, root->id, root->path.uri, &x->found);
}

static int roots_work(struct fs_job *j) {
    struct roots_job *x = roots_job_of(j);
    const struct root *root = &x->roots[x->at];
    const struct discover_source source = discover_source_of(j);
    discover_reset(&x->found);
    int r = root->refusal.p != NULL ? roots_refuse(x, root)
                                    : discover_root(&source, &root->path, &x->found);
    if (r == 0)
        r = roots_add(x, root);
    discover_fini(&x->found);
    return r;
}

/* Hands the job to the pool for its present root. */
static void roots_aim(struct roots_job *x) {
    struct root *root = &x->roots[x->at];
    x->job.confined = root->confined;
    root->confined = (struct fs_confined){.helper = NULL};
    x->job.target = (struct fs_job_target){.path = {root->path.native.p}};
}

static void roots_answer(struct roots_job *x) {
    struct rpc_call *c = steal_ptr(&x->job.call);
    struct buf *b = rpc_result_begin(c);
    int r = buf_putz(b, "{\"roots\":[");
    if (r == 0)
        r = buf_put(b, x->result.p, x->result.len);
    if (r == 0)
        r = buf_putz(b, "]}");
    rpc_done(b, r);
    rpc_result_send(c);
}

static void roots_finish(struct fs_job *j) {
    struct roots_job *x = roots_job_of(j);
    fs_confined_fini(&j->confined);
    j->confined = (struct fs_confined){.helper = NULL};
    if (++x->at == x->count) {
        roots_answer(x);
        return;
    }
    roots_aim(x);
    fs_job_queue(j);
}

static void roots_free(struct roots_job *x) {
    for (size_t i = 0; i < x->count; i++)
        fs_confined_fini(&x->roots[i].confined);
    discover_fini(&x->found);
    arena_fini(&x->arena);
    buf_fini(&x->result);
    free(x);
}

static void roots_release(struct fs_job *j) {
    roots_free(roots_job_of(j));
}

static struct str roots_copy(struct roots_job *x, struct str s) {
    return (struct str){arena_strdup(&x->arena, s), s.n};
}

/* Notes the sandbox of a root. What this host cannot have is the root's error. */
static int roots_confine(struct roots_job *x, struct rpc_call *c, const struct root_params *p,
                         struct root *root) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    struct profile *profile = NULL;
    int r = p->sandbox != NULL ? profile_decode(p->sandbox, PROFILE_FILES, &a, &profile, &e) : 0;
    if (r == 0 && profile_files_need(profile, false) == PROFILE_CONFINED)
        r = fs_confined_begin(&root->confined, c, profile, &e);
    if (r == 0)
        return 0;
    root->confined = (struct fs_confined){.helper = NULL};
    root->refusal = roots_copy(x, err_str(&e));
    return root->refusal.p != NULL ? 0 : -ENOMEM;
}

/* Copies a root of the request. 0 or -ENOMEM. */
static int roots_keep(struct roots_job *x, struct rpc_call *c, const struct json_node *v) {
    _cleanup_buf_ struct buf uri = BUF_INIT(FS_RESULT_MAX);
    _cleanup_free_ char *native = NULL;
    _cleanup_err_ struct err e = ERR_INIT;
    struct root *root = &x->roots[x->count];
    struct root_params p;
    if (roots_decode_one(v, &p, &e) < 0)
        return -ENOMEM; /* it was right before */
    x->count++;
    bool foreign = uri_to_path(p.path, &native, &e) < 0;
    int r = foreign ? buf_put(&uri, p.path.p, p.path.n) : uri_canonical(p.path, &uri);
    root->id = roots_copy(x, p.id);
    root->path.uri = roots_copy(x, buf_str(&uri));
    if (r < 0 || root->id.p == NULL || root->path.uri.p == NULL)
        return -ENOMEM;
    if (foreign) {
        root->refusal = roots_copy(x, err_str(&e));
        return root->refusal.p != NULL ? 0 : -ENOMEM;
    }
    root->path.native = roots_copy(x, str_of(native));
    return root->path.native.p != NULL ? roots_confine(x, c, &p, root) : -ENOMEM;
}

enum rpc_outcome capability_roots_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e) {
    const struct capability_roots_params *p = params;
    if (p->roots->count > CAPABILITY_ROOTS_MAX) {
        err_set(e, ERR_INVALID_REQUEST, "capability root discovery accepts at most %d roots",
                CAPABILITY_ROOTS_MAX);
        return RPC_ERROR;
    }
    if (p->roots->count == 0)
        return rpc_done_text(result, "{\"roots\":[]}");
    struct fs_conn *f = fs_conn_get(c, e);
    struct roots_job *x = f != NULL ? calloc(1, sizeof *x) : NULL;
    if (x == NULL)
        return fs_job_no_memory(e);
    x->arena = ARENA_INIT(CAPABILITY_ROOTS_ARENA_MAX);
    x->result = BUF_INIT(CAPABILITY_ROOTS_RESULT_MAX);
    x->roots = arena_calloc(&x->arena, p->roots->count, sizeof *x->roots);
    int r = x->roots != NULL ? 0 : -ENOMEM;
    json_for_each(v, p->roots) {
        if (r == 0)
            r = roots_keep(x, c, v);
    }
    if (r < 0) {
        roots_free(x);
        return fs_job_no_memory(e);
    }
    fs_job_init(&x->job, roots_work, roots_finish, roots_release);
    roots_aim(x);
    return fs_job_start(f, &x->job, c, e);
}
