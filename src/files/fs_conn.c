#include "files/fs_conn.h"

#include "fs/fs_site.h"
#include "files/file_events.h"
#include "process/session.h"

#include <errno.h>
#include <sys/stat.h>

struct fs_conn *fs_conn_get(struct rpc_call *c, struct err *e) {
    struct session *s = c->peer->user;
    if (s->files != NULL)
        return s->files;
    struct fs_conn *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    f->host = s->host->files;
    list_init(&f->jobs);
    list_init(&f->waiting);
    list_init(&f->handles);
    fs_watch_api_init(&f->watch, c->peer);
    s->files = f;
    return f;
}

/* -- closing descriptors -- */

struct fs_closer {
    struct pool_job job;
    struct pool *pool;
    int fd;
};

static void fs_closer_work(struct pool_job *p) {
    struct fs_closer *c = container_of(p, struct fs_closer, job);
    if (fs_site_enter_fd(p, c->fd))
        close(c->fd);
}

static void fs_closer_done(struct pool_job *p) {
    struct fs_closer *c = container_of(p, struct fs_closer, job);
    if (p->refused)
        pool_submit(c->pool, p); /* its file system hangs: it may come back */
    else
        free(c);
}

void fs_conn_close_later(struct files_host *host, int fd) {
    struct fs_closer *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->pool = host->pool;
    c->job.work = fs_closer_work;
    c->job.done = fs_closer_done;
    pool_submit(host->pool, &c->job);
}

bool fs_conn_closes_fast(const struct fs_file *f) {
    struct stat st;
    return f->quick && fstat(f->fd, &st) == 0 && st.st_nlink > 0;
}

/* -- jobs -- */

static void fs_handle_unuse(struct fs_handle *h);

/*
 * Tells of a change that was made, or tried. What was never begun has changed nothing, nor has a
 * call that was to be made again (r > 0).
 */
static void fs_job_report(struct fs_job *j) {
    if (j->report != NULL && (j->ran || j->job.refused) && j->r <= 0) {
        if (j->r < 0 && j->err.code == 0)
            fs_fail(&j->err, -j->r);
        file_events_tell(j->report, j->r < 0 ? &j->err : NULL);
    }
    file_events_free(j->report);
}

void fs_job_free(struct fs_job *j) {
    struct fs_handle *held = j->held;
    fs_job_report(j);
    err_fini(&j->err);
    j->release(j);
    if (held != NULL)
        fs_handle_unuse(held);
}

/* Begins what waits, as far as it may. */
static void fs_conn_pump(struct fs_conn *f) {
    size_t most = MAX(f->host->lanes, (size_t)FS_JOBS_MIN);
    for (struct list *n; f->running < most && (n = list_first(&f->waiting)) != NULL;) {
        struct fs_job *j = list_entry(n, struct fs_job, node);
        list_remove(&j->node);
        list_append(&f->jobs, &j->node);
        j->state = FS_JOB_RUNNING;
        f->running++;
        pool_submit(f->host->pool, &j->job);
    }
}

bool fs_target_enter(struct pool_job *j, const struct fs_target *t) {
    if (t->site != 0)
        return fs_site_enter_known(j, t->site);
    return fs_site_enter_all(j, t->path, ARRAY_LEN(t->path), !t->nofollow);
}

static void fs_job_work(struct pool_job *p) {
    struct fs_job *j = container_of(p, struct fs_job, job);
    bool stop = atomic_load(&j->stop);
    j->ran |= !stop;
    if (stop)
        j->r = -ECANCELED;
    else if (fs_target_enter(p, &j->target))
        j->r = j->work(j);
}

static void fs_job_finish(struct fs_job *j) {
    if (j->call == NULL)
        return;
    if (j->r >= 0) {
        j->finish(j);
        return;
    }
    if (j->err.code == 0)
        fs_fail(&j->err, -j->r);
    if (j->call->peer->stream == j->call)
        rpc_stream_fail(steal_ptr(&j->call), j->cut, &j->err);
    else
        rpc_fail(steal_ptr(&j->call), &j->err);
}

static void fs_job_done(struct pool_job *p) {
    struct fs_job *j = container_of(p, struct fs_job, job);
    struct fs_conn *f = j->conn;
    if (p->refused && j->call != NULL && j->call->peer->stream == j->call) {
        pool_submit(j->host->pool, p); /* an answer that has begun can wait */
        return;
    }
    if (p->refused)
        j->r = -EAGAIN;
    if (f != NULL) {
        list_remove(&j->node);
        f->running--;
    }
    j->state = FS_JOB_PAUSED;
    j->pause = false;
    fs_job_finish(j);
    if (!j->pause)
        fs_job_free(j);
    if (f != NULL)
        fs_conn_pump(f);
}

static void fs_job_cancelled(struct rpc_call *c) {
    struct fs_job *j = c->user;
    j->call = NULL;
    atomic_store(&j->stop, true);
    rpc_forget(c);
    if (j->state == FS_JOB_PAUSED)
        fs_job_free(j);
}

void fs_job_queue(struct fs_job *j) {
    j->pause = true;
    j->state = FS_JOB_WAITING;
    list_append(&j->conn->waiting, &j->node);
    fs_conn_pump(j->conn);
}

int fs_job_keep(struct fs_conn *f, struct fs_job *j, struct rpc_call *c, struct err *e) {
    j->host = f->host;
    j->conn = f;
    j->state = FS_JOB_PAUSED;
    j->job.work = fs_job_work;
    j->job.done = fs_job_done;
    j->call = rpc_defer(c, e);
    if (j->call == NULL) {
        fs_job_free(j);
        return -ENOMEM;
    }
    j->call->user = j;
    j->call->cancelled = fs_job_cancelled;
    rpc_charge(j->call, j->bytes);
    return 0;
}

enum rpc_outcome fs_job_start(struct fs_conn *f, struct fs_job *j, struct rpc_call *c,
                              struct err *e) {
    if (fs_job_keep(f, j, c, e) < 0)
        return RPC_ERROR;
    fs_job_queue(j);
    return RPC_LATER;
}

/* -- handles -- */

struct fs_handle *fs_handle_find(const struct fs_conn *f, struct str id) {
    list_for_each(n, &f->handles) {
        struct fs_handle *h = list_entry(n, struct fs_handle, node);
        if (str_eq(id, (struct str){h->id, h->id_len}))
            return h;
    }
    return NULL;
}

struct fs_handle *fs_handle_new(struct fs_conn *f, struct str id, struct err *e) {
    struct fs_handle *h = calloc(1, sizeof *h);
    if (h == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    h->conn = f;
    h->file = FS_FILE_NONE;
    h->id_len = id.n;
    if (id.n > 0)
        memcpy(h->id, id.p, id.n);
    list_append(&f->handles, &h->node);
    f->handle_count++;
    return h;
}

/* Closes the call of the client that waits for it. */
struct fs_close_job {
    struct fs_job job;
    struct fs_handle *handle; /* whose turn to be closed has not come */
    int fd;
};

static int fs_close_work(struct fs_job *j) {
    struct fs_close_job *c = container_of(j, struct fs_close_job, job);
    close(steal_fd(&c->fd));
    return 0;
}

static void fs_close_finish(struct fs_job *j) {
    struct rpc_call *call = steal_ptr(&j->call);
    rpc_done_text(rpc_result_begin(call), "{}");
    rpc_result_send(call);
}

static void fs_close_release(struct fs_job *j) {
    struct fs_close_job *c = container_of(j, struct fs_close_job, job);
    if (c->handle != NULL)
        c->handle->closing = NULL;
    if (c->fd >= 0) /* the call was cancelled or no thread was free */
        fs_conn_close_later(j->host, c->fd);
    free(c);
}

/* Nothing uses a handle that is out of the table: lets its file go. */
static void fs_handle_end(struct fs_handle *h) {
    struct fs_close_job *c = (struct fs_close_job *)h->closing;
    if (c != NULL) {
        c->handle = NULL;
        c->fd = h->file.fd;
        c->job.target.site = h->file.site;
        if (c->fd >= 0) {
            fs_job_queue(&c->job);
        } else { /* it could not be opened */
            fs_close_finish(&c->job);
            fs_job_free(&c->job);
        }
    } else if (h->file.fd >= 0) {
        fs_conn_close_later(h->host, h->file.fd);
    }
    file_events_tell(h->report, NULL);
    file_events_free(h->report);
    free(h);
}

static void fs_handle_unuse(struct fs_handle *h) {
    h->busy--;
    if (h->busy == 0 && h->conn == NULL)
        fs_handle_end(h);
}

void fs_handle_drop(struct fs_handle *h) {
    list_remove(&h->node);
    h->conn->handle_count--;
    h->host = h->conn->host;
    h->conn = NULL;
    if (h->busy == 0)
        fs_handle_end(h);
}

enum rpc_outcome fs_handle_close(struct fs_handle *h, struct rpc_call *c, struct buf *result,
                                 struct err *e) {
    if (h->busy == 0 && fs_conn_closes_fast(&h->file)) {
        close(steal_fd(&h->file.fd));
        fs_handle_drop(h);
        return rpc_done_text(result, "{}");
    }
    struct fs_close_job *j = calloc(1, sizeof *j);
    if (j == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    j->fd = -1;
    j->job.work = fs_close_work;
    j->job.finish = fs_close_finish;
    j->job.release = fs_close_release;
    if (fs_job_keep(h->conn, &j->job, c, e) < 0)
        return RPC_ERROR;
    j->handle = h;
    h->closing = &j->job;
    fs_handle_drop(h);
    return RPC_LATER;
}

/* -- the end -- */

void fs_conn_free(struct fs_conn *f) {
    if (f == NULL)
        return;
    fs_watch_api_fini(&f->watch);
    list_for_each(n, &f->jobs) {
        struct fs_job *j = list_entry(n, struct fs_job, node);
        j->conn = NULL;
    }
    list_for_each(n, &f->waiting) {
        fs_job_free(list_entry(n, struct fs_job, node));
    }
    for (struct list *n; (n = list_first(&f->handles)) != NULL;)
        fs_handle_drop(list_entry(n, struct fs_handle, node));
    free(f);
}
