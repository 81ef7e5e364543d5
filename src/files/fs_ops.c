/* The fs methods that are one call, made in a thread. */
#include "base/uri.h"
#include "fs/fs_copy.h"
#include "fs/fs_dir.h"
#include "fs/fs_link.h"
#include "fs/fs_meta.h"
#include "fs/fs_mkdir.h"
#include "fs/fs_remove.h"
#include "fs/fs_rename.h"
#include "fs/fs_walk.h"
#include "files/fs_api.h"
#include "files/fs_handle.h"
#include "files/fs_params.h"
#include "files/fs_json.h"
#include "files/file_events.h"

#include <errno.h>

struct op {
    struct fs_job job;
    struct fs_params params; /* owns the paths and data of the request */
    struct buf result;       /* empty: the answer is {} */
};

/* Finishes a change even if nobody waits for the answer any more. */
static const atomic_bool op_never;

static struct op *op_of(struct fs_job *j) {
    return container_of(j, struct op, job);
}

int fs_ops_check(const struct fs_params *p, bool write, struct err *e) {
    if (p->why.code != 0)
        return err_about(e, p->why.code, "", err_str(&p->why), "");
    /* planted: unsandboxed-call */
    return profile_files_need(p->profile, write) == PROFILE_CONFINED;
}

static void op_finish(struct fs_job *j) {
    struct op *op = op_of(j);
    struct rpc_call *c = steal_ptr(&j->call);
    struct buf *b = rpc_result_begin(c);
    if (op->result.len == 0)
        rpc_done_text(b, "{}");
    else
        rpc_done(b, buf_put(b, op->result.p, op->result.len));
    rpc_result_send(c);
}

static void op_release(struct fs_job *j) {
    struct op *op = op_of(j);
    bufcache_give(&j->host->conns->bufcache, &op->params.memory);
    fs_params_release(&op->params);
    buf_fini(&op->result);
    free(op);
}

static struct fs_write op_write(const struct fs_params *p) {
    return (struct fs_write){.path = p->path.native,
                             .data = p->data.p,
                             .n = p->data.n,
                             .follow = p->follow,
                             .atomic = p->atomic};
}

/* The helper opens a file, which is written here; other data goes along with the call. */
static int op_confined_work(struct fs_job *j) {
    struct op *op = op_of(j);
    struct fs_write w = op_write(&op->params);
    if (!j->confined.write) {
        int r = w.atomic ? fs_confined_attach(&j->confined, op->params.data, &j->err) : 0;
        return r < 0 ? r : fs_confined_run(&j->confined, &op->result, &j->err);
    }
    struct fs_file file = FS_FILE_NONE;
    int r = fs_confined_open(&j->confined, &file, &j->err);
    if (r != 0)
        return r;
    r = fs_file_write_all(file.fd, w.data, w.n);
    close(file.fd);
    return r;
}

/* -- the calls: in a thread -- */

static int op_write_file(struct fs_job *j) {
    struct fs_write w = op_write(&op_of(j)->params);
    return fs_file_write(&w, &j->err);
}

static int op_mkdir(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    return fs_mkdir(p->path.native, p->recursive, p->follow, &j->err);
}

static int op_get_metadata(struct fs_job *j) {
    struct op *op = op_of(j);
    struct fs_meta m;
    int r = fs_meta_get(&j->host->devices, op->params.path.native, op->params.follow, &m, &j->err);
    return r < 0 ? r : fs_json_meta(&op->result, &m);
}

static int op_canonicalize(struct fs_job *j) {
    struct op *op = op_of(j);
    _cleanup_free_ char *real = NULL;
    int r = fs_meta_canonicalize(op->params.path.native, &real, &j->err);
    return r < 0 ? r : fs_json_path(&op->result, str_of(real));
}

/* fs/readDirectory and fs/walk. */
static int op_list(struct fs_job *j) {
    struct op *op = op_of(j);
    struct fs_json_list list;
    const struct fs_sink sink = {fs_json_list_put, &list};
    bool walk = op->params.op == FS_CALL_WALK;
    int r = fs_json_list_begin(&list, &op->result, walk);
    if (r == 0)
        r = walk ? fs_walk(&op->params.walk, &j->stop, &sink, &j->err)
                 : fs_dir_read(op->params.path.native, &j->stop, &sink, &j->err);
    return fs_json_list_end(&list, r);
}

static int op_remove(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    struct fs_remove r = {
        .path = p->path.native, .recursive = p->recursive, .force = p->force, .follow = p->follow};
    return fs_remove(&r, &op_never, &j->err);
}

static int op_copy(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    struct fs_copy copy = {
        .source = p->path.native, .destination = p->destination.native, .recursive = p->recursive};
    return fs_copy(&copy, &op_never, &j->err);
}

static int op_rename(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    return fs_rename(p->path.native, p->destination.native, p->replace, &j->err);
}

static int op_set_permissions(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    return fs_meta_set_permissions(p->path.native, (mode_t)p->mode, p->follow, &j->err);
}

static int op_set_times(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    return fs_meta_set_times(p->path.native, p->modified_ms, p->follow, &j->err);
}

static int op_read_link(struct fs_job *j) {
    struct op *op = op_of(j);
    struct fs_link link;
    int r = fs_link_read(op->params.path.native, &link, &j->err);
    return r < 0 ? r : fs_json_target(&op->result, (struct str){link.target, link.n});
}

static int op_symlink(struct fs_job *j) {
    const struct fs_params *p = &op_of(j)->params;
    return fs_link_make(p->path.native, p->target_bytes, &j->err);
}

static const struct {
    int (*work)(struct fs_job *j);
    const char *method; /* of a call that changes something, for the audit log; else NULL */
    bool nofollow;      /* a link that the path ends in is never followed */
} op_table[FS_CALL_OPS] = {
    [FS_CALL_WRITE] = {op_write_file, "fs/writeFile", false},
    [FS_CALL_WRITE_NEW] = {op_write_file, "fs/writeFile", false},
    [FS_CALL_MKDIR] = {op_mkdir, "fs/createDirectory", false},
    [FS_CALL_METADATA] = {op_get_metadata, NULL, false},
    [FS_CALL_CANONICALIZE] = {op_canonicalize, NULL, false},
    [FS_CALL_LIST] = {op_list, NULL, false},
    [FS_CALL_WALK] = {op_list, NULL, false},
    [FS_CALL_REMOVE] = {op_remove, "fs/remove", true},
    [FS_CALL_COPY] = {op_copy, "fs/copy", false},
    [FS_CALL_RENAME] = {op_rename, "fs/rename", true},
    [FS_CALL_CHMOD] = {op_set_permissions, "fs/setPermissions", false},
    [FS_CALL_TIMES] = {op_set_times, "fs/setTimes", false},
    [FS_CALL_READ_LINK] = {op_read_link, NULL, true},
    [FS_CALL_SYMLINK] = {op_symlink, "fs/symlink", true},
};

/* -- the methods -- */

/* Moves the params' memory to the operation. */
static void op_take_params(struct op *op, struct fs_params *p) {
    op->params = *p;
    op->params.profile = NULL;
    op->params.arena = ARENA_INIT(0);
    op->params.why = ERR_INIT;
    op->params.walk.path = p->path.native;
    op->params.walk.uri = p->uri.p;
    p->path.native = p->destination.native = p->target_bytes = NULL;
    p->memory = p->uri = BUF_INIT(0);
}

enum rpc_outcome fs_ops_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    (void)result;
    struct fs_params *p = params;
    const char *method = op_table[p->op].method;
    int confined = fs_ops_check(p, method != NULL, e);
    if (confined < 0)
        return RPC_ERROR;
    struct fs_conn *f = fs_conn_get(c, e);
    struct op *op = f != NULL ? calloc(1, sizeof *op) : NULL;
    if (op == NULL)
        return fs_job_no_memory(e);
    if (confined > 0 && fs_confined_init(&op->job.confined, c, p, p->op, e) < 0) {
        free(op);
        return RPC_ERROR;
    }
    op_take_params(op, p);
    p = &op->params;
    op->result = BUF_INIT(FS_RESULT_MAX);
    op->job.bytes = p->memory.cap;
    op->job.target = (struct fs_job_target){
        .path = {p->path.native, p->destination.native},
        .nofollow = !p->follow || op_table[p->op].nofollow,
    };
    bool data = p->op == FS_CALL_WRITE || p->op == FS_CALL_WRITE_NEW;
    const char *to = p->op == FS_CALL_SYMLINK ? p->target_bytes : p->destination.native;
    if (method != NULL)
        op->job.report = file_events_new(c, method, p->path.native, to,
                                         data ? (int64_t)p->data.n : FILE_EVENTS_NO_BYTES);
    fs_job_init(&op->job, confined > 0 ? op_confined_work : op_table[p->op].work, op_finish,
                op_release);
    return fs_job_start(f, &op->job, c, e);
}

enum rpc_outcome fs_ops_write_file_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    struct fs_params *p = params;
    if (p->bad_data.code != 0) {
        err_about(e, ERR_INVALID_REQUEST,
                  "fs/writeFile requires valid base64 dataBase64: ", err_str(&p->bad_data), "");
        return RPC_ERROR;
    }
    if (fs_params_keep_data(p, c->message, e) < 0)
        return RPC_ERROR;
    if (p->atomic)
        p->op = FS_CALL_WRITE_NEW;
    return fs_ops_run(c, params, result, e);
}

enum rpc_outcome fs_ops_get_metadata_run(struct rpc_call *c, void *params, struct buf *result,
                                         struct err *e) {
    const struct fs_params *p = params;
    struct fs_meta m;
    if (p->follow && fs_ops_check(p, false, e) == 0 &&
        fs_meta_try(&files_host_of(c)->devices, p->path.native, &m) == 0)
        return rpc_done(result, fs_json_meta(result, &m));
    return fs_ops_run(c, params, result, e);
}

enum rpc_outcome fs_ops_walk_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    struct fs_params *p = params;
    if (fs_walk_check(&p->walk, e) < 0)
        return RPC_ERROR;
    p->uri = BUF_INIT(FS_RESULT_MAX);
    if (uri_canonical(p->path.text, &p->uri) < 0 || buf_putc(&p->uri, '\0') < 0)
        return fs_job_no_memory(e);
    return fs_ops_run(c, params, result, e);
}
