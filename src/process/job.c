#include "process/job.h"

#include "json/jsonw.h"
#include "process/attach.h"
#include "process/denial.h"
#include "process/job_retain.h"
#include "process/job_wait.h"
#include "process/notify.h"
#include "ops/report.h"
#include "sandbox/host/sandbox.h"
#include "process/status.h"

#include <errno.h>

struct job *job_find(const struct session *s, struct str id) {
    struct hash_node *n = hash_find(&s->jobs, id);
    return n ? container_of(n, struct job, node) : NULL;
}

static void job_unlist(struct job *j) {
    if (!j->listed)
        return;
    j->listed = false;
    if (j->proc.state != PROC_CLOSED)
        j->session->running--;
    attach_end_job(j);
    list_remove(&j->order);
    hash_remove(&j->session->jobs, &j->node);
}

void job_expire(struct job *j) {
    job_unretain(j);
    job_expire_waits(j);
    job_fail_waiters(j);
    job_unlist(j);
    if (proc_is_gone(&j->proc)) {
        job_free(j);
        return;
    }
    proc_abandon(&j->proc, false, false);
    list_append(&j->session->leftovers, &j->link);
}

static void job_on_retention(struct loop_timer *t) {
    job_expire(container_of(t, struct job, retention));
}

/* -- what the process says -- */

static void job_refuse_start(struct job *j, struct rpc_call *c, int error) {
    _cleanup_err_ struct err e = ERR_INIT;
    int step = j->proc.spawn.sup->failed_limit;
    if (j->proc.refusal.code != 0)
        err_about(&e, j->proc.refusal.code, "", err_str(&j->proc.refusal), "");
    else if (step >= 0)
        err_set(&e, ERR_INTERNAL, "cannot set limits.%s: %s (os error %d)",
                limits_name((enum limits_kind)step), err_os_text(error), error);
    else
        err_os(&e, ERR_INTERNAL, error);
    report_failed(j, err_msg(&e));
    rpc_fail(c, &e);
    notify_failed(j, err_msg(&e));
}

static void job_confirm_start(struct job *j, struct rpc_call *c) {
    if (c->peer == NULL) {
        rpc_forget(c);
    } else {
        struct buf *b = rpc_result_begin(c);
        if (buf_putz(b, "{\"processId\":") < 0 || buf_put(b, j->id_json.p, j->id_json.n) < 0 ||
            buf_putf(b, ",\"sandboxType\":\"%s\"}", status_sandbox(j)) < 0)
            b->len = 0;
        rpc_result_send(c);
    }
    notify_started(j);
}

static void job_forget_start(struct job *j) {
    arena_fini(&j->start);
    j->command = (struct job_command){0};
}

static void job_on_started(struct proc *p, int error) {
    struct job *j = container_of(p, struct job, proc);
    bool doomed = j->cancel.pos != 0;
    loop_timer_del(&j->server->loop, &j->cancel);
    struct rpc_call *c = steal_ptr(&j->start_call);
    if (error == 0) {
        report_started(j);
        job_forget_start(j);
        job_confirm_start(j, c);
        proc_begin_output(p);
        if (doomed)
            job_terminate(j, j->cancel_grace_ms);
        return;
    }
    job_refuse_start(j, c, error);
    job_forget_start(j);
    /* The id is free at once; the memory goes with the supervisor. */
    job_unlist(j);
    proc_abandon(p, false, false);
    j->session = NULL;
    list_append(&j->server->dying, &j->link);
}

static void job_on_output(struct proc *p, uint64_t seq, enum outlog_stream stream, const char *data,
                          size_t n) {
    struct job *j = container_of(p, struct job, proc);
    j->server->metrics.output_bytes += n;
    notify_output(notify_owner(j), j, seq, stream, data, n);
    job_note_event(j, seq);
    job_wake_waits(j);
    attach_wake(j);
}

static void job_on_exited(struct proc *p, uint64_t seq) {
    struct job *j = container_of(p, struct job, proc);
    j->sandbox_denied = j->sandboxed && denial_seen(&p->log, p->exit_code);
    report_exited(j);
    notify_exited(notify_owner(j), j, seq);
    job_note_event(j, seq);
    job_wake_waits(j);
    attach_wake(j);
}

static void job_on_closed(struct proc *p, uint64_t seq) {
    struct job *j = container_of(p, struct job, proc);
    j->session->running--;
    notify_closed(notify_owner(j), j, seq);
    job_note_event(j, seq);
    job_wake_waits(j);
    attach_wake(j);
    job_pump_writes(j);
    job_retain(j);
}

static void job_on_stdin_room(struct proc *p) {
    job_pump_writes(container_of(p, struct job, proc));
}

static void job_on_gone(struct proc *p) {
    struct job *j = container_of(p, struct job, proc);
    struct server *s = j->server;
    report_exited(j); /* of those that ended with their session nobody else heard */
    remains_take(&s->remains, steal_ptr(&j->synth));
    if (!j->listed)
        job_free(j); /* was a leftover, or dying */
    server_check_stopped(s);
}

static void job_on_cancel(struct loop_timer *t);

static const struct proc_ops job_ops = {
    .started = job_on_started,
    .output = job_on_output,
    .exited = job_on_exited,
    .closed = job_on_closed,
    .stdin_room = job_on_stdin_room,
    .gone = job_on_gone,
};

/* -- life -- */

static int job_set_id(struct job *j, struct str id) {
    _cleanup_buf_ struct buf json = BUF_INIT(JOB_ID_MAX * 6 + 2);
    char *copy = malloc(id.n + 1);
    if (copy == NULL || jsonw_str(&json, id) < 0) {
        free(copy);
        return -ENOMEM;
    }
    if (id.n > 0)
        memcpy(copy, id.p, id.n);
    j->id = (struct str){copy, id.n};
    j->id_json = buf_str(&json);
    json.p = NULL;
    return 0;
}

struct job *job_new(struct session *s, struct str id) {
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    j->session = s;
    j->server = s->server;
    memcpy(j->session_name, s->id, SESSION_LOGGED);
    j->start = ARENA_INIT((size_t)CONN_MSG_MAX * 2);
    j->cancel.fn = job_on_cancel;
    list_init(&j->link);
    list_init(&j->order);
    list_init(&j->views);
    list_init(&j->waits);
    list_init(&j->writes);
    list_init(&j->unsent);
    list_init(&j->output.node);
    list_init(&j->entry.node);
    j->retention.fn = job_on_retention;
    proc_init(&j->proc, &s->server->procs, &job_ops, &s->gate, s->server->opt->retained_output);
    if (job_set_id(j, id) < 0 || hash_add(&s->jobs, &j->node, j->id) < 0) {
        job_free(j);
        return NULL;
    }
    j->listed = true;
    s->running++;
    list_append(&s->order, &j->order);
    return j;
}

int job_start(struct job *j, const struct spawn_spec *spec) {
    int r = proc_start(&j->proc, spec);
    if (r < 0) {
        job_free(j);
        return r;
    }
    j->confined = spec->launch != NULL;
    j->synth = spec->launch != NULL ? spec->launch->synth : NULL;
    return 0;
}

void job_free(struct job *j) {
    loop_timer_del(&j->server->loop, &j->cancel);
    job_unlist(j);
    list_remove(&j->link);
    proc_fini(&j->proc);
    job_forget_start(j);
    if (proc_is_gone(&j->proc)) /* else the supervisor still uses it */
        remains_take(&j->server->remains, steal_ptr(&j->synth));
    cgroup_remove(&j->cgroup);
    free((char *)j->id.p);
    free((char *)j->id_json.p);
    free((char *)j->argv_json.p);
    server_freed(j->server);
    free(j);
}

/* Hands the job to the server until its last descendant is dead. */
static void job_let_die(struct job *j, bool spare_setsid) {
    loop_timer_del(&j->server->loop, &j->cancel);
    job_unretain(j);
    job_unlist(j);
    list_remove(&j->link);
    if (proc_is_gone(&j->proc)) {
        job_free(j);
        return;
    }
    proc_abandon(&j->proc, true, spare_setsid);
    j->session = NULL;
    list_append(&j->server->dying, &j->link);
}

/* Stops a start that is under way; its request fails. The id is free at once. */
static void job_cancel_start(struct job *j) {
    struct rpc_call *c = steal_ptr(&j->start_call);
    if (c != NULL) {
        _cleanup_err_ struct err e = ERR_INIT;
        err_about(&e, ERR_INVALID_REQUEST, "process ", j->id, " start was cancelled");
        report_failed(j, err_msg(&e));
        rpc_fail(c, &e);
        notify_failed(j, err_msg(&e));
    }
    job_let_die(j, false);
}

static void job_on_cancel(struct loop_timer *t) {
    job_cancel_start(container_of(t, struct job, cancel));
}

/* One request at a time: as if the terminate came behind the start, unless exec hangs. */
static void job_doom_start(struct job *j, uint64_t grace_ms) {
    if (j->cancel.pos != 0) { /* not the first one: the sharpest counts, the time runs on */
        j->cancel_grace_ms = MIN(j->cancel_grace_ms, grace_ms);
        return;
    }
    j->cancel_grace_ms = grace_ms;
    if (j->server->rpc.lanes > 1 ||
        loop_timer_set(&j->server->loop, &j->cancel, JOB_CANCEL_MS * LOOP_MS) < 0)
        job_cancel_start(j);
}

bool job_terminate(struct job *j, uint64_t grace_ms) {
    if (j->proc.state == PROC_STARTING) {
        job_doom_start(j, grace_ms);
        return true;
    }
    if (!proc_terminate(&j->proc, grace_ms))
        return false;
    job_pump_writes(j);
    return true;
}

void job_kill(struct job *j) {
    if (j->start_call != NULL) {
        report_failed(j, "its session ended before it had started");
        rpc_forget(steal_ptr(&j->start_call));
    }
    job_fail_waiters(j);
    /* What was terminated is not spared by an end that follows. */
    job_let_die(j, j->server->opt->keep_detached && !j->proc.terminated);
}
