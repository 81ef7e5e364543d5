#include "files/fs_watch_api.h"

#include "base/uri.h"
#include "fs/fs.h"
#include "fs/fs_site.h"
#include "sandbox/policy/profile.h"
#include "files/fs_conn.h"
#include "files/fs_json.h"
#include "files/fs_params.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>

#define WATCH_READ 16384 /* bytes of events read at a time */
#define WATCH_READS 4    /* at most, in one turn of the loop */

/* Bytes of one fs/changed: all bytes of the paths may be escaped. */
#define WATCH_TEXT_MAX (4 * (size_t)FS_WATCH_BYTES_MAX + 64 * FS_WATCH_PATHS_MAX)

/* A watch of a client. */
struct watch {
    struct fs_watch w; /* w.set is NULL until it is set up */
    struct fs_watch_conn *conn;
    struct loop_timer timer; /* running: changes are being collected */
    bool recursive;
    bool held; /* the client is slow: fs_watch_api_resume() tells it */
    bool dead; /* unwatched while a job ran: freed after that */
    size_t id_len;
    char id[FS_WATCH_ID_MAX];
};

/* Sets up a watch; or, without `setup`, brings the set up to date. */
struct watch_job {
    struct pool_job job;
    struct list node; /* in conn->setups */
    struct files_host *host;
    struct fs_watch_conn *conn; /* NULL: gone */
    int fd;                     /* inotify; -1 unless conn has left it to the job */
    struct fs_watch_scan scan;
    struct watch *of; /* whose tree it is; NULL: none. Owned if it is being set up */
    bool setup;
    char *path;            /* to be watched; owned */
    struct rpc_call *call; /* deferred; NULL: nobody waits for an answer */
    int r;                 /* with err */
    struct err err;
};

static void watch_pump(struct fs_watch_conn *c);

/* -- telling -- */

static void watch_arm(struct watch *w) {
    if (w->timer.pos == 0 && !w->held && !w->w.lost && fs_watch_pending(&w->w))
        (void)!loop_timer_set(w->conn->host->loop, &w->timer, FS_WATCH_DELAY_MS * LOOP_MS);
}

/* Tells the changes, unless the client is slow or the tree must be scanned anew first. */
static void watch_tell(struct watch *w) {
    struct conn *conn = w->conn->peer->conn;
    if (!fs_watch_pending(&w->w) || w->w.lost)
        return;
    w->held = conn_backlog(conn) >= CONN_OUT_HIGH;
    if (w->held)
        return;
    _cleanup_buf_ struct buf b = BUF_INIT(WATCH_TEXT_MAX);
    if (fs_json_changes(&b, (struct str){w->id, w->id_len}, &w->w) == 0) {
        conn_send(conn, buf_str(&b));
        fs_watch_told(&w->w);
    } else {
        watch_arm(w); /* no memory: later */
    }
}

static void watch_on_timer(struct loop_timer *t) {
    watch_tell(container_of(t, struct watch, timer));
}

void fs_watch_api_resume(struct fs_watch_conn *c) {
    list_for_each(n, &c->set.watches) {
        struct watch *w = list_entry(n, struct watch, w.node);
        if (w->held) {
            w->held = false;
            watch_tell(w);
        }
    }
}

/* -- watches -- */

static void watch_free(struct watch *w) {
    loop_timer_del(w->conn->host->loop, &w->timer);
    w->conn->watches--;
    if (w->w.set != NULL)
        fs_watch_fini(&w->w);
    free(w);
}

/* While no job runs: frees dead watches, and starts the timers of those with changes. */
static void watch_settle(struct fs_watch_conn *c) {
    list_for_each(n, &c->set.watches) {
        struct watch *w = list_entry(n, struct watch, w.node);
        if (w->dead)
            watch_free(w);
        else
            watch_arm(w);
    }
}

static void watch_on_events(struct loop_io *io, uint32_t events) {
    (void)events;
    struct fs_watch_conn *c = container_of(io, struct fs_watch_conn, inotify);
    char buf[WATCH_READ];
    for (int i = 0; i < WATCH_READS; i++) {
        ssize_t n = read(io->fd, buf, sizeof buf);
        if (n <= 0)
            break;
        fs_watch_feed(&c->set, buf, (size_t)n);
    }
    watch_settle(c);
    watch_pump(c);
}

static bool watch_is(const struct watch *w, struct str id) {
    return w != NULL && !w->dead && str_eq(id, (struct str){w->id, w->id_len});
}

/* Finds a watch by its id, also while it is being set up; or NULL. */
static struct watch *watch_find(const struct fs_watch_conn *c, struct str id) {
    list_for_each(n, &c->set.watches) {
        struct watch *w = list_entry(n, struct watch, w.node);
        if (watch_is(w, id))
            return w;
    }
    list_for_each(n, &c->setups) {
        struct watch *w = list_entry(n, struct watch_job, node)->of;
        if (watch_is(w, id))
            return w;
    }
    return c->job != NULL && c->job->setup && watch_is(c->job->of, id) ? c->job->of : NULL;
}

/* -- jobs -- */

static void watch_job_free(struct watch_job *j) {
    if (j->fd >= 0)
        files_host_close(j->host, j->fd);
    fs_watch_scan_fini(&j->scan);
    if (j->setup && j->of != NULL)
        watch_free(j->of);
    free(j->path);
    err_fini(&j->err);
    free(j);
}

/* A path that the job is going to touch, for its site: the first directory. NULL: none. */
static const char *watch_job_path(const struct watch_job *j) {
    if (j->setup)
        return j->path;
    return j->scan.dirs > 0 ? j->scan.names.p + j->scan.dir[0].name : NULL;
}

static void watch_work(struct pool_job *p) {
    struct watch_job *j = container_of(p, struct watch_job, job);
    const char *path = watch_job_path(j);
    if (path != NULL && !fs_site_enter(p, path, true))
        return;
    if (j->setup)
        j->r = fs_watch_scan_open_root(&j->scan, j->path, &j->err);
    else
        fs_watch_scan(&j->scan);
}

static void watch_answer(struct watch_job *j) {
    struct rpc_call *call = steal_ptr(&j->call);
    if (j->r < 0) {
        rpc_fail(call, &j->err);
        return;
    }
    struct buf *b = rpc_result_begin(call);
    rpc_done(b, fs_json_path(b, str_of(j->scan.root)));
    rpc_result_send(call);
}

/* Takes over what the job has found. */
static void watch_take(struct fs_watch_conn *c, struct watch_job *j) {
    struct watch *w = j->of;
    if (j->setup && j->r == 0 && !w->dead &&
        fs_watch_init(&w->w, &c->set, j->scan.root, j->scan.directory, w->recursive) < 0)
        j->r = fs_fail(&j->err, ENOMEM);
    bool kept = j->r == 0 && w != NULL && !w->dead;
    fs_watch_adopt(&c->set, kept ? &w->w : NULL, &j->scan);
    if (j->setup && kept)
        j->of = NULL; /* it is in the set now */
}

static void watch_done(struct pool_job *p) {
    struct watch_job *j = container_of(p, struct watch_job, job);
    struct fs_watch_conn *c = j->conn;
    if (c == NULL) {
        watch_job_free(j);
        return;
    }
    c->job = NULL;
    if (p->refused)
        j->r = fs_fail(&j->err, EAGAIN);
    watch_take(c, j);
    if (j->r < 0 && !j->setup && j->of != NULL)
        fs_watch_lose(&j->of->w);
    if (j->call != NULL)
        watch_answer(j);
    watch_job_free(j);
    watch_settle(c);
    watch_pump(c);
}

static void watch_cancelled(struct rpc_call *call) {
    struct watch_job *j = call->user;
    j->call = NULL;
    atomic_store(&j->scan.stop, true);
    rpc_forget(call);
}

static struct watch_job *watch_job_new(struct fs_watch_conn *c) {
    struct watch_job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    *j = (struct watch_job){.host = c->host, .conn = c, .fd = -1};
    list_init(&j->node);
    fs_watch_scan_init(&j->scan, c->inotify.fd);
    j->job.work = watch_work;
    j->job.done = watch_done;
    return j;
}

/* Takes the next set-up off the queue, ready to run; or NULL. */
static struct watch_job *watch_next_setup(struct fs_watch_conn *c) {
    struct list *n = list_first(&c->setups);
    if (n == NULL)
        return NULL;
    struct watch_job *j = list_entry(n, struct watch_job, node);
    size_t used = MIN(c->set.dirs + 1, (size_t)FS_WATCH_DIRS_MAX);
    j->scan.recursive = j->of->recursive;
    j->scan.room = FS_WATCH_DIRS_MAX - used;
    (void)!fs_watch_put_drops(&c->set, &j->scan); /* no memory: they wait */
    list_remove(n);
    return j;
}

/* Makes a job that brings the set up to date; NULL: none is needed. */
static struct watch_job *watch_next_update(struct fs_watch_conn *c) {
    struct watch_job *j = watch_job_new(c);
    struct fs_watch *of = NULL;
    if (j == NULL)
        return NULL;
    if (fs_watch_next(&c->set, &j->scan, &of) <= 0) {
        watch_job_free(j);
        return NULL;
    }
    j->of = of != NULL ? container_of(of, struct watch, w) : NULL;
    return j;
}

/* Begins the next job unless one runs. Reads events while none does. */
static void watch_pump(struct fs_watch_conn *c) {
    if (c->job != NULL)
        return;
    c->job = watch_next_setup(c);
    if (c->job == NULL)
        c->job = watch_next_update(c);
    loop_io_want(c->host->loop, &c->inotify, c->job == NULL ? EPOLLIN : 0);
    if (c->job != NULL)
        pool_submit(c->host->pool, &c->job->job);
}

/* -- life -- */

void fs_watch_api_init(struct fs_watch_conn *c, struct rpc_peer *peer) {
    *c = (struct fs_watch_conn){.host = ((struct session *)peer->user)->host->files, .peer = peer};
    c->inotify = (struct loop_io){.fd = -1, .fn = watch_on_events};
    list_init(&c->missing_all);
    c->missing_fd = -1;
    list_init(&c->setups);
    fs_watch_set_init(&c->set);
}

/* Leaves a running job to itself: it ends unheard. */
static void watch_orphan(struct fs_watch_conn *c, struct watch_job *j) {
    if (j->setup)
        watch_free(steal_ptr(&j->of));
    if (pool_cancel(c->host->pool, &j->job)) {
        j->of = NULL;
        watch_job_free(j);
        return;
    }
    j->conn = NULL;
    j->of = NULL;
    j->fd = steal_fd(&c->inotify.fd);
    atomic_store(&j->scan.stop, true);
}

void fs_watch_api_fini(struct fs_watch_conn *c) {
    fs_missing_api_conn_fini(c);
    loop_io_del(c->host->loop, &c->inotify); /* before a job may take the descriptor over */
    if (c->job != NULL)
        watch_orphan(c, c->job);
    for (struct list *n; (n = list_first(&c->setups)) != NULL;) {
        list_remove(n);
        watch_job_free(list_entry(n, struct watch_job, node));
    }
    for (struct list *n; (n = list_first(&c->set.watches)) != NULL;)
        watch_free(list_entry(n, struct watch, w.node));
    fs_watch_set_fini(&c->set);
    if (c->inotify.fd >= 0)
        files_host_close(c->host, steal_fd(&c->inotify.fd));
}

/* -- fs/watch -- */

struct watch_params {
    struct str id, path;
    bool recursive;
    const struct json_node *sandbox; /* NULL: none */
};

static const struct jsondec_field watch_fields[] = {
    PARAM(watch_params, id, "watchId", JSONDEC_STR),
    PARAM(watch_params, path, "path", JSONDEC_STR),
    PARAM_OPT(watch_params, recursive, "recursive", JSONDEC_BOOL, JSONDEC_NULLABLE),
    PARAM_OPT(watch_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE),
};
static const struct jsondec_struct watch_struct = PARAM_STRUCT("FsWatchParams", watch_fields);

int fs_watch_api_decode(const struct json_node *params, void *out, struct err *e) {
    struct watch_params *p = out;
    bool foreign; /* watch_setup_new() reports that */
    *p = (struct watch_params){0};
    int r = jsondec(&watch_struct, params, out, e);
    if (r == 0)
        r = sandbox_members_check(params, &watch_struct, &p->sandbox, e);
    return r < 0 ? r : fs_params_check_path(p->path, &foreign, e);
}

/* The server itself watches, so a policy that hides something has no watches. */
static int watch_check_sandbox(const struct json_node *sandbox, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile = NULL;
    int r = sandbox == NULL ? 0 : profile_decode(sandbox, PROFILE_FILES, &a, &profile, e);
    if (r < 0 || profile == NULL || profile_files_need(profile, false) != PROFILE_CONFINED)
        return r;
    return err_set(e, ERR_INVALID_REQUEST, "fs/watch is not available in a sandbox");
}

/* Checks a request before anything is made. 0 or -EINVAL with e set. */
static int watch_check(const struct fs_watch_conn *c, const struct watch_params *p, struct err *e) {
    int r = watch_check_sandbox(p->sandbox, e);
    if (r < 0)
        return r;
    if (p->id.n == 0 || p->id.n > FS_WATCH_ID_MAX)
        return err_set(e, ERR_INVALID_REQUEST, "watch ID must have 1 to %d bytes", FS_WATCH_ID_MAX);
    if (watch_find(c, p->id) != NULL)
        return err_about(e, ERR_INVALID_REQUEST, "watch `", p->id, "` already exists");
    if (c->watches >= FS_WATCHES_MAX)
        return err_set(e, ERR_INVALID_REQUEST, "at most %d watches may exist per connection",
                       FS_WATCHES_MAX);
    return 0;
}

/* Makes the inotify instance unless there is one. */
static int watch_need_inotify(struct fs_watch_conn *c, struct err *e) {
    if (c->inotify.fd >= 0)
        return 0;
    int fd = fs_watch_scan_instance();
    if (fd < 0)
        return fs_fail(e, -fd);
    c->inotify.fd = fd;
    int r = loop_io_add(c->host->loop, &c->inotify, 0);
    if (r == 0)
        return 0;
    util_close_fd(&c->inotify.fd); /* without watches this is quick */
    return fs_fail(e, -r);
}

/* Makes the job that sets a watch up. NULL with e set. */
static struct watch_job *watch_setup_new(struct fs_watch_conn *c, const struct watch_params *p,
                                         struct err *e) {
    struct watch_job *j = watch_job_new(c);
    struct watch *w = j != NULL ? calloc(1, sizeof *w) : NULL;
    if (w == NULL) {
        if (j != NULL)
            watch_job_free(j);
        fs_fail(e, ENOMEM);
        return NULL;
    }
    *w = (struct watch){.conn = c, .recursive = p->recursive, .id_len = p->id.n};
    memcpy(w->id, p->id.p, p->id.n);
    w->timer.fn = watch_on_timer;
    c->watches++;
    j->of = w;
    j->setup = true;
    if (uri_to_path(p->path, &j->path, e) == 0)
        return j;
    watch_job_free(j);
    return NULL;
}

enum rpc_outcome fs_watch_api_run(struct rpc_call *call, void *params, struct buf *result,
                                  struct err *e) {
    (void)result;
    const struct watch_params *p = params;
    struct fs_conn *f = fs_conn_get(call, e);
    if (f == NULL)
        return RPC_ERROR;
    struct fs_watch_conn *c = &f->watch;
    if (watch_check(c, p, e) < 0 || watch_need_inotify(c, e) < 0)
        return RPC_ERROR;
    struct watch_job *j = watch_setup_new(c, p, e);
    if (j == NULL)
        return RPC_ERROR;
    j->call = rpc_defer(call, e);
    if (j->call == NULL) {
        watch_job_free(j);
        return RPC_ERROR;
    }
    j->call->user = j;
    j->call->cancelled = watch_cancelled;
    list_append(&c->setups, &j->node);
    watch_pump(c);
    return RPC_LATER;
}

/* -- fs/unwatch -- */

static const struct jsondec_field unwatch_fields[] = {
    PARAM(watch_params, id, "watchId", JSONDEC_STR),
};
static const struct jsondec_struct unwatch_struct = PARAM_STRUCT("FsUnwatchParams", unwatch_fields);

int fs_watch_api_end_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct watch_params *)out = (struct watch_params){0};
    return jsondec(&unwatch_struct, params, out, e);
}

enum rpc_outcome fs_watch_api_end_run(struct rpc_call *call, void *params, struct buf *result,
                                      struct err *e) {
    const struct watch_params *p = params;
    struct fs_conn *f = fs_conn_get(call, e);
    if (f == NULL)
        return RPC_ERROR;
    struct fs_watch_conn *c = &f->watch;
    struct watch *w = watch_find(c, p->id);
    if (w != NULL) {
        w->dead = true;
        w->held = false;
        loop_timer_del(c->host->loop, &w->timer);
    }
    if (w != NULL && c->job == NULL) {
        watch_settle(c);
        watch_pump(c);
    }
    return rpc_done_text(result, "{}");
}
