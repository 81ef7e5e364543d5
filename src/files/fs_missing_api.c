/* fs/watchMissing and fs/missingChanged. */
#include "base/log.h"
#include "base/uri.h"
#include "fs/fs_missing.h"
#include "fs/fs_site.h"
#include "files/fs_job.h"
#include "files/fs_params.h"
#include "files/fs_watch_api.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define MISSING_READ 4096 /* bytes of events read at a time */
#define MISSING_READS 16  /* at most, in one turn of the loop */

/* A watch, and the job that sets it up. */
struct missing_watch {
    struct pool_job job;
    struct list node; /* in conn->missing_all */
    struct files_host *host;
    struct fs_watch_conn *conn; /* NULL: gone */
    struct rpc_call *call;      /* deferred while it is set up; NULL: nobody waits */
    bool running;               /* the job is with the pool */
    uint64_t id;
    struct fs_missing m;
    int r; /* of the job */
    struct loop_io io, mounts;
};

static void missing_free(struct missing_watch *w) {
    loop_io_del(w->host->loop, &w->io);
    loop_io_del(w->host->loop, &w->mounts);
    list_remove(&w->node);
    if (w->m.fd >= 0 && w->conn != NULL && w->conn->missing_fd < 0) {
        fs_missing_stop(&w->m);
        w->conn->missing_fd = steal_fd(&w->m.fd);
    } else if (w->m.fd >= 0) {
        files_host_close(w->host, steal_fd(&w->m.fd));
    }
    fs_missing_fini(&w->m);
    free(w);
}

/* Ends the watch. While it is being set up, its job will free it. */
static void missing_end(struct missing_watch *w) {
    if (w->conn != NULL && w->conn->missing == w)
        w->conn->missing = NULL;
    if (!w->running)
        missing_free(w);
}

void fs_missing_api_conn_fini(struct fs_watch_conn *c) {
    list_for_each(n, &c->missing_all) {
        struct missing_watch *w = list_entry(n, struct missing_watch, node);
        list_remove(n);
        w->conn = NULL;
        if (w->running && pool_cancel(w->host->pool, &w->job))
            w->running = false;
        missing_end(w);
    }
    if (c->missing_fd >= 0)
        files_host_close(c->host, steal_fd(&c->missing_fd));
}

/* -- events -- */

static void missing_fire(struct missing_watch *w) {
    char text[96];
    int n =
        snprintf(text, sizeof text,
                 "{\"method\":\"fs/missingChanged\",\"params\":{\"watchId\":%" PRIu64 "}}", w->id);
    conn_send(w->conn->peer->conn, (struct str){text, (size_t)n});
    missing_end(w);
}

static void missing_on_events(struct loop_io *io, uint32_t events) {
    (void)events;
    struct missing_watch *w = container_of(io, struct missing_watch, io);
    char buf[MISSING_READ];
    for (int i = 0; i < MISSING_READS; i++) {
        ssize_t n = read(io->fd, buf, sizeof buf);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || fs_missing_fires(&w->m, buf, (size_t)n)) {
            missing_fire(w);
            return;
        }
    }
}

static void missing_on_mounts(struct loop_io *io, uint32_t events) {
    (void)events;
    missing_fire(container_of(io, struct missing_watch, mounts));
}

/* -- setting up -- */

static void missing_work(struct pool_job *j) {
    struct missing_watch *w = container_of(j, struct missing_watch, job);
    if (fs_site_enter_all(j, (const char *const *)w->m.path, w->m.count, true))
        w->r = fs_missing_open(&w->m);
}

/* Events follow the answer, because a later turn of the loop reads them. */
static bool missing_begin(struct missing_watch *w) {
    if (w->conn == NULL || w->conn->missing != w || w->r < 0)
        return false;
    w->io = (struct loop_io){.fd = w->m.fd, .fn = missing_on_events};
    w->mounts = (struct loop_io){.fd = w->m.mounts, .fn = missing_on_mounts};
    w->r = loop_io_add(w->host->loop, &w->io, EPOLLIN);
    if (w->r == 0)
        w->r = loop_io_add(w->host->loop, &w->mounts, EPOLLPRI);
    return w->r == 0;
}

static void missing_done(struct pool_job *j) {
    struct missing_watch *w = container_of(j, struct missing_watch, job);
    struct rpc_call *call = steal_ptr(&w->call);
    w->running = false;
    if (j->refused)
        w->r = -EAGAIN;
    bool watching = missing_begin(w);
    if (w->r < 0)
        log_debug("fs/watchMissing is not possible: %s", err_os_text(-w->r));
    if (!watching)
        missing_end(w);
    if (call == NULL)
        return;
    rpc_done_text(rpc_result_begin(call),
                  watching ? "{\"watching\":true}" : "{\"watching\":false}");
    rpc_result_send(call);
}

static void missing_cancelled(struct rpc_call *c) {
    struct missing_watch *w = c->user;
    w->call = NULL;
    rpc_forget(c);
}

/* -- fs/watchMissing -- */

struct missing_params {
    uint64_t id;
    const struct json_node *missing;
    const struct json_node *present; /* NULL: none */
    bool foreign;                    /* one path cannot exist on this host */
};

static int missing_check_uri(const struct json_node *v, bool *foreign, struct err *e) {
    if (v->type != JSON_STRING)
        return jsondec_type_error(v, "a string", e);
    return fs_params_check_path(json_str(v), foreign, e);
}

static int missing_check_uris(const struct json_node *v, bool *foreign, struct err *e) {
    if (v->type != JSON_ARRAY)
        return jsondec_type_error(v, "a sequence", e);
    json_for_each(it, v) {
        int r = missing_check_uri(it, foreign, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int missing_check_list(const struct json_node *v, struct err *e) {
    bool foreign;
    return missing_check_uris(v, &foreign, e);
}

static int missing_check_present(const struct json_node *v, struct err *e) {
    bool foreign;
    return missing_check_uri(v, &foreign, e);
}

static const struct jsondec_field missing_fields[] = {
    PARAM(missing_params, id, "watchId", JSONDEC_U64),
    PARAM_CHECKED(missing_params, missing, "missing", JSONDEC_NODE, missing_check_list),
    PARAM_OPT_CHECKED(missing_params, present, "present", JSONDEC_NODE, JSONDEC_NULLABLE,
                      missing_check_present),
};
static const struct jsondec_struct missing_struct =
    PARAM_STRUCT("FsWatchMissingParams", missing_fields);

int fs_missing_api_decode(const struct json_node *params, void *out, struct err *e) {
    struct missing_params *p = out;
    *p = (struct missing_params){0};
    int r = jsondec(&missing_struct, params, p, e);
    if (r < 0)
        return r;
    r = missing_check_uris(p->missing, &p->foreign, e);
    if (r == 0 && p->present != NULL)
        r = missing_check_uri(p->present, &p->foreign, e);
    if (r == 0)
        return sandbox_members_check(params, &missing_struct, NULL, e);
    jsondec_report_first(&missing_struct, params, e);
    return r;
}

static int missing_put_path(struct fs_missing *m, const struct json_node *v, struct err *e) {
    int r = uri_to_path(json_str(v), &m->path[m->count], e);
    m->count += r == 0;
    return r;
}

static int missing_put_paths(struct fs_missing *m, const struct missing_params *p, struct err *e) {
    json_for_each(v, p->missing) {
        int r = missing_put_path(m, v, e);
        if (r < 0)
            return r;
    }
    m->present = p->present != NULL;
    return m->present ? missing_put_path(m, p->present, e) : 0;
}

static enum rpc_outcome missing_start(struct fs_watch_conn *conn, struct rpc_call *c,
                                      const struct missing_params *p, struct err *e) {
    struct missing_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return fs_job_no_memory(e);
    w->host = conn->host;
    w->id = p->id;
    w->m = FS_MISSING_INIT;
    list_init(&w->node);
    if (missing_put_paths(&w->m, p, e) < 0 || (w->call = rpc_defer(c, e)) == NULL) {
        missing_free(w);
        return RPC_ERROR;
    }
    w->call->user = w;
    w->call->cancelled = missing_cancelled;
    w->conn = conn;
    w->m.fd = steal_fd(&conn->missing_fd);
    conn->missing = w;
    list_append(&conn->missing_all, &w->node);
    w->job.work = missing_work;
    w->job.done = missing_done;
    w->running = true;
    pool_submit(w->host->pool, &w->job);
    return RPC_LATER;
}

enum rpc_outcome fs_missing_api_run(struct rpc_call *c, void *params, struct buf *result,
                                    struct err *e) {
    const struct missing_params *p = params;
    struct fs_conn *f = fs_conn_get(c, e);
    if (f == NULL)
        return RPC_ERROR;
    struct fs_watch_conn *conn = &f->watch;
    if (p->id <= conn->missing_id)
        return rpc_done_text(result, "{\"watching\":false}");
    conn->missing_id = p->id;
    if (conn->missing != NULL)
        missing_end(conn->missing);
    if (p->foreign || p->missing->count == 0 || p->missing->count > FS_MISSING_PATHS_MAX)
        return rpc_done_text(result, "{\"watching\":false}");
    return missing_start(conn, c, p, e);
}
