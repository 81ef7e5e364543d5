#include "ops/report.h"

#include "process/status.h"

/* -- who -- */

static void report_put_text(struct audit *a, const char *name, const char *text) {
    if (text != NULL && text[0] != '\0')
        audit_text(a, name, str_of(text), REPORT_TEXT_MAX);
}

/*
 * The members that say who: the connection, the session by the first characters of its id, the
 * name its client gave, the subject of the token. Each may be NULL.
 */
static void report_who(struct audit *a, const struct conn *c, const char *id,
                       const struct session *s) {
    if (c != NULL)
        audit_text(a, "peer", str_of(c->peer), sizeof c->peer);
    if (id != NULL && id[0] != '\0')
        audit_text(a, "session", str_of(id), SESSION_LOGGED);
    report_put_text(a, "client", s != NULL ? s->client : NULL);
    report_put_text(a, "subject", c != NULL ? c->subject : s != NULL ? s->subject : NULL);
}

void report_asker_init(struct report_asker *w, const struct conn *c, const struct session *s) {
    *w = (struct report_asker){0};
    memcpy(w->peer, c->peer, sizeof w->peer);
    if (s != NULL)
        memcpy(w->session, s->id, SESSION_LOGGED);
    w->client = s != NULL && s->client != NULL ? strdup(s->client) : NULL;
    w->subject = c->subject != NULL ? strdup(c->subject) : NULL;
}

void report_asker_put(struct audit *a, const struct report_asker *w) {
    report_put_text(a, "peer", w->peer);
    report_put_text(a, "session", w->session);
    report_put_text(a, "client", w->client);
    report_put_text(a, "subject", w->subject);
}

void report_asker_fini(struct report_asker *w) {
    free(w->client);
    free(w->subject);
}

/* Begins a line about a job on behalf of a connection (NULL: nobody's). */
static void report_begin(const struct job *j, const struct conn *c, const char *event) {
    struct audit *a = &j->server->audit;
    audit_begin(a, event);
    report_who(a, c, j->session_name, j->session);
    audit_json(a, "processId", j->id_json);
}

static bool report_logged(const struct job *j) {
    return audit_enabled(&j->server->audit);
}

/* -- connections -- */

static void report_connection(const struct conn *c, const char *event) {
    struct server *s = c->host->owner;
    const struct rpc_peer *p = c->user;
    const struct session *session = p != NULL ? p->user : NULL;
    if (!audit_enabled(&s->audit))
        return;
    audit_begin(&s->audit, event);
    report_who(&s->audit, c, session != NULL ? session->id : NULL, session);
    audit_end(&s->audit);
}

void report_connected(const struct conn *c) {
    report_connection(c, "connect");
}

void report_disconnected(const struct conn *c) {
    report_connection(c, "disconnect");
}

void report_session(const struct session *s, bool resumed) {
    struct audit *a = &s->server->audit;
    if (!audit_enabled(a))
        return;
    audit_begin(a, "session");
    report_who(a, s->peer->conn, s->id, s);
    audit_flag(a, "resumed", resumed);
    audit_end(a);
}

/* -- refusals -- */

void report_refusals(struct server *s) {
    const char *key;
    uint64_t count, since = s->refusals.since, seconds = (s->loop.now / LOOP_MS - since) / 1000;
    if (!audit_enabled(&s->audit) || !s->refusals.waiting)
        return;
    while (refusals_take(&s->refusals, &key, &count)) {
        audit_begin(&s->audit, "refused");
        audit_text(&s->audit, "peer", key[0] != '\0' ? str_of(key) : STR_LIT("others"),
                   REPORT_TEXT_MAX);
        audit_text(&s->audit, "what", STR_LIT("connections"), REPORT_TEXT_MAX);
        audit_number(&s->audit, "count", (int64_t)count);
        audit_number(&s->audit, "seconds", (int64_t)seconds);
        audit_end(&s->audit);
    }
}

static void report_on_refusals(struct loop_timer *t) {
    report_refusals(container_of(t, struct server, refusals_timer));
}

void report_turned_away(struct server *s, enum metrics_refusal why, const char *peer, int status,
                        const char *reason) {
    struct audit *a = &s->audit;
    s->metrics.refused[why]++;
    if (!audit_enabled(a))
        return;
    if (!refusals_admit(&s->refusals, peer, s->loop.now / LOOP_MS, audit_has_share(a))) {
        s->refusals_timer.fn = report_on_refusals;
        if (s->refusals_timer.pos == 0)
            (void)!loop_timer_set(&s->loop, &s->refusals_timer, REFUSALS_SUM_MS * LOOP_MS);
        return;
    }
    audit_begin(a, "refused");
    audit_text(a, "peer", str_of(peer), REPORT_TEXT_MAX);
    audit_text(a, "what", STR_LIT("connection"), REPORT_TEXT_MAX);
    if (status != 0)
        audit_number(a, "status", status);
    audit_text(a, "reason", str_of(reason), REPORT_TEXT_MAX);
    audit_end(a);
}

/* -- starts -- */

void report_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e) {
    struct server *s = server_of_peer(c->peer);
    struct audit *a = &s->audit;
    const struct session *session = c->peer->user;
    s->metrics.starts_refused++;
    if (!audit_enabled(a))
        return;
    struct audit_argv argv;
    audit_begin(a, "refused");
    report_who(a, c->peer->conn, session->id, session);
    audit_text(a, "what", STR_LIT("process/start"), REPORT_TEXT_MAX);
    audit_text(a, "processId", p->process_id, JOB_ID_MAX);
    audit_argv_begin(a, &argv);
    json_for_each(v, p->argv) {
        audit_argv_add(a, &argv, json_str(v));
    }
    audit_argv_end(a, &argv);
    audit_text(a, "reason", err_str(e), REPORT_TEXT_MAX);
    audit_end(a);
}

/* What was to be run, of the start that has just been decided. */
static void report_command(struct job *j) {
    struct audit *a = &j->server->audit;
    const struct job_command *c = &j->command;
    struct audit_argv argv;
    if (c->argv == NULL)
        return;
    audit_argv_begin(a, &argv);
    for (char *const *arg = c->argv; *arg != NULL; arg++)
        audit_argv_add(a, &argv, str_of(*arg));
    audit_argv_end(a, &argv);
    if (strcmp(c->program, c->argv[0]) != 0) /* arg0 was given */
        audit_text(a, "program", str_of(c->program), REPORT_TEXT_MAX);
    audit_text(a, "cwd", str_of(c->cwd), REPORT_TEXT_MAX);
    audit_flag(a, "tty", j->proc.tty);
    if (j->confined)
        audit_flag(a, "sandboxed", true);
}

static const struct conn *report_owner(const struct job *j) {
    const struct rpc_peer *p = j->session != NULL ? j->session->peer : NULL;
    return p != NULL ? p->conn : NULL;
}

void report_started(struct job *j) {
    j->server->metrics.starts++;
    if (!report_logged(j))
        return;
    report_begin(j, report_owner(j), "start");
    audit_number(&j->server->audit, "pid", j->proc.pid);
    report_command(j);
    audit_end(&j->server->audit);
}

void report_failed(struct job *j, const char *reason) {
    j->server->metrics.starts_failed++;
    if (!report_logged(j))
        return;
    report_begin(j, report_owner(j), "failed");
    report_command(j);
    audit_text(&j->server->audit, "reason", str_of(reason), REPORT_TEXT_MAX);
    audit_end(&j->server->audit);
}

/* -- ends -- */

static void report_signal_name(struct audit *a, int signo) {
    char name[16];
    proc_signal_name(signo, name);
    audit_text(a, "signal", str_of(name), sizeof name);
}

void report_exited(struct job *j) {
    struct audit *a = &j->server->audit;
    const struct proc *p = &j->proc;
    if (j->exit_reported || !p->reaped || p->pid == 0)
        return;
    j->exit_reported = true;
    enum metrics_exit kind = p->signal != 0      ? METRICS_SIGNAL
                             : p->exit_code != 0 ? METRICS_FAILURE
                                                 : METRICS_SUCCESS;
    j->server->metrics.exits[kind]++;
    j->server->metrics.timeouts += p->timed_out;
    if (!report_logged(j))
        return;
    _cleanup_buf_ struct buf resources = BUF_INIT(512);
    report_begin(j, NULL, "exit");
    audit_number(a, "pid", p->pid);
    audit_number(a, "exitCode", p->exit_code);
    if (p->signal != 0)
        report_signal_name(a, p->signal);
    if (p->timed_out)
        audit_flag(a, "timedOut", true);
    if (j->sandbox_denied)
        audit_flag(a, "sandboxDenied", true);
    if (status_put_resources(p, &resources) == 0)
        audit_json(a, "resources", buf_str(&resources));
    audit_end(a);
}

/* -- requests -- */

void report_signal(const struct rpc_call *c, const struct job *j, int signo) {
    if (!report_logged(j))
        return;
    report_begin(j, c->peer->conn, "signal");
    report_signal_name(&j->server->audit, signo);
    audit_end(&j->server->audit);
}

void report_terminate(const struct rpc_call *c, const struct job *j, uint64_t grace_ms) {
    struct audit *a = &j->server->audit;
    if (!report_logged(j))
        return;
    report_begin(j, c->peer->conn, "terminate");
    audit_text(a, "mode", grace_ms > 0 ? STR_LIT("graceful") : STR_LIT("force"), REPORT_TEXT_MAX);
    if (grace_ms > 0)
        audit_number(a, "timeoutMs", (int64_t)MIN(grace_ms, (uint64_t)INT64_MAX));
    audit_end(a);
}

void report_write(const struct rpc_call *c, const struct job *j, size_t n, bool closing,
                  const char *status) {
    struct audit *a = &j->server->audit;
    if (!report_logged(j))
        return;
    report_begin(j, c->peer->conn, "write");
    audit_number(a, "bytes", (int64_t)n);
    if (closing)
        audit_flag(a, "closeStdin", true);
    audit_text(a, "status", str_of(status), REPORT_TEXT_MAX);
    audit_end(a);
}

void report_attach(const struct rpc_call *c, const struct job *j) {
    if (!report_logged(j))
        return;
    const struct session *viewer = c->peer->user;
    report_begin(j, c->peer->conn, "attach");
    audit_text(&j->server->audit, "viewer", str_of(viewer->id), SESSION_LOGGED);
    audit_end(&j->server->audit);
}
