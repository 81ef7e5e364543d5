#include "app/server.h"

#include "base/log.h"
#include "process/attach.h"
#include "files/fs_conn.h"
#include "files/http_files.h"
#include "app/info.h"
#include "process/job.h"
#include "app/listener.h"
#include "app/methods.h"
#include "ops/report.h"
#include "process/session.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sodium.h>
#include <sys/signalfd.h>
#include <time.h>

/* -- memory -- */

static void server_on_heap_timer(struct loop_timer *t) {
    (void)t;
    malloc_trim(0);
}

void server_freed(struct server *s) {
    bool idle = s->sessions.count == s->detached_count;
    uint64_t ms = idle ? SERVER_TRIM_MS : SERVER_TRIM_BUSY_MS;
    if (idle || s->heap_timer.pos == 0)
        (void)!loop_timer_set(&s->loop, &s->heap_timer, ms * LOOP_MS);
}

/* -- connections -- */

static struct server *server_of(struct conn *c) {
    return c->host->owner;
}

static void server_on_open(struct conn *c) {
    c->user = rpc_peer_new(&server_of(c)->rpc, c);
    report_connected(c);
    if (c->user == NULL)
        conn_end(c, 1011, "out of memory");
}

static void server_on_message(struct conn *c, const struct conn_message *m) {
    rpc_peer_message(c->user, m);
}

static void server_on_pressure(struct conn *c, bool high) {
    struct rpc_peer *p = c->user;
    if (p == NULL)
        return;
    struct session *s = p->user;
    if (s != NULL && high) {
        proc_gate_close(&s->gate);
    } else if (s != NULL) {
        proc_gate_open(&s->gate);
        attach_resume(s);
        if (s->files != NULL)
            fs_watch_conn_resume(&s->files->watch);
    }
    if (!high)
        rpc_peer_resume(p);
}

static void server_on_drained(struct conn *c) {
    if (c->user != NULL)
        rpc_peer_drained(c->user);
}

static void server_on_input_end(struct conn *c) {
    rpc_peer_input_end(c->user);
}

static void server_on_gone(struct conn *c) {
    report_disconnected(c);
    if (c->user != NULL)
        rpc_peer_free(steal_ptr(&c->user));
}

/* With stdio the server ends with its only connection, when all was sent. */
static void server_on_closed(struct conn *c) {
    struct server *s = server_of(c);
    if (c->stdio && !s->stopping)
        server_stop(s);
}

static void server_on_turned_away(struct conn *c, int status, const char *why) {
    report_turned_away(server_of(c), METRICS_CAPACITY, c->peer, status, why);
}

static void server_on_refused(struct conn *c, int status, enum http_refusal why,
                              const char *reason) {
    enum metrics_refusal kind = why == HTTP_FROM_PAGE  ? METRICS_ORIGIN
                                : why == HTTP_BAD_HOST ? METRICS_HOST
                                                       : METRICS_AUTH;
    report_turned_away(server_of(c), kind, c->peer, status, reason);
}

static int server_put_metrics(void *owner, struct buf *b) {
    return metrics_put(owner, b);
}

static const struct conn_ops server_conn_ops = {
    .open = server_on_open,
    .message = server_on_message,
    .pressure = server_on_pressure,
    .drained = server_on_drained,
    .input_end = server_on_input_end,
    .files = http_files_request,
    .body = http_files_body,
    .writable = http_files_writable,
    .cut = http_files_cut,
    .gone = server_on_gone,
    .turned_away = server_on_turned_away,
    .refused = server_on_refused,
    .closed = server_on_closed,
};

static void server_on_peer_gone(struct rpc_peer *p) {
    if (p->user != NULL)
        session_detach(p->user);
}

/* -- stopping -- */

static void server_stop_now(struct server *s);

/* Whether a client has yet to hear of an end; the grace period bounds the wait. */
static bool server_has_news(const struct server *s) {
    list_for_each(n, &s->conns.conns) {
        const struct conn *c = list_entry(n, struct conn, node);
        const struct rpc_peer *p = c->user;
        const struct session *session = p != NULL ? p->user : NULL;
        if (conn_is_open(c) && (conn_backlog(c) > 0 || (session != NULL && session->running > 0)))
            return true;
    }
    return false;
}

/* Helpers in sandboxes are nobody's command: they end when the server does. */
static bool server_runs_commands(const struct server *s) {
    return s->procs.spawner.live > s->helpers_alive;
}

void server_check_stopped(struct server *s) {
    if (s->stopping ? s->procs.spawner.live > 0 : server_runs_commands(s))
        return;
    if (s->stopping)
        s->loop.stop = true;
    else if (s->draining && server_has_news(s))
        (void)!loop_timer_set(&s->loop, &s->drain_timer, SERVER_DRAIN_MS * LOOP_MS);
    else if (s->draining)
        server_stop_now(s);
}

static void server_on_drain_timer(struct loop_timer *t) {
    server_check_stopped(container_of(t, struct server, drain_timer));
}

static void server_on_stop_timer(struct loop_timer *t) {
    struct server *s = container_of(t, struct server, stop_timer);
    if (!s->stopping) { /* the grace period is over */
        server_stop_now(s);
        return;
    }
    /* What still dies, or forks, is waited for; what hangs in the kernel is not. */
    if (s->stop_looks++ < SERVER_STOP_LOOKS && spawner_is_killing(&s->procs.spawner) &&
        loop_timer_set(&s->loop, t, SERVER_STOP_AGAIN_MS * LOOP_MS) == 0)
        return;
    log_error("%zu processes could not be ended in time", s->procs.spawner.live);
    s->unfinished = true;
    s->loop.stop = true;
}

static void server_end_sessions(struct server *s) {
    for (size_t i = 0; i < s->sessions.nbuckets; i++) {
        while (s->sessions.nbuckets > 0 && s->sessions.buckets[i] != NULL)
            session_end(container_of(s->sessions.buckets[i], struct session, node));
    }
}

static void server_stop_now(struct server *s) {
    s->stopping = true;
    listener_close(s);
    list_for_each(n, &s->conns.conns) {
        conn_end(list_entry(n, struct conn, node), 1001, "the server is shutting down");
    }
    list_for_each(n, &s->detached) {
        session_end(list_entry(n, struct session, detached_node));
    }
    if (loop_timer_set(&s->loop, &s->stop_timer, SERVER_STOP_MS * LOOP_MS) < 0)
        s->loop.stop = true;
    loop_defer(&s->loop, &s->stop_task);
}

/* SIGTERM to everything that runs; clients are served meanwhile. */
static void server_drain(struct server *s) {
    s->draining = true;
    listener_close(s);
    for (size_t i = 0; i < s->sessions.nbuckets; i++) {
        for (struct hash_node *n = s->sessions.buckets[i]; n != NULL; n = n->next) {
            struct session *session = container_of(n, struct session, node);
            list_for_each(it, &session->order) {
                proc_ask_to_end(&list_entry(it, struct job, order)->proc);
            }
            list_for_each(it, &session->leftovers) {
                proc_ask_to_end(&list_entry(it, struct job, link)->proc);
            }
        }
    }
    if (loop_timer_set(&s->loop, &s->stop_timer, s->opt->shutdown_grace_ms * LOOP_MS) < 0)
        server_stop_now(s);
}

void server_stop(struct server *s) {
    if (s->stopping)
        s->loop.stop = true; /* asked twice: at once */
    else if (s->draining || s->opt->shutdown_grace_ms == 0 || !server_runs_commands(s))
        server_stop_now(s);
    else
        server_drain(s);
}

/* Runs after the connections have let go of their sessions. */
static void server_on_stop_task(struct loop_task *t) {
    struct server *s = container_of(t, struct server, stop_task);
    server_end_sessions(s);
    spawner_hunt(&s->procs.spawner);
    server_check_stopped(s);
}

/* -- signals -- */

static void server_on_hangup(struct server *s) {
    _cleanup_err_ struct err e = ERR_INIT;
    audit_reopen(&s->audit);
    if (s->opt->auth_file == NULL && !audit_enabled(&s->audit))
        server_stop(s);
    else if (s->opt->auth_file == NULL)
        log_info("audit log opened again");
    else if (options_reload_auth(s->opt, &e) < 0)
        log_error("the token stays as it was: %s", err_msg(&e));
    else
        log_info("token read again");
}

static void server_on_signal(struct loop_io *io, uint32_t events) {
    (void)events;
    struct server *s = container_of(io, struct server, signals);
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            spawner_reap(&s->procs.spawner);
        else if (info.ssi_signo == SIGHUP)
            server_on_hangup(s);
        else
            server_stop(s);
    }
}

static int server_watch_signals(struct server *s) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* an inherited "ignore" would lose exit codes */
    s->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals.fd < 0 ? -errno : loop_io_add(&s->loop, &s->signals, EPOLLIN);
}

/* -- life -- */

int server_init(struct server *s, struct options *opt, struct rlimit nofile, struct err *e) {
    *s = (struct server){.opt = opt,
                         .listener = {.fd = -1},
                         .signals = {.fd = -1, .fn = server_on_signal},
                         .stop_timer.fn = server_on_stop_timer,
                         .stop_task.fn = server_on_stop_task,
                         .drain_timer.fn = server_on_drain_timer,
                         .heap_timer.fn = server_on_heap_timer};
    list_init(&s->detached);
    list_init(&s->helpers);
    retention_init(&s->outputs, opt->closed_output_max);
    retention_init(&s->entries, SERVER_ENTRIES_MAX);
    list_init(&s->dying);
    hash_init(&s->sessions);
    randombytes_buf(s->write_key, sizeof s->write_key);
    int r = loop_init(&s->loop, NULL);
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    s->started = s->loop.now;
    s->started_unix = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
    remains_init(&s->remains, &s->loop);
    if (r == 0)
        r = server_watch_signals(s);
    if (r == 0)
        r = proc_host_init(&s->procs, &s->loop, nofile);
    s->procs.spawner.spare_strays |= opt->keep_detached;
    if (r == 0)
        r = pool_init(&s->pool, &s->loop);
    fs_devices_init(&s->devices);
    fs_devices_hold_root(&s->devices);
    if (r == 0)
        r = conn_host_init(&s->conns, &s->loop, &server_conn_ops, &opt->auth, s);
    passwd_read("/etc/passwd", getuid(), &s->passwd);
    sandbox_host_init(&s->sandbox, opt->inherit_pids, s->passwd.home);
    if (r == 0)
        r = info_build(s);
    s->conns.metrics = opt->metrics ? server_put_metrics : NULL;
    s->conns.max = opt->max_connections;
    s->conns.files = opt->http_files;
    s->conns.http_hosts = opt->http_hosts;
    s->conns.http_host_count = opt->http_host_count;
    size_t lanes = (size_t)MIN(opt->concurrent_requests, (uint64_t)SERVER_LANES_MAX);
    rpc_host_init(&s->rpc, &s->pool, methods_table, methods_count, lanes, server_on_peer_gone);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    return opt->audit_log != NULL ? audit_open(&s->audit, opt->audit_log, e) : 0;
}

int server_listen(struct server *s, struct err *e) {
    if (s->opt->listen != OPTIONS_LISTEN_STDIO)
        return listener_open(s, e);
    int r = conn_stdio(&s->conns, STDIN_FILENO, STDOUT_FILENO);
    s->metrics.connections++;
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
}

int server_run(struct server *s) {
    (void)sandbox_backend(&s->sandbox); /* now, while nobody waits */
    int r = loop_run(&s->loop);
    return r == 0 && s->unfinished ? -EBUSY : r;
}

/* Lets calls of the file system end, as far as they do. Whether all have. */
static bool server_end_pool(struct server *s) {
    uint64_t end = s->loop.now + SERVER_POOL_MS * LOOP_MS;
    while (pool_busy(&s->pool) && s->loop.now < end) {
        if (loop_once(&s->loop, LOOP_MS) < 0)
            break;
    }
    loop_timer_del(&s->loop, &s->trim_timer);
    return pool_fini(&s->pool);
}

bool server_fini(struct server *s) {
    s->stopping = true;
    conn_host_drop(&s->conns);
    server_end_sessions(s);
    if (!server_end_pool(s)) { /* a thread hangs: what it uses must stay, and the process ends */
        log_warn("a call of the file system hangs: not waiting for it");
        report_refusals(s);
        audit_close(&s->audit);
        return false;
    }
    for (struct list *n; (n = list_first(&s->dying)) != NULL;)
        job_free(list_entry(n, struct job, link)); /* only what could not be ended in time */
    remains_fini(&s->remains);
    conn_host_fini(&s->conns);
    listener_close(s);
    loop_io_del(&s->loop, &s->signals);
    util_close_fd(&s->signals.fd);
    proc_host_fini(&s->procs);
    rpc_host_fini(&s->rpc);
    hash_fini(&s->sessions);
    retention_fini(&s->outputs);
    retention_fini(&s->entries);
    sandbox_host_fini(&s->sandbox);
    fs_devices_fini(&s->devices);
    passwd_fini(&s->passwd);
    buf_fini(&s->info);
    report_refusals(s);
    loop_timer_del(&s->loop, &s->refusals_timer);
    loop_fini(&s->loop);
    audit_close(&s->audit);
    return true;
}
