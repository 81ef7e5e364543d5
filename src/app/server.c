#include "app/server.h"

#include "base/log.h"
#include "process/attach.h"
#include "files/fs_conn.h"
#include "files/http_files.h"
#include "app/envinfo.h"
#include "process/process.h"
#include "app/listener.h"
#include "app/methods.h"
#include "process/events.h"
#include "loop/signals.h"
#include "process/session.h"
#include "web/web_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>

/* -- memory -- */

static void server_on_heap_timer(struct loop_timer *t) {
    (void)t;
    malloc_trim(0);
}

/*
 * A process or a session was freed. free() keeps pages that lie between others with the heap; a
 * timer returns them to the system later, all at once.
 */
static void server_on_freed(struct process_host *h) {
    struct server *s = container_of(h, struct server, processes);
    bool idle = h->sessions.count == h->detached_count;
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
    events_connected(&server_of(c)->ops, c);
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
        proc_flow_close(&s->flow);
    } else if (s != NULL) {
        proc_flow_open(&s->flow);
        attach_resume(s);
        if (s->files != NULL)
            fs_watch_api_resume(&s->files->watch);
        web_conn_resume(s->web);
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
    events_disconnected(&server_of(c)->ops, c);
    if (c->user != NULL)
        rpc_peer_free(steal_ptr(&c->user));
}

/* With stdio the server ends with its only connection, after sending everything. */
static void server_on_closed(struct conn *c) {
    struct server *s = server_of(c);
    if (c->stdio && !s->processes.stopping)
        server_stop(s);
}

static void server_on_turned_away(struct conn *c, int status, const char *why) {
    ops_turned_away(&server_of(c)->ops, METRICS_CAPACITY, c->peer, status, why);
}

static void server_on_refused(struct conn *c, int status, enum http_refusal why,
                              const char *reason) {
    enum metrics_refusal kind = why == HTTP_FROM_PAGE  ? METRICS_ORIGIN
                                : why == HTTP_BAD_HOST ? METRICS_HOST
                                                       : METRICS_AUTH;
    ops_turned_away(&server_of(c)->ops, kind, c->peer, status, reason);
}

static void server_on_files(struct conn *c, const struct http_request *r,
                            const struct http_answer *a) {
    http_files_request(&server_of(c)->files, c, r, a);
}

/* -- metrics -- */

static void server_count_conns(const struct server *s, struct metrics_now *now) {
    now->connections = s->conns.count + s->console.conns.count;
    list_for_each(n, &s->conns.conns) {
        const struct conn *c = list_entry(n, struct conn, node);
        const struct rpc_peer *p = c->user;
        now->output_queue += conn_backlog(c);
        if (p == NULL)
            continue;
        now->queued_requests += p->queued;
        now->request_queue += p->queued_bytes;
        now->yielded_calls += p->yielded;
        now->write_queue += p->yielded_bytes;
    }
}

static int server_put_metrics(void *owner, struct buf *b) {
    const struct server *s = owner;
    struct metrics_now now = {
        .uptime = (double)(s->loop.now - s->started) / (double)LOOP_SEC,
        .started = s->started_unix,
        .audit_dropped = audit_dropped(&s->ops.audit),
    };
    metrics_look(&now);
    server_count_conns(s, &now);
    process_host_count(&s->processes, &now);
    return metrics_format(&s->ops.metrics, &now, &s->rpc, b);
}

static const struct conn_ops server_conn_ops = {
    .open = server_on_open,
    .message = server_on_message,
    .pressure = server_on_pressure,
    .drained = server_on_drained,
    .input_end = server_on_input_end,
    .files = server_on_files,
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

/* Whether a client still misses the end of a process; the grace period bounds the wait. */
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

/* Helpers in sandboxes and HTTP programs do not count as commands: they end with the server. */
static bool server_runs_commands(const struct server *s) {
    return s->processes.procs.children.live > s->files.helpers_alive + s->web.alive;
}

/* A process died: checks whether the shutdown can go on. */
static void server_check_stopped(struct server *s) {
    if (s->processes.stopping ? s->processes.procs.children.live > 0 : server_runs_commands(s))
        return;
    if (s->processes.stopping)
        s->loop.stop = true;
    else if (s->processes.draining && server_has_news(s))
        (void)!loop_timer_set(&s->loop, &s->drain_timer, SERVER_DRAIN_MS * LOOP_MS);
    else if (s->processes.draining)
        server_stop_now(s);
}

static void server_on_died(struct process_host *h) {
    server_check_stopped(container_of(h, struct server, processes));
}

static void server_on_drain_timer(struct loop_timer *t) {
    server_check_stopped(container_of(t, struct server, drain_timer));
}

static void server_on_stop_timer(struct loop_timer *t) {
    struct server *s = container_of(t, struct server, stop_timer);
    if (!s->processes.stopping) { /* the grace period is over */
        server_stop_now(s);
        return;
    }
    /* Waits for processes that die or fork, not for those that hang in the kernel. On a busy
     * machine all of a few may sleep there for a moment. */
    bool moving = child_host_is_killing(&s->processes.procs.children);
    s->stuck_looks = moving ? 0 : s->stuck_looks + 1;
    if (s->stop_looks++ < SERVER_STOP_LOOKS && s->stuck_looks < SERVER_STOP_STUCK &&
        loop_timer_set(&s->loop, t, SERVER_STOP_AGAIN_MS * LOOP_MS) == 0)
        return;
    s->loop.stop = true;
    size_t left = s->processes.procs.children.live;
    if (left == 0)
        return; /* the last one ended in this round */
    log_error("%zu processes could not be ended in time", left);
    s->unfinished = true;
}

static void server_stop_now(struct server *s) {
    s->processes.stopping = true;
    listener_close(&s->listener);
    listener_close(&s->console_listener);
    list_for_each(n, &s->conns.conns) {
        conn_end(list_entry(n, struct conn, node), 1001, "the server is shutting down");
    }
    console_stop(&s->console, "the server is shutting down");
    process_host_end_detached(&s->processes);
    if (loop_timer_set(&s->loop, &s->stop_timer, SERVER_STOP_MS * LOOP_MS) < 0)
        s->loop.stop = true;
    loop_defer(&s->loop, &s->stop_task);
}

/* Sends SIGTERM to every process; serves clients meanwhile. */
static void server_drain(struct server *s) {
    s->processes.draining = true;
    listener_close(&s->listener);
    process_host_ask_to_end(&s->processes);
    if (loop_timer_set(&s->loop, &s->stop_timer, s->opt->shutdown_grace_ms * LOOP_MS) < 0)
        server_stop_now(s);
}

void server_stop(struct server *s) {
    if (s->processes.stopping)
        s->loop.stop = true; /* asked twice: at once */
    else if (s->processes.draining || s->opt->shutdown_grace_ms == 0 || !server_runs_commands(s))
        server_stop_now(s);
    else
        server_drain(s);
}

/* Runs after the connections have detached from their sessions. */
static void server_on_stop_task(struct loop_task *t) {
    struct server *s = container_of(t, struct server, stop_task);
    process_host_end_sessions(&s->processes);
    child_host_hunt(&s->processes.procs.children);
    server_check_stopped(s);
}

/* -- signals -- */

static void server_on_hangup(struct server *s) {
    _cleanup_err_ struct err e = ERR_INIT;
    audit_reopen(&s->ops.audit);
    if (s->opt->auth_file == NULL && !audit_has_file(&s->ops.audit))
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
            child_host_reap(&s->processes.procs.children);
        else if (info.ssi_signo == SIGHUP)
            server_on_hangup(s);
        else
            server_stop(s);
    }
}

static int server_watch_signals(struct server *s) {
    s->signals.fd = signals_open();
    return s->signals.fd < 0 ? s->signals.fd : loop_io_add(&s->loop, &s->signals, EPOLLIN);
}

/* -- life -- */

static void server_on_detached(struct session *s) {
    files_host_detached(s);
    web_conn_detached(s);
}

static const struct process_hooks server_process_hooks = {
    .detached = server_on_detached,
    .ended = files_host_ended,
    .freed = server_on_freed,
    .died = server_on_died,
};

static void server_note_start(struct server *s) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    s->started = s->loop.now;
    s->started_unix = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int server_init_processes(struct server *s, struct rlimit nofile) {
    const struct options *o = s->opt;
    bool stdio = o->listen == OPTIONS_LISTEN_STDIO;
    const struct process_settings settings = {
        /* With stdio no client can come back. */
        .session_ttl_ms = stdio ? 0 : o->session_ttl_ms,
        .session_ttl_max_ms = stdio ? 0 : o->session_ttl_max_ms,
        .keep_detached = o->keep_detached,
        .allow_attach = o->allow_attach,
        .max_processes = o->max_processes,
        .limits = o->command_limits,
        .limits_max = o->command_limits_max,
        .timeout_ms = o->command_timeout_ms,
        .timeout_max_ms = o->command_timeout_max_ms,
        .retained_output = o->retained_output,
        .closed_retention_ms = o->closed_retention_ms,
        .closed_retention_max_ms = o->closed_retention_max_ms,
        .closed_output_max = o->closed_output_max,
        .allow_direct_exec = o->allow_direct_exec,
        .allow_prepared_exec = o->allow_prepared_exec,
        .inherit_pids = o->inherit_pids,
        .one_at_a_time = o->concurrent_requests <= 1,
    };
    s->processes = (struct process_host){.loop = &s->loop,
                                         .conns = &s->conns,
                                         .ops = &s->ops,
                                         .files = &s->files,
                                         .web = &s->web,
                                         .hooks = &server_process_hooks};
    passwd_read("/etc/passwd", getuid(), &s->passwd);
    return process_host_init(&s->processes, &settings, nofile, s->passwd.home);
}

static int server_init_conns(struct server *s) {
    const struct options *o = s->opt;
    int r = conn_host_init(&s->conns, &s->loop, &server_conn_ops, &s->opt->auth, s);
    s->conns.metrics = o->metrics ? server_put_metrics : NULL;
    s->conns.max = o->max_connections;
    s->conns.files = o->http_files;
    s->conns.http_hosts = s->opt->http_hosts;
    s->conns.http_host_count = o->http_host_count;
    s->conns.trusted = &o->trusted;
    return r;
}

/* Chooses what the histograms of /metrics show. */
static void server_time_methods(struct rpc_host *h) {
    for (size_t i = 0; i < h->method_count; i++) {
        const char *name = h->methods[i].name;
        if (strcmp(name, "process/start") == 0)
            h->timing[i] = RPC_TIMED_START;
        else if (strncmp(name, "fs/", 3) == 0)
            h->timing[i] = RPC_TIMED_FILES;
    }
}

static void server_place_listeners(struct server *s) {
    const struct options *o = s->opt;
    const struct listener_place protocol = {.kind = o->listen,
                                            .addr = &o->addr,
                                            .addr_len = o->addr_len,
                                            .fd = o->listen_fd,
                                            .notify_socket = o->notify_socket,
                                            .announce = true};
    const struct listener_place console = {
        .kind = OPTIONS_LISTEN_WS, .addr = &o->console_addr, .addr_len = o->console_addr_len};
    listener_init(&s->listener, &s->loop, &protocol, &s->conns, &s->ops);
    listener_init(&s->console_listener, &s->loop, &console, &s->console.conns, &s->ops);
}

static int server_init_console(struct server *s, struct err *e) {
    const struct options *o = s->opt;
    const struct console_settings settings = {.on = o->console_addr_len > 0,
                                              .control = o->console_control,
                                              .page = o->console_page,
                                              .hosts = s->opt->console_hosts,
                                              .host_count = o->console_host_count,
                                              .retained_output = o->retained_output};
    return console_init(&s->console, &settings, &s->loop, &s->pool, &s->processes, &s->ops, e);
}

int server_init(struct server *s, struct options *opt, struct rlimit nofile, struct err *e) {
    *s = (struct server){.opt = opt,
                         .signals = {.fd = -1, .fn = server_on_signal},
                         .stop_timer.fn = server_on_stop_timer,
                         .stop_task.fn = server_on_stop_task,
                         .drain_timer.fn = server_on_drain_timer,
                         .heap_timer.fn = server_on_heap_timer};
    size_t lanes = (size_t)MIN(opt->concurrent_requests, (uint64_t)SERVER_LANES_MAX);
    server_place_listeners(s);
    int r = loop_init(&s->loop, NULL);
    server_note_start(s);
    if (r == 0)
        r = server_watch_signals(s);
    int processes = server_init_processes(s, nofile);
    r = r < 0 ? r : processes;
    if (r == 0)
        r = pool_init(&s->pool, &s->loop);
    s->files = (struct files_host){.loop = &s->loop,
                                   .pool = &s->pool,
                                   .conns = &s->conns,
                                   .processes = &s->processes,
                                   .ops = &s->ops,
                                   .lanes = lanes};
    files_host_init(&s->files);
    s->web = (struct web_host){.loop = &s->loop, .processes = &s->processes};
    int web = web_host_init(&s->web, opt->http_program, e);
    if (r == 0)
        r = server_init_conns(s);
    if (r == 0)
        r = envinfo_build(s);
    size_t missing = web_host_is_ready(&s->web) ? 0 : METHODS_WEB;
    rpc_host_init(&s->rpc, &s->pool, methods_table + missing, methods_count - missing, lanes,
                  server_on_peer_gone);
    server_time_methods(&s->rpc);
    if (r < 0 || web < 0)
        return r < 0 ? err_os(e, ERR_INTERNAL, -r) : web;
    r = process_host_check_limits(&s->processes, e);
    r = r < 0 ? r : ops_init(&s->ops, &s->loop, opt->audit_log, e);
    return r < 0 ? r : server_init_console(s, e);
}

/* The port, or 0 if it is none. */
static uint16_t server_port(const struct sock_addr *a) {
    return a->u.sa.sa_family == AF_INET    ? ntohs(a->u.in.sin_port)
           : a->u.sa.sa_family == AF_INET6 ? ntohs(a->u.in6.sin6_port)
                                           : 0;
}

/* Proxies of processes never lead to the server itself. */
static int server_listen_tcp(struct server *s, struct err *e) {
    struct sock_addr a;
    int r = listener_open(&s->listener, e);
    if (r == 0 && listener_address(&s->listener, &a) == 0)
        s->processes.proxies.own_ports[0] = server_port(&a);
    return r;
}

/* The host of a link; that of a listener for every address is this one. */
static void server_console_host(const struct sock_addr *a, char host[INET6_ADDRSTRLEN + 2]) {
    char ip[INET6_ADDRSTRLEN];
    if (a->u.sa.sa_family == AF_INET) {
        struct in_addr in = a->u.in.sin_addr;
        in.s_addr = in.s_addr == INADDR_ANY ? htonl(INADDR_LOOPBACK) : in.s_addr;
        inet_ntop(AF_INET, &in, host, INET6_ADDRSTRLEN);
        return;
    }
    struct in6_addr in6 = a->u.in6.sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&in6))
        in6 = in6addr_loopback;
    inet_ntop(AF_INET6, &in6, ip, sizeof ip);
    snprintf(host, INET6_ADDRSTRLEN + 2, "[%s]", ip);
}

/* Prints the link as a line on stderr. */
static int server_listen_console(struct server *s, struct err *e) {
    char host[INET6_ADDRSTRLEN + 2], link[CONSOLE_LINK_MAX];
    struct sock_addr a;
    int r = listener_open(&s->console_listener, e);
    if (r < 0)
        return r;
    r = listener_address(&s->console_listener, &a);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    s->processes.proxies.own_ports[1] = server_port(&a);
    server_console_host(&a, host);
    console_link(&s->console, host, server_port(&a), link);
    fprintf(stderr, "console: %s\n", link);
    return 0;
}

int server_listen(struct server *s, struct err *e) {
    int r = s->opt->console_addr_len > 0 ? server_listen_console(s, e) : 0;
    if (r < 0)
        return r;
    if (s->opt->listen != OPTIONS_LISTEN_STDIO)
        return server_listen_tcp(s, e);
    r = conn_stdio(&s->conns, STDIN_FILENO, STDOUT_FILENO);
    s->ops.metrics.connections++;
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
}

int server_run(struct server *s) {
    (void)sandbox_host_backend(&s->processes.sandbox); /* now, while no client waits */
    int r = loop_run(&s->loop);
    return r == 0 && s->unfinished ? -EBUSY : r;
}

/* Waits a while for file system calls to end. Whether all have. */
static bool server_end_pool(struct server *s) {
    uint64_t end = s->loop.now + SERVER_POOL_MS * LOOP_MS;
    while (pool_busy(&s->pool) && s->loop.now < end) {
        if (loop_once(&s->loop, LOOP_MS) < 0)
            break;
    }
    return pool_fini(&s->pool);
}

bool server_fini(struct server *s) {
    s->processes.stopping = true;
    conn_host_drop(&s->conns);
    console_drop(&s->console);
    process_host_end_sessions(&s->processes);
    if (!server_end_pool(s)) { /* a thread hangs: keep its memory, the process exits */
        log_warn("a call of the file system hangs: not waiting for it");
        ops_fini(&s->ops);
        return false;
    }
    process_host_fini(&s->processes);
    conn_host_fini(&s->conns);
    console_fini(&s->console);
    listener_close(&s->listener);
    listener_close(&s->console_listener);
    loop_io_del(&s->loop, &s->signals);
    util_close_fd(&s->signals.fd);
    rpc_host_fini(&s->rpc);
    files_host_fini(&s->files);
    web_host_fini(&s->web);
    passwd_fini(&s->passwd);
    buf_fini(&s->info);
    ops_fini(&s->ops);
    loop_fini(&s->loop);
    return true;
}
