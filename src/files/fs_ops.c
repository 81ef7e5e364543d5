/* The fs methods that are one call: it runs in a thread, its result is the answer. */
#include "base/uri.h"
#include "fs/fs_copy.h"
#include "fs/fs_dir.h"
#include "fs/fs_meta.h"
#include "fs/fs_mkdir.h"
#include "fs/fs_remove.h"
#include "fs/fs_rename.h"
#include "fs/fs_walk.h"
#include "files/fs_api.h"
#include "files/fs_confined.h"
#include "files/fs_json.h"
#include "files/file_events.h"

#include <errno.h>

struct fs_op {
    struct fs_job job;
    struct fs_params params; /* what it owns of the request: paths, data */
    struct buf result;       /* empty: the answer is {} */
    struct fs_confined confined;
};

typedef int fs_op_work(struct fs_job *j);

/* What is being changed is not left half done because nobody waits for the answer. */
static const atomic_bool fs_never;

static struct fs_op *fs_op_of(struct fs_job *j) {
    return container_of(j, struct fs_op, job);
}

int fs_ops_check(const struct fs_params *p, bool write, struct err *e) {
    if (p->why.code != 0)
        return err_about(e, p->why.code, "", err_str(&p->why), "");
    /* planted: unsandboxed-call */
    return profile_files_need(p->profile, write) == PROFILE_CONFINED;
}

static void fs_op_finish(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    if (j->r > 0) {
        fs_confined_again(&op->confined, j);
        return;
    }
    struct rpc_call *c = steal_ptr(&j->call);
    struct buf *b = rpc_result_begin(c);
    if (op->result.len == 0) /* not confined */
        rpc_done_text(b, "{}");
    else
        rpc_done(b, buf_put(b, op->result.p, op->result.len));
    rpc_result_send(c);
}

static void fs_op_release(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    bufcache_give(&j->host->conns->bufcache, &op->params.memory);
    fs_params_release(&op->params);
    fs_confined_fini(&op->confined);
    buf_fini(&op->result);
    free(op);
}

static struct fs_write fs_op_write(const struct fs_params *p) {
    return (struct fs_write){.path = p->path.native,
                             .data = p->data.p,
                             .n = p->data.n,
                             .follow = p->follow,
                             .atomic = p->atomic};
}

/* Lets the data go along with the call. */
static int fs_op_attach(struct fs_op *op, struct err *e) {
    return op->confined.data >= 0 ? 0 : fs_confined_attach(&op->confined, op->params.data, e);
}

/* In a sandbox: a file is opened there and written here; other data goes along with the call. */
static int fs_op_confined_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    struct fs_write w = fs_op_write(&op->params);
    if (!op->confined.write) {
        int r = w.atomic ? fs_op_attach(op, &j->err) : 0;
        return r < 0 ? r : fs_confined_run(&op->confined, &op->result, &j->err);
    }
    struct fs_file file = FS_FILE_NONE;
    int r = fs_confined_open(&op->confined, &file, &j->err);
    if (r != 0)
        return r;
    r = fs_file_write_all(file.fd, w.data, w.n);
    close(file.fd);
    return r;
}

/* The method of a call that changes something, or NULL. */
static const char *fs_op_changes(enum fs_call_op code) {
    switch (code) {
    case FS_CALL_WRITE:
    case FS_CALL_WRITE_NEW: return "fs/writeFile";
    case FS_CALL_MKDIR: return "fs/createDirectory";
    case FS_CALL_REMOVE: return "fs/remove";
    case FS_CALL_COPY: return "fs/copy";
    case FS_CALL_RENAME: return "fs/rename";
    case FS_CALL_CHMOD: return "fs/setPermissions";
    case FS_CALL_READ:
    case FS_CALL_REPLACE:
    case FS_CALL_METADATA:
    case FS_CALL_CANONICALIZE:
    case FS_CALL_LIST:
    case FS_CALL_WALK: break;
    }
    return NULL;
}

/* Starts the job; the params' memory becomes its own. */
static enum rpc_outcome fs_op_start(struct rpc_call *c, struct fs_params *p, bool write,
                                    enum fs_call_op code, fs_op_work *work, struct err *e) {
    int confined = fs_ops_check(p, write, e);
    if (confined < 0)
        return RPC_ERROR;
    struct fs_conn *f = fs_conn_get(c, e);
    struct fs_op *op = f != NULL ? calloc(1, sizeof *op) : NULL;
    if (op == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    if (confined > 0 && fs_confined_init(&op->confined, c, p, code, e) < 0) {
        free(op);
        return RPC_ERROR;
    }
    op->params = *p;
    op->params.profile = NULL;
    op->params.arena = ARENA_INIT(0);
    op->params.why = ERR_INIT;
    p->path.native = p->destination.native = NULL;
    p->memory = p->uri = BUF_INIT(0);
    op->result = BUF_INIT(FS_RESULT_MAX);
    op->job.bytes = op->params.memory.cap;
    op->job.target = (struct fs_target){
        .path = {op->params.path.native, op->params.destination.native},
        .nofollow = !p->follow || code == FS_CALL_REMOVE || code == FS_CALL_RENAME,
    };
    const char *method = fs_op_changes(code);
    if (method != NULL)
        op->job.report = file_events_new(
            c, method, op->params.path.native, op->params.destination.native,
            code == FS_CALL_WRITE || code == FS_CALL_WRITE_NEW ? (int64_t)op->params.data.n
                                                               : FILE_EVENTS_NO_BYTES);
    op->job.work = confined > 0 ? fs_op_confined_work : work;
    op->job.finish = fs_op_finish;
    op->job.release = fs_op_release;
    return fs_job_start(f, &op->job, c, e);
}

/* -- fs/writeFile -- */

static int fs_write_file_work(struct fs_job *j) {
    struct fs_write w = fs_op_write(&fs_op_of(j)->params);
    return fs_file_write(&w, &j->err);
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
    if (fs_params_keep_data(p, c->message, e) < 0)
        return RPC_ERROR;
    return fs_op_start(c, p, true, p->atomic ? FS_CALL_WRITE_NEW : FS_CALL_WRITE,
                       fs_write_file_work, e);
}

/* -- the others -- */

static int fs_create_directory_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_mkdir(p->path.native, p->recursive, p->follow, &j->err);
}

enum rpc_outcome fs_create_directory_run(struct rpc_call *c, void *params, struct buf *result,
                                         struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, FS_CALL_MKDIR, fs_create_directory_work, e);
}

static int fs_get_metadata_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    struct fs_meta m;
    int r = fs_meta_get(&j->host->devices, p->path.native, p->follow, &m, &j->err);
    return r < 0 ? r : fs_json_meta(&fs_op_of(j)->result, &m);
}

enum rpc_outcome fs_get_metadata_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    const struct fs_params *p = params;
    struct files_host *host = files_host_of(c);
    struct fs_meta m;
    if (p->follow && fs_ops_check(p, false, e) == 0 &&
        fs_meta_try(&host->devices, p->path.native, &m) == 0)
        return rpc_done(result, fs_json_meta(result, &m));
    return fs_op_start(c, params, false, FS_CALL_METADATA, fs_get_metadata_work, e);
}

static int fs_canonicalize_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    _cleanup_free_ char *real = NULL;
    int r = fs_meta_canonicalize(op->params.path.native, &real, &j->err);
    return r < 0 ? r : fs_json_path(&op->result, str_of(real));
}

enum rpc_outcome fs_canonicalize_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    (void)result;
    return fs_op_start(c, params, false, FS_CALL_CANONICALIZE, fs_canonicalize_work, e);
}

static int fs_read_directory_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    struct fs_json_list list;
    const struct fs_sink sink = {fs_json_list_put, &list};
    int r = fs_json_list_begin(&list, &op->result, false);
    if (r == 0)
        r = fs_dir_read(op->params.path.native, &j->stop, &sink, &j->err);
    return fs_json_list_end(&list, r);
}

enum rpc_outcome fs_read_directory_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    (void)result;
    return fs_op_start(c, params, false, FS_CALL_LIST, fs_read_directory_work, e);
}

static int fs_walk_work(struct fs_job *j) {
    struct fs_op *op = fs_op_of(j);
    op->params.walk.path = op->params.path.native;
    op->params.walk.uri = op->params.uri.p;
    struct fs_json_list list;
    const struct fs_sink sink = {fs_json_list_put, &list};
    int r = fs_json_list_begin(&list, &op->result, true);
    if (r == 0)
        r = fs_walk(&op->params.walk, &j->stop, &sink, &j->err);
    return fs_json_list_end(&list, r);
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
    return fs_op_start(c, params, false, FS_CALL_WALK, fs_walk_work, e);
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
    return fs_op_start(c, params, true, FS_CALL_REMOVE, fs_remove_work, e);
}

static int fs_copy_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    struct fs_copy copy = {
        .source = p->path.native, .destination = p->destination.native, .recursive = p->recursive};
    return fs_copy(&copy, &fs_never, &j->err);
}

enum rpc_outcome fs_copy_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, FS_CALL_COPY, fs_copy_work, e);
}

static int fs_rename_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_rename(p->path.native, p->destination.native, p->replace, &j->err);
}

enum rpc_outcome fs_rename_run(struct rpc_call *c, void *params, struct buf *result,
                               struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, FS_CALL_RENAME, fs_rename_work, e);
}

static int fs_set_permissions_work(struct fs_job *j) {
    const struct fs_params *p = &fs_op_of(j)->params;
    return fs_meta_set_permissions(p->path.native, (mode_t)p->mode, p->follow, &j->err);
}

enum rpc_outcome fs_set_permissions_run(struct rpc_call *c, void *params, struct buf *result,
                                        struct err *e) {
    (void)result;
    return fs_op_start(c, params, true, FS_CALL_CHMOD, fs_set_permissions_work, e);
}
