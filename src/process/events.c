#include "process/events.h"

#include "process/process_json.h"

/* -- who -- */

struct ops_who events_who(const struct conn *c, const struct session *s) {
    return (struct ops_who){
        .peer = c != NULL ? c->peer : NULL,
        .session = s != NULL ? s->id : NULL,
        .client = s != NULL ? s->client : NULL,
        .subject = c != NULL   ? c->subject
                   : s != NULL ? s->subject
                               : NULL,
    };
}

/* Begins a line about a process on behalf of a connection (NULL: nobody's). */
static void events_begin(const struct process *j, const struct conn *c, const char *event) {
    struct ops *o = j->host->ops;
    struct ops_who who = events_who(c, j->session);
    who.session = j->session_name;
    audit_begin(&o->audit, event);
    ops_put_who(o, &who);
    audit_json(&o->audit, "processId", j->id_json);
}

static bool events_logged(const struct process *j) {
    return audit_enabled(&j->host->ops->audit);
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
    events_connection(o, c, "connect");
}

void events_disconnected(struct ops *o, const struct conn *c) {
    events_connection(o, c, "disconnect");
}

void events_session(const struct session *s, bool resumed) {
    struct ops *o = s->host->ops;
    struct ops_who who = events_who(s->peer->conn, s);
    if (!audit_enabled(&o->audit))
        return;
    audit_begin(&o->audit, "session");
    ops_put_who(o, &who);
    audit_flag(&o->audit, "resumed", resumed);
    audit_end(&o->audit);
}

/* -- starts -- */

void events_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e) {
    const struct session *s = c->peer->user;
    struct ops_who who = events_who(c->peer->conn, s);
    struct audit *a = &s->host->ops->audit;
    s->host->ops->metrics.starts_refused++;
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

/* What was to be run, of the start that has just been decided. */
static void events_command(struct process *j) {
    struct audit *a = &j->host->ops->audit;
    const struct process_command *c = &j->command;
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
    audit_flag(a, "tty", j->proc.tty);
    if (j->confined)
        audit_flag(a, "sandboxed", true);
}

static const struct conn *events_owner(const struct process *j) {
    const struct rpc_peer *p = j->session != NULL ? j->session->peer : NULL;
    return p != NULL ? p->conn : NULL;
}

void events_started(struct process *j) {
    j->host->ops->metrics.starts++;
    if (!events_logged(j))
        return;
    events_begin(j, events_owner(j), "start");
    audit_number(&j->host->ops->audit, "pid", j->proc.pid);
    events_command(j);
    audit_end(&j->host->ops->audit);
}

void events_failed(struct process *j, const char *reason) {
    j->host->ops->metrics.starts_failed++;
    if (!events_logged(j))
        return;
    events_begin(j, events_owner(j), "failed");
    events_command(j);
    audit_text(&j->host->ops->audit, "reason", str_of(reason), OPS_TEXT_MAX);
    audit_end(&j->host->ops->audit);
}

/* -- ends -- */

static void events_signal_name(struct audit *a, int signo) {
    char name[16];
    proc_signal_name(signo, name);
    audit_text(a, "signal", str_of(name), sizeof name);
}

void events_exited(struct process *j) {
    struct audit *a = &j->host->ops->audit;
    const struct proc *p = &j->proc;
    if (j->exit_reported || !p->reaped || p->pid == 0)
        return;
    j->exit_reported = true;
    enum metrics_exit kind = p->signal != 0      ? METRICS_SIGNAL
                             : p->exit_code != 0 ? METRICS_FAILURE
                                                 : METRICS_SUCCESS;
    j->host->ops->metrics.exits[kind]++;
    j->host->ops->metrics.timeouts += p->timed_out;
    if (!events_logged(j))
        return;
    _cleanup_buf_ struct buf resources = BUF_INIT(512);
    events_begin(j, NULL, "exit");
    audit_number(a, "pid", p->pid);
    audit_number(a, "exitCode", p->exit_code);
    if (p->signal != 0)
        events_signal_name(a, p->signal);
    if (p->timed_out)
        audit_flag(a, "timedOut", true);
    if (j->sandbox_denied)
        audit_flag(a, "sandboxDenied", true);
    if (process_json_put_resources(p, &resources) == 0)
        audit_json(a, "resources", buf_str(&resources));
    audit_end(a);
}

/* -- requests -- */

void events_signal(const struct rpc_call *c, const struct process *j, int signo) {
    if (!events_logged(j))
        return;
    events_begin(j, c->peer->conn, "signal");
    events_signal_name(&j->host->ops->audit, signo);
    audit_end(&j->host->ops->audit);
}

void events_terminate(const struct rpc_call *c, const struct process *j, uint64_t grace_ms) {
    struct audit *a = &j->host->ops->audit;
    if (!events_logged(j))
        return;
    events_begin(j, c->peer->conn, "terminate");
    audit_text(a, "mode", grace_ms > 0 ? STR_LIT("graceful") : STR_LIT("force"), OPS_TEXT_MAX);
    if (grace_ms > 0)
        audit_number(a, "timeoutMs", (int64_t)MIN(grace_ms, (uint64_t)INT64_MAX));
    audit_end(a);
}

void events_write(const struct rpc_call *c, const struct process *j, size_t n, bool closing,
                  const char *status) {
    struct audit *a = &j->host->ops->audit;
    if (!events_logged(j))
        return;
    events_begin(j, c->peer->conn, "write");
    audit_number(a, "bytes", (int64_t)n);
    if (closing)
        audit_flag(a, "closeStdin", true);
    audit_text(a, "status", str_of(status), OPS_TEXT_MAX);
    audit_end(a);
}

void events_attach(const struct rpc_call *c, const struct process *j) {
    if (!events_logged(j))
        return;
    const struct session *viewer = c->peer->user;
    events_begin(j, c->peer->conn, "attach");
    audit_text(&j->host->ops->audit, "viewer", str_of(viewer->id), OPS_SESSION_LOGGED);
    audit_end(&j->host->ops->audit);
}
