#include "process/events.h"

#include "process/process_json.h"

#include <inttypes.h>
#include <stdio.h>

/* -- who -- */

struct ops_who events_who(const struct conn *c, const struct session *s) {
    return (struct ops_who){
        .peer = c != NULL ? c->peer : NULL,
        .session = s != NULL ? s->id : NULL,
        .client = s != NULL ? s->client : NULL,
        .subject = c != NULL   ? c->subject
                   : s != NULL ? s->subject
                               : NULL,
        .console = (c != NULL && c->host->pages) || (s != NULL && s->console),
    };
}

/* Begins a line about a process; `c` is the connection that asked, or NULL. */
static void events_begin(const struct process *p, const struct conn *c, const char *event) {
    struct ops *o = p->host->ops;
    struct ops_who who = events_who(c, p->session);
    who.session = p->session_name;
    audit_begin(&o->audit, event);
    ops_put_who(o, &who);
    audit_json(&o->audit, "processId", p->id_json);
}

static bool events_logged(const struct process *p) {
    return audit_enabled(&p->host->ops->audit);
}

/* -- connections -- */

static void events_connection(struct ops *o, const struct conn *c, const char *event) {
    const struct rpc_peer *p = c->user;
    struct ops_who who = events_who(c, p != NULL ? p->user : NULL);
    if (!audit_enabled(&o->audit))
        return;
    audit_begin(&o->audit, event);
    ops_put_who(o, &who);
    audit_end(&o->audit);
}

void events_connected(struct ops *o, const struct conn *c) {
    if (c->subject != NULL && c->host->auth->tokens != NULL) /* the set of names is ours */
        metrics_login(&o->metrics, c->subject);
    events_connection(o, c, "connect");
}

void events_disconnected(struct ops *o, const struct conn *c) {
    const struct rpc_peer *p = c->user;
    const struct session *s = p != NULL ? p->user : NULL;
    struct ops_who who = events_who(c, s);
    char running[32] = "", kept[32] = "";
    if (s != NULL) {
        bool ends = s->host->stopping || s->ttl_ms == 0;
        snprintf(running, sizeof running, "%zu", s->running);
        snprintf(kept, sizeof kept, "%" PRIu64, ends ? 0 : s->ttl_ms);
    }
    const struct log_field fields[] = {
        {"reason", str_of(c->why)}, {"running", str_of(running)}, {"keptMs", str_of(kept)}};
    ops_log(LOG_LEVEL_INFO, "client gone", fields, ARRAY_LEN(fields), &who);
    events_connection(o, c, "disconnect");
}

void events_session(const struct session *s, bool resumed) {
    struct ops *o = s->host->ops;
    struct ops_who who = events_who(s->peer->conn, s);
    ops_log(LOG_LEVEL_INFO, resumed ? "client returned" : "client connected", NULL, 0, &who);
    if (!audit_enabled(&o->audit))
        return;
    audit_begin(&o->audit, "session");
    ops_put_who(o, &who);
    audit_flag(&o->audit, "resumed", resumed);
    audit_end(&o->audit);
}

void events_login(const struct session *s, bool control) {
    struct ops *o = s->host->ops;
    struct ops_who who = events_who(s->peer->conn, s);
    ops_log(LOG_LEVEL_INFO, "somebody looks at the console", NULL, 0, &who);
    if (!audit_enabled(&o->audit))
        return;
    audit_begin(&o->audit, "login");
    ops_put_who(o, &who);
    audit_flag(&o->audit, "control", control);
    audit_end(&o->audit);
}

void events_link(const struct rpc_call *c) {
    const struct session *s = c->peer->user;
    struct ops *o = s->host->ops;
    struct ops_who who = events_who(c->peer->conn, s);
    if (!audit_enabled(&o->audit))
        return;
    audit_begin(&o->audit, "link");
    ops_put_who(o, &who);
    audit_end(&o->audit);
}

/* -- starts -- */

/* The log names the program and its directory; arguments may hold secrets. */
static void events_log_start(enum log_level level, const char *message, struct str program,
                             struct str cwd, struct str reason, const struct ops_who *who) {
    const struct log_field fields[] = {{"program", program}, {"cwd", cwd}, {"reason", reason}};
    ops_log(level, message, fields, ARRAY_LEN(fields), who);
}

void events_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e) {
    const struct session *s = c->peer->user;
    struct ops_who who = events_who(c->peer->conn, s);
    struct audit *a = &s->host->ops->audit;
    s->host->ops->metrics.starts_refused++;
    events_log_start(LOG_LEVEL_WARN, "start refused",
                     p->argv->count > 0 ? json_str(p->argv + 1) : STR_LIT("none"), p->cwd,
                     err_str(e), &who);
    if (!audit_enabled(a))
        return;
    struct audit_argv argv;
    audit_begin(a, "refused");
    ops_put_who(s->host->ops, &who);
    audit_text(a, "what", STR_LIT("process/start"), OPS_TEXT_MAX);
    audit_text(a, "processId", p->process_id, PROCESS_ID_MAX);
    audit_argv_begin(a, &argv);
    json_for_each(v, p->argv) {
        audit_argv_add(a, &argv, json_str(v));
    }
    audit_argv_end(a, &argv);
    audit_text(a, "reason", err_str(e), OPS_TEXT_MAX);
    audit_end(a);
}

/* The command line of the start that has just been decided. */
static void events_command(struct process *p) {
    struct audit *a = &p->host->ops->audit;
    const struct process_command *c = &p->command;
    struct audit_argv argv;
    if (c->argv == NULL || c->argv[0] == NULL)
        return;
    audit_argv_begin(a, &argv);
    for (char *const *arg = c->argv; *arg != NULL; arg++)
        audit_argv_add(a, &argv, str_of(*arg));
    audit_argv_end(a, &argv);
    if (strcmp(c->program, c->argv[0]) != 0) /* arg0 was given */
        audit_text(a, "program", str_of(c->program), OPS_TEXT_MAX);
    audit_text(a, "cwd", str_of(c->cwd), OPS_TEXT_MAX);
    audit_flag(a, "tty", p->proc.tty);
    if (p->confined)
        audit_flag(a, "sandboxed", true);
}

static const struct conn *events_owner(const struct process *p) {
    const struct rpc_call *start = p->start_call; /* it may be that of another session */
    const struct rpc_peer *peer = start != NULL        ? start->peer
                                  : p->session != NULL ? p->session->peer
                                                       : NULL;
    return peer != NULL ? peer->conn : NULL;
}

static void events_log_decided(const struct process *p, enum log_level level, const char *message,
                               const char *reason) {
    struct ops_who who = events_who(events_owner(p), p->session);
    who.session = p->session_name;
    events_log_start(level, message, str_of(p->command.program), str_of(p->command.cwd),
                     str_of(reason), &who);
}

void events_started(struct process *p) {
    p->host->ops->metrics.starts++;
    events_log_decided(p, LOG_LEVEL_INFO, "process started", NULL);
    if (!events_logged(p))
        return;
    events_begin(p, events_owner(p), "start");
    audit_number(&p->host->ops->audit, "pid", p->proc.pid);
    events_command(p);
    audit_end(&p->host->ops->audit);
}

void events_failed(struct process *p, const char *reason) {
    p->host->ops->metrics.starts_failed++;
    events_log_decided(p, LOG_LEVEL_WARN, "start failed", reason);
    if (!events_logged(p))
        return;
    events_begin(p, events_owner(p), "failed");
    events_command(p);
    audit_text(&p->host->ops->audit, "reason", str_of(reason), OPS_TEXT_MAX);
    audit_end(&p->host->ops->audit);
}

/* -- ends -- */

static void events_signal_name(struct audit *a, int signo) {
    char name[16];
    proc_signal_name(signo, name);
    audit_text(a, "signal", str_of(name), sizeof name);
}

void events_exited(struct process *p) {
    struct audit *a = &p->host->ops->audit;
    const struct proc *proc = &p->proc;
    if (p->exit_reported || !proc->reaped || proc->pid == 0)
        return;
    p->exit_reported = true;
    enum metrics_exit kind = proc->signal != 0      ? METRICS_SIGNAL
                             : proc->exit_code != 0 ? METRICS_FAILURE
                                                    : METRICS_SUCCESS;
    p->host->ops->metrics.exits[kind]++;
    p->host->ops->metrics.timeouts += proc->timed_out;
    if (!events_logged(p))
        return;
    _cleanup_buf_ struct buf resources = BUF_INIT(512);
    events_begin(p, NULL, "exit");
    audit_number(a, "pid", proc->pid);
    audit_number(a, "exitCode", proc->exit_code);
    if (proc->signal != 0)
        events_signal_name(a, proc->signal);
    if (proc->timed_out)
        audit_flag(a, "timedOut", true);
    if (p->sandbox_denied)
        audit_flag(a, "sandboxDenied", true);
    if (process_json_put_resources(proc, &resources) == 0)
        audit_json(a, "resources", buf_str(&resources));
    audit_end(a);
}

/* -- requests -- */

void events_signal(const struct rpc_call *c, const struct process *p, int signo) {
    if (!events_logged(p))
        return;
    events_begin(p, c->peer->conn, "signal");
    events_signal_name(&p->host->ops->audit, signo);
    audit_end(&p->host->ops->audit);
}

void events_terminate(const struct rpc_call *c, const struct process *p, uint64_t grace_ms) {
    struct audit *a = &p->host->ops->audit;
    if (!events_logged(p))
        return;
    events_begin(p, c->peer->conn, "terminate");
    audit_text(a, "mode", grace_ms > 0 ? STR_LIT("graceful") : STR_LIT("force"), OPS_TEXT_MAX);
    if (grace_ms > 0)
        audit_number(a, "timeoutMs", (int64_t)MIN(grace_ms, (uint64_t)INT64_MAX));
    audit_end(a);
}

void events_write(const struct rpc_call *c, const struct process *p, size_t n, bool closing,
                  const char *status) {
    struct audit *a = &p->host->ops->audit;
    if (!events_logged(p))
        return;
    events_begin(p, c->peer->conn, "write");
    audit_number(a, "bytes", (int64_t)n);
    if (closing)
        audit_flag(a, "closeStdin", true);
    audit_text(a, "status", str_of(status), OPS_TEXT_MAX);
    audit_end(a);
}

void events_resize(const struct rpc_call *c, const struct process *p, unsigned rows,
                   unsigned cols) {
    struct audit *a = &p->host->ops->audit;
    if (!events_logged(p) || !c->peer->conn->host->pages)
        return;
    events_begin(p, c->peer->conn, "resize");
    audit_number(a, "rows", rows);
    audit_number(a, "cols", cols);
    audit_end(a);
}

void events_network(const struct process *p, const struct proxy_decision *d) {
    struct audit *a = &p->host->ops->audit;
    p->host->ops->metrics.network[d->answer]++;
    if (!events_logged(p))
        return;
    events_begin(p, events_owner(p), "network");
    audit_text(a, "decision", str_of(proxy_judge_answer(d->answer)), OPS_TEXT_MAX);
    audit_text(a, "source", str_of(d->source), OPS_TEXT_MAX);
    audit_text(a, "reason", str_of(d->reason), OPS_TEXT_MAX);
    audit_text(a, "protocol", str_of(proxy_judge_protocol(d->protocol)), OPS_TEXT_MAX);
    audit_text(a, "host", str_of(d->host), OPS_TEXT_MAX);
    audit_number(a, "port", d->port);
    if (d->method.n > 0)
        audit_text(a, "method", d->method, OPS_TEXT_MAX);
    audit_end(a);
}

void events_attach(const struct rpc_call *c, const struct process *p) {
    if (!events_logged(p))
        return;
    const struct session *viewer = c->peer->user;
    events_begin(p, c->peer->conn, "attach");
    audit_text(&p->host->ops->audit, "viewer", str_of(viewer->id), OPS_SESSION_LOGGED);
    audit_end(&p->host->ops->audit);
}
