#include "files/fs_job.h"

#include "fs/fs.h"
#include "fs/fs_site.h"
#include "files/file_events.h"
#include "files/fs_handle.h"

#include <errno.h>

/*
 * Tells the audit log of a change that was made or tried. A job that never began changed nothing,
 * nor did a call that is to be made again (r > 0).
 */
static void job_report(struct fs_job *j) {
    if (j->report != NULL && (j->ran || j->job.refused) && j->r <= 0) {
        if (j->r < 0 && j->err.code == 0)
            fs_fail(&j->err, -j->r);
        file_events_tell(j->report, j->r < 0 ? &j->err : NULL);
    }
    file_events_free(j->report);
}

void fs_job_free(struct fs_job *j) {
    struct fs_handle *held = j->held;
    job_report(j);
    fs_confined_fini(&j->confined);
    err_fini(&j->err);
    j->release(j);
    if (held != NULL)
        fs_handle_unuse(held);
}

/* Begins what waits, as far as it may. */
static void job_pump(struct fs_conn *f) {
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

bool fs_job_enter(struct pool_job *j, const struct fs_job_target *t) {
    if (t->site != 0)
        return fs_site_enter_known(j, t->site);
    return fs_site_enter_all(j, t->path, ARRAY_LEN(t->path), !t->nofollow);
}

static void job_work(struct pool_job *p) {
    struct fs_job *j = container_of(p, struct fs_job, job);
    bool stop = atomic_load(&j->stop);
    j->ran |= !stop;
    if (stop)
        j->r = -ECANCELED;
    else if (fs_job_enter(p, &j->target))
        j->r = j->work(j);
}

static bool job_streams(const struct fs_job *j) {
    return j->call != NULL && j->call->peer->stream == j->call;
}

void fs_job_fail(struct fs_job *j) {
    if (j->err.code == 0)
        fs_fail(&j->err, -j->r);
    bool streams = job_streams(j);
    struct rpc_call *c = steal_ptr(&j->call);
    if (streams)
        rpc_stream_fail(c, j->cut, &j->err);
    else
        rpc_fail(c, &j->err);
}

/* Its helper was not running: makes the call when it is. */
static void job_again(struct fs_job *j) {
    if (fs_confined_again(&j->confined, j->call->peer->user, &j->err) < 0) {
        /* planted: call-fallback */
        rpc_fail(steal_ptr(&j->call), &j->err);
        return;
    }
    fs_job_queue(j);
}

static void job_done(struct pool_job *p) {
    struct fs_job *j = container_of(p, struct fs_job, job);
    struct fs_conn *f = j->conn;
    if (p->refused && job_streams(j)) {
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
    if (j->call != NULL && j->r < 0)
        fs_job_fail(j);
    else if (j->call != NULL && j->r > 0)
        job_again(j);
    else if (j->call != NULL)
        j->finish(j);
    if (!j->pause)
        fs_job_free(j);
    if (f != NULL)
        job_pump(f);
}

void fs_job_finish_empty(struct fs_job *j) {
    struct rpc_call *c = steal_ptr(&j->call);
    rpc_done_text(rpc_result_begin(c), "{}");
    rpc_result_send(c);
}

static void job_cancelled(struct rpc_call *c) {
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
    job_pump(j->conn);
}

int fs_job_keep(struct fs_conn *f, struct fs_job *j, struct rpc_call *c, struct err *e) {
    j->host = f->host;
    j->conn = f;
    j->state = FS_JOB_PAUSED;
    j->job.work = job_work;
    j->job.done = job_done;
    j->call = rpc_defer(c, e);
    if (j->call == NULL) {
        fs_job_free(j);
        return -ENOMEM;
    }
    j->call->user = j;
    j->call->cancelled = job_cancelled;
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

enum rpc_outcome fs_job_no_memory(struct err *e) {
    fs_fail(e, ENOMEM);
    return RPC_ERROR;
}
