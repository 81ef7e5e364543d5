/* The fs methods that are one call: it runs in a thread, its result is the answer. */
#include "base/uri.h"
#include "fs/fs_copy.h"
#include "fs/fs_dir.h"
#include "fs/fs_meta.h"
#include "fs/fs_mkdir.h"
#include "fs/fs_remove.h"
#include "fs/fs_rename.h"
#include "fs/fs_walk.h"
#include "server/fs_api.h"
#include "server/methods.h"

#include <errno.h>

struct fs_op {
    struct fs_job job;
    struct fs_params params; /* what it owns of the request: paths, data */
    struct buf result;       /* empty: the answer is {} */
};

typedef int fs_op_work(struct fs_job *j);

/* What is being changed is not left half done because nobody waits for the answer. */
static const atomic_bool fs_never;

static struct fs_op *fs_op_of(struct fs_job *j) {
    return container_of(j, struct fs_op, job);
}

int fs_check(const struct server *s, const struct fs_params *p, bool write, struct err *e) {
    (void)s;
    if (p->why.code != 0)
        return err_about(e, p->why.code, "", err_str(&p->why), "");
    if (profile_files_need(p->profile, write) == PROFILE_DIRECT)
        return 0;
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile_context context = {
        .call = PROFILE_FILES, .cwd = "/", .tmpdir = getenv("TMPDIR"), .inherit_pids = false};
    struct plan plan;
    int r = profile_plan(p->profile, &context, &a, &plan, e);
    return r < 0 ? r : err_set(e, ERR_INVALID_REQUEST, "sandbox is not available on this server");
}

static void fs_op_finish(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    struct rpc_call *c = steal_ptr(&j->call);
    struct buf *b = rpc_result_begin(c);
    if (op->result.len == 0)
        method_text(b, "{}");
    else
        method_done(b, buf_put(b, op->result.p, op->result.len));
    rpc_result_send(c);
}

static void fs_op_release(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    spare_give(&j->server->conns.spare, &op->params.memory);
    fs_params_release(&op->params);
    buf_fini(&op->result);
    free(op);
}

/* Starts the job; the params' memory becomes its own. */
static enum rpc_outcome fs_op_start(struct rpc_call *c, struct fs_params *p, bool write,
                                    fs_op_work *work, struct err *e) {
    if (fs_check(server_of_peer(c->peer), p, write, e) < 0)
        return RPC_ERROR;
    struct fs_conn *f = fs_conn_get(c, e);
    struct fs_op *op = f != NULL ? calloc(1, sizeof *op) : NULL;
    if (op == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    op->params = *p;
    op->params.profile = NULL;
    op->params.arena = ARENA_INIT(0);
    op->params.why = ERR_INIT;
    p->path.native = p->destination.native = NULL;
    p->memory = p->uri = BUF_INIT(0);
    op->result = BUF_INIT(FS_RESULT_MAX);
    op->job.bytes = op->params.memory.len;
    op->job.work = work;
    op->job.finish = fs_op_finish;
    op->job.release = fs_op_release;
    return fs_job_start(f, &op->job, c, e);
}

/* -- fs/writeFile -- */

static int fs_write_file_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    struct fs_write w = {.path = p->path.native,
                         .data = p->bytes,
                         .n = p->bytes_n,
                         .follow = p->follow,
                         .atomic = p->atomic};
    return fs_write_file(&w, &j->err);
}

enum rpc_outcome fs_write_file_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)result;
    struct fs_params *p = params;
    _cleanup_err_ struct err why = ERR_INIT;
    if (fs_params_decode_data(p, &why) < 0) {
        err_about(e, ERR_INVALID_REQUEST,
                  "fs/writeFile requires valid base64 dataBase64: ", err_str(&why), "");
        return RPC_ERROR;
    }
    if (fs_params_keep_data(p, c->peer->conn, e) < 0)
        return RPC_ERROR;
    return fs_op_start(c, p, true, fs_write_file_work, e);
}

/* -- the others -- */

static int fs_create_directory_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_create_directory(p->path.native, p->recursive, p->follow, &j->err);
}

enum rpc_outcome fs_create_directory_run(struct rpc_call *c, void *params, struct buf *result,
                                         struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, fs_create_directory_work, e);
}

static int fs_get_metadata_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    return fs_get_metadata(&j->server->devices, op->params.path.native, op->params.follow,
                           &op->result, &j->err);
}

enum rpc_outcome fs_get_metadata_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    const struct fs_params *p = params;
    struct server *s = server_of_peer(c->peer);
    if (p->follow && fs_check(s, p, false, e) == 0 &&
        fs_try_metadata(&s->devices, p->path.native, result) == 0)
        return RPC_DONE;
    return fs_op_start(c, params, false, fs_get_metadata_work, e);
}

static int fs_canonicalize_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    return fs_canonicalize(op->params.path.native, &op->result, &j->err);
}

enum rpc_outcome fs_canonicalize_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    (void)result;
    return fs_op_start(c, params, false, fs_canonicalize_work, e);
}

static int fs_read_directory_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    return fs_read_directory(op->params.path.native, &j->stop, &op->result, &j->err);
}

enum rpc_outcome fs_read_directory_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    (void)result;
    return fs_op_start(c, params, false, fs_read_directory_work, e);
}

static int fs_walk_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    op->params.walk.path = op->params.path.native;
    op->params.walk.uri = op->params.uri.p;
    return fs_walk(&op->params.walk, &j->stop, &op->result, &j->err);
}

enum rpc_outcome fs_walk_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    struct fs_params *p = params;
    if (fs_walk_check(&p->walk, e) < 0)
        return RPC_ERROR;
    p->uri = BUF_INIT(FS_RESULT_MAX);
    int r = uri_canonical(p->path.text, &p->uri);
    if (r == 0)
        r = buf_putc(&p->uri, '\0');
    if (r < 0) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    return fs_op_start(c, params, false, fs_walk_work, e);
}

static int fs_remove_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    struct fs_remove r = {
        .path = p->path.native, .recursive = p->recursive, .force = p->force, .follow = p->follow};
    return fs_remove(&r, &fs_never, &j->err);
}

enum rpc_outcome fs_remove_run(struct rpc_call *c, void *params, struct buf *result,
                               struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, fs_remove_work, e);
}

static int fs_copy_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    struct fs_copy copy = {
        .source = p->path.native, .destination = p->destination.native, .recursive = p->recursive};
    return fs_copy(&copy, &fs_never, &j->err);
}

enum rpc_outcome fs_copy_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, fs_copy_work, e);
}

static int fs_rename_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_rename(p->path.native, p->destination.native, p->replace, &j->err);
}

enum rpc_outcome fs_rename_run(struct rpc_call *c, void *params, struct buf *result,
                               struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, fs_rename_work, e);
}

static int fs_set_permissions_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_set_permissions(p->path.native, (mode_t)p->mode, p->follow, &j->err);
}

enum rpc_outcome fs_set_permissions_run(struct rpc_call *c, void *params, struct buf *result,
                                        struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, fs_set_permissions_work, e);
}
