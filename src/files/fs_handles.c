/* fs/open, fs/readBlock, fs/writeBlock, fs/close. */
#include "json/base64.h"
#include "files/fs_api.h"
#include "files/fs_handle.h"
#include "files/fs_params.h"
#include "files/fs_json.h"
#include "files/file_events.h"

#include <errno.h>

static int handles_check_id(struct str id, struct err *e) {
    if (id.n <= FS_HANDLE_ID_MAX)
        return 0;
    return err_set(e, ERR_INVALID_REQUEST, "file handle ID must not exceed %d bytes",
                   FS_HANDLE_ID_MAX);
}

/* Finds the open handle that a request names. NULL with e set. */
static struct fs_handle *handles_find(struct rpc_call *c, struct str id, struct err *e) {
    struct fs_conn *f = fs_conn_get(c, e);
    struct fs_handle *h = f != NULL ? fs_handle_find(f, id) : NULL;
    if (f != NULL && (h == NULL || h->file.fd < 0)) {
        err_about(e, ERR_NOT_FOUND, "unknown file handle `", id, "`");
        return NULL;
    }
    return h;
}

/* -- fs/open -- */

struct handle_open {
    struct fs_job job;
    char *path;         /* owned */
    enum fs_call_op op; /* FS_CALL_READ, _REPLACE or _UPDATE */
    struct fs_file file;
};

static int open_work(struct fs_job *j) {
    struct handle_open *o = container_of(j, struct handle_open, job);
    if (j->confined.helper != NULL)
        return fs_confined_open(&j->confined, &o->file, &j->err);
    struct fs_devices *d = &j->host->devices;
    if (o->op == FS_CALL_READ)
        return fs_file_open_read(d, o->path, true, &o->file, &j->err);
    return o->op == FS_CALL_UPDATE ? fs_file_open_update(d, o->path, &o->file, &j->err)
                                   : fs_file_open_replace(d, o->path, &o->file, &j->err);
}

static void open_finish(struct fs_job *j) {
    struct handle_open *o = container_of(j, struct handle_open, job);
    struct rpc_call *c = steal_ptr(&j->call);
    j->held->file = o->file;
    o->file = FS_FILE_NONE;
    if (j->report != NULL) { /* logged now, and at its end with the bytes written */
        file_events_tell(j->report, NULL);
        file_events_turn(j->report, "fs/close");
        j->held->report = steal_ptr(&j->report);
    }
    struct buf *b = rpc_result_begin(c);
    rpc_done(b, fs_json_handle(b, (struct str){j->held->id, j->held->id_len}));
    rpc_result_send(c);
}

static void open_release(struct fs_job *j) {
    struct handle_open *o = container_of(j, struct handle_open, job);
    if (j->held->file.fd < 0 && j->held->conn != NULL) /* it could not be opened */
        fs_handle_drop(j->held);
    if (o->file.fd >= 0) /* the client is gone */
        files_host_close(j->host, o->file.fd);
    free(o->path);
    free(o);
}

static int handles_check_new(const struct fs_conn *f, struct str id, struct err *e) {
    if (fs_handle_find(f, id) != NULL)
        return err_about(e, ERR_INVALID_REQUEST, "file handle `", id, "` already exists");
    if (f->handle_count >= FS_HANDLES_MAX)
        return err_set(e, ERR_INVALID_REQUEST, "at most %d file handles may be open per connection",
                       FS_HANDLES_MAX);
    return 0;
}

enum rpc_outcome fs_handles_open_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    (void)result;
    struct fs_params *p = params;
    struct fs_conn *f = fs_conn_get(c, e);
    if (f == NULL || handles_check_id(p->handle_id, e) < 0 ||
        handles_check_new(f, p->handle_id, e) < 0)
        return RPC_ERROR;
    bool write = p->op != FS_CALL_READ;
    int confined = fs_ops_check(p, write, e);
    if (confined < 0)
        return RPC_ERROR;
    struct handle_open *o = calloc(1, sizeof *o);
    if (o == NULL)
        return fs_job_no_memory(e);
    if (confined > 0 && fs_confined_init(&o->job.confined, c, p, p->op, e) < 0) {
        free(o);
        return RPC_ERROR;
    }
    struct fs_handle *h = fs_handle_new(f, p->handle_id, e);
    if (h == NULL) {
        fs_confined_fini(&o->job.confined);
        free(o);
        return RPC_ERROR;
    }
    o->path = steal_ptr(&p->path.native);
    o->op = p->op;
    o->file = FS_FILE_NONE;
    o->job.target.path[0] = o->path;
    if (write)
        o->job.report = file_events_new(c, "fs/open", o->path, NULL, FILE_EVENTS_NO_BYTES);
    fs_job_init(&o->job, open_work, open_finish, open_release);
    fs_handle_use(h, &o->job);
    return fs_job_start(f, &o->job, c, e);
}

/* -- fs/readBlock -- */

struct read_block {
    struct fs_job job;
    struct fs_file file; /* borrowed from the handle, which is held */
    uint64_t offset;
    size_t len, got;
    struct sendq_seg *seg; /* owned */
};

static int read_block_work(struct fs_job *j) {
    struct read_block *b = container_of(j, struct read_block, job);
    ssize_t n = fs_read_encoded(&b->file, b->offset, b->len, true, b->seg);
    b->got = n > 0 ? (size_t)n : 0;
    return (int)MIN(n, 0);
}

/* Writes the result around the bytes that seg has encoded. */
static void read_block_put(struct rpc_call *c, struct buf *result, struct sendq_seg *seg,
                           bool eof) {
    int r = buf_putz(result, "{\"chunk\":\"");
    rpc_result_blob(c, seg);
    if (r == 0)
        r = buf_putz(result, eof ? "\",\"eof\":true}" : "\",\"eof\":false}");
    (void)r; /* the buffer always has that much room */
}

static void read_block_finish(struct fs_job *j) {
    struct read_block *b = container_of(j, struct read_block, job);
    struct rpc_call *c = steal_ptr(&j->call);
    read_block_put(c, rpc_result_begin(c), steal_ptr(&b->seg), b->got < b->len);
    rpc_result_send(c);
}

static void read_block_release(struct fs_job *j) {
    struct read_block *b = container_of(j, struct read_block, job);
    /* A read error ends the handle. */
    if (j->r < 0 && !j->job.refused && j->held->conn != NULL)
        fs_handle_drop(j->held);
    sendq_seg_free(&j->host->conns->pool, b->seg);
    free(b);
}

enum rpc_outcome fs_handles_read_block_run(struct rpc_call *c, void *params, struct buf *result,
                                           struct err *e) {
    const struct fs_params *p = params;
    if (handles_check_id(p->handle_id, e) < 0)
        return RPC_ERROR;
    if (p->len < 1 || p->len > FS_BLOCK_MAX) {
        err_set(e, ERR_INVALID_REQUEST, "file read block length must be between 1 and %u",
                FS_BLOCK_MAX);
        return RPC_ERROR;
    }
    struct fs_handle *h = handles_find(c, p->handle_id, e);
    if (h == NULL)
        return RPC_ERROR;
    struct files_host *host = h->conn->host;
    size_t len = (size_t)p->len;
    struct sendq_seg *seg = sendq_seg_new(&host->conns->pool, base64_encoded_len(len));
    fs_read_used_blocks(host);
    ssize_t n = -EAGAIN;
    if (seg != NULL && fs_file_try_settle(&h->file))
        n = fs_read_encoded(&h->file, p->offset, len, false, seg);
    if (n >= 0) {
        read_block_put(c, result, seg, (size_t)n < len);
        return RPC_DONE;
    }
    struct read_block *b = seg != NULL ? calloc(1, sizeof *b) : NULL;
    if (b == NULL) {
        sendq_seg_free(&host->conns->pool, seg);
        return fs_job_no_memory(e);
    }
    seg->len = 0;
    b->file = h->file;
    b->offset = p->offset;
    b->len = len;
    b->seg = seg;
    b->job.bytes = seg->cap;
    b->job.target.site = b->file.site;
    fs_job_init(&b->job, read_block_work, read_block_finish, read_block_release);
    fs_handle_use(h, &b->job);
    return fs_job_start(h->conn, &b->job, c, e);
}

/* -- fs/writeBlock -- */

struct write_block {
    struct fs_job job;
    int fd; /* borrowed from the handle, which is held */
    uint64_t offset;
    struct buf memory; /* that holds the data */
    const void *data;
    size_t n;
};

static int write_block_work(struct fs_job *j) {
    const struct write_block *w = container_of(j, struct write_block, job);
    return fs_file_pwrite(w->fd, w->data, w->n, w->offset);
}

static void write_block_release(struct fs_job *j) {
    struct write_block *w = container_of(j, struct write_block, job);
    if (j->ran && j->r >= 0)
        file_events_add(j->held->report, w->n);
    bufcache_give(&j->host->conns->bufcache, &w->memory);
    free(w);
}

static int write_block_check(const struct fs_params *p, struct err *e) {
    if (p->data.n < 1 || p->data.n > FS_BLOCK_MAX)
        return err_set(e, ERR_INVALID_REQUEST, "file write block length must be between 1 and %u",
                       FS_BLOCK_MAX);
    if (p->offset > INT64_MAX || p->data.n > INT64_MAX - p->offset)
        return err_set(e, ERR_INVALID_REQUEST,
                       "file write range exceeds the signed 64-bit file offset limit");
    return 0;
}

enum rpc_outcome fs_handles_write_block_run(struct rpc_call *c, void *params, struct buf *result,
                                            struct err *e) {
    (void)result;
    struct fs_params *p = params;
    if (handles_check_id(p->handle_id, e) < 0 || write_block_check(p, e) < 0)
        return RPC_ERROR;
    struct fs_handle *h = handles_find(c, p->handle_id, e);
    if (h == NULL)
        return RPC_ERROR;
    if (fs_params_keep_data(p, c->message, e) < 0)
        return RPC_ERROR;
    struct write_block *w = calloc(1, sizeof *w);
    if (w == NULL)
        return fs_job_no_memory(e);
    w->fd = h->file.fd;
    w->offset = p->offset;
    w->memory = p->memory;
    p->memory = BUF_INIT(0);
    w->data = p->data.p;
    w->n = p->data.n;
    w->job.bytes = w->memory.cap;
    w->job.target.site = h->file.site;
    fs_job_init(&w->job, write_block_work, fs_job_finish_empty, write_block_release);
    fs_handle_use(h, &w->job);
    return fs_job_start(h->conn, &w->job, c, e);
}

/* -- fs/close -- */

enum rpc_outcome fs_handles_close_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e) {
    const struct fs_params *p = params;
    struct fs_conn *f = fs_conn_get(c, e);
    if (f == NULL || handles_check_id(p->handle_id, e) < 0)
        return RPC_ERROR;
    struct fs_handle *h = fs_handle_find(f, p->handle_id);
    return h != NULL ? fs_handle_close(h, c, result, e) : rpc_done_text(result, "{}");
}
