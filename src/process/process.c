#include "process/process.h"

#include "json/jsonw.h"
#include "process/attach.h"
#include "process/denial.h"
#include "process/process_retain.h"
#include "process/process_wait.h"
#include "process/process_write.h"
#include "process/notify.h"
#include "process/events.h"
#include "sandbox/host/sandbox_host.h"
#include "process/process_json.h"

#include <errno.h>

struct process *process_find(const struct session *s, struct str id) {
    struct hash_node *n = hash_find(&s->processes, id);
    return n ? container_of(n, struct process, node) : NULL;
}

struct process *process_of_call(const struct rpc_call *c, struct str id, struct err *e) {
    struct process *j = process_find(c->peer->user, id);
    bool starting = j != NULL && j->proc.state == PROC_STARTING;
    if (j != NULL && !starting)
        return j;
    err_about(e, ERR_INVALID_REQUEST, j ? "process id " : "unknown process id ", id,
              starting ? " is starting" : "");
    return NULL;
}

static void process_unlist(struct process *j) {
    if (!j->listed)
        return;
    j->listed = false;
    if (j->proc.state != PROC_CLOSED)
        j->session->running--;
    attach_end_job(j);
    list_remove(&j->order);
    hash_remove(&j->session->processes, &j->node);
}

void process_expire(struct process *j) {
    process_retain_drop(j);
    process_wait_expire(j);
    process_wait_drop(j);
    process_write_drop(j);
    process_unlist(j);
    if (proc_is_gone(&j->proc)) {
        process_free(j);
        return;
    }
    proc_abandon(&j->proc, false, false);
    list_append(&j->session->leftovers, &j->link);
}

static void process_on_retention(struct loop_timer *t) {
    process_expire(container_of(t, struct process, retention));
}

/* -- what the process says -- */

static void process_refuse_start(struct process *j, struct rpc_call *c, int error) {
    _cleanup_err_ struct err e = ERR_INIT;
    int step = j->proc.child.sup->failed_limit;
    if (j->proc.refusal.code != 0)
        err_about(&e, j->proc.refusal.code, "", err_str(&j->proc.refusal), "");
    else if (step >= 0)
        err_set(&e, ERR_INTERNAL, "cannot set limits.%s: %s (os error %d)",
                limits_name((enum limits_kind)step), err_os_text(error), error);
    else
        err_os(&e, ERR_INTERNAL, error);
    events_failed(j, err_msg(&e));
    rpc_fail(c, &e);
    notify_failed(j, err_msg(&e));
}

static void process_confirm_start(struct process *j, struct rpc_call *c) {
    if (c->peer == NULL) {
        rpc_forget(c);
    } else {
        struct buf *b = rpc_result_begin(c);
        if (buf_putz(b, "{\"processId\":") < 0 || buf_put(b, j->id_json.p, j->id_json.n) < 0 ||
            buf_putf(b, ",\"sandboxType\":\"%s\"}", process_json_sandbox(j)) < 0)
            b->len = 0;
        rpc_result_send(c);
    }
    notify_started(j);
}

static void process_forget_start(struct process *j) {
    arena_fini(&j->start);
    j->command = (struct process_command){0};
}

static void process_on_started(struct proc *p, int error) {
    struct process *j = container_of(p, struct process, proc);
    bool doomed = j->cancel.pos != 0;
    loop_timer_del(j->host->loop, &j->cancel);
    struct rpc_call *c = steal_ptr(&j->start_call);
    if (error == 0) {
        events_started(j);
        process_forget_start(j);
        process_confirm_start(j, c);
        proc_begin_output(p);
        if (doomed)
            process_terminate(j, j->cancel_grace_ms);
        return;
    }
    process_refuse_start(j, c, error);
    process_forget_start(j);
    /* The id is free at once; the memory goes with the supervisor. */
    process_unlist(j);
    proc_abandon(p, false, false);
    j->session = NULL;
    list_append(&j->host->dying, &j->link);
}

static void process_on_output(struct proc *p, uint64_t seq, enum outlog_stream stream,
                              const char *data, size_t n) {
    struct process *j = container_of(p, struct process, proc);
    j->host->ops->metrics.output_bytes += n;
    notify_output(notify_owner(j), j, seq, stream, data, n);
    process_retain_note_event(j, seq);
    process_wait_wake(j);
    attach_wake(j);
}

static void process_on_exited(struct proc *p, uint64_t seq) {
    struct process *j = container_of(p, struct process, proc);
    j->sandbox_denied = j->sandboxed && denial_seen(&p->log, p->exit_code);
    events_exited(j);
    notify_exited(notify_owner(j), j, seq);
    process_retain_note_event(j, seq);
    process_wait_wake(j);
    attach_wake(j);
}

static void process_on_closed(struct proc *p, uint64_t seq) {
    struct process *j = container_of(p, struct process, proc);
    j->session->running--;
    notify_closed(notify_owner(j), j, seq);
    process_retain_note_event(j, seq);
    process_wait_wake(j);
    attach_wake(j);
    process_write_pump(j);
    process_retain(j);
}

static void process_on_stdin_room(struct proc *p) {
    process_write_pump(container_of(p, struct process, proc));
}

static void process_on_gone(struct proc *p) {
    struct process *j = container_of(p, struct process, proc);
    struct process_host *host = j->host;
    events_exited(j); /* of those that ended with their session nobody else heard */
    remains_take(&host->remains, steal_ptr(&j->placeholders));
    if (!j->listed)
        process_free(j); /* was a leftover, or dying */
    host->hooks->died(host);
}

static void process_on_cancel(struct loop_timer *t);

static const struct proc_ops process_ops = {
    .started = process_on_started,
    .output = process_on_output,
    .exited = process_on_exited,
    .closed = process_on_closed,
    .stdin_room = process_on_stdin_room,
    .gone = process_on_gone,
};

/* -- life -- */

static int process_set_id(struct process *j, struct str id) {
    _cleanup_buf_ struct buf json = BUF_INIT(PROCESS_ID_MAX * 6 + 2);
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

struct process *process_new(struct session *s, struct str id) {
    struct process *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    j->session = s;
    j->host = s->host;
    memcpy(j->session_name, s->id, OPS_SESSION_LOGGED);
    j->cancel.fn = process_on_cancel;
    list_init(&j->link);
    list_init(&j->order);
    list_init(&j->views);
    list_init(&j->waits);
    list_init(&j->writes);
    list_init(&j->unsent);
    list_init(&j->output.node);
    list_init(&j->entry.node);
    j->retention.fn = process_on_retention;
    proc_init(&j->proc, &s->host->procs, &process_ops, &s->gate, s->host->settings.retained_output);
    if (process_set_id(j, id) < 0 || hash_add(&s->processes, &j->node, j->id) < 0) {
        process_free(j);
        return NULL;
    }
    j->listed = true;
    s->running++;
    list_append(&s->order, &j->order);
    return j;
}

int process_start(struct process *j, const struct child_spec *spec) {
    int r = proc_start(&j->proc, spec);
    if (r < 0) {
        process_free(j);
        return r;
    }
    j->confined = spec->launch != NULL;
    j->placeholders = spec->launch != NULL ? spec->launch->placeholders : NULL;
    return 0;
}

void process_free(struct process *j) {
    loop_timer_del(j->host->loop, &j->cancel);
    process_unlist(j);
    list_remove(&j->link);
    proc_fini(&j->proc);
    process_forget_start(j);
    if (proc_is_gone(&j->proc)) /* else the supervisor still uses it */
        remains_take(&j->host->remains, steal_ptr(&j->placeholders));
    cgroup_remove(&j->cgroup);
    free((char *)j->id.p);
    free((char *)j->id_json.p);
    free((char *)j->argv_json.p);
    j->host->hooks->freed(j->host);
    free(j);
}

/* Hands the process to the server until its last descendant is dead. */
static void process_let_die(struct process *j, bool spare_setsid) {
    loop_timer_del(j->host->loop, &j->cancel);
    process_retain_drop(j);
    process_unlist(j);
    list_remove(&j->link);
    if (proc_is_gone(&j->proc)) {
        process_free(j);
        return;
    }
    proc_abandon(&j->proc, true, spare_setsid);
    j->session = NULL;
    list_append(&j->host->dying, &j->link);
}

/* Stops a start that is under way; its request fails. The id is free at once. */
static void process_cancel_start(struct process *j) {
    struct rpc_call *c = steal_ptr(&j->start_call);
    if (c != NULL) {
        _cleanup_err_ struct err e = ERR_INIT;
        err_about(&e, ERR_INVALID_REQUEST, "process ", j->id, " start was cancelled");
        events_failed(j, err_msg(&e));
        rpc_fail(c, &e);
        notify_failed(j, err_msg(&e));
    }
    process_let_die(j, false);
}

static void process_on_cancel(struct loop_timer *t) {
    process_cancel_start(container_of(t, struct process, cancel));
}

/* One request at a time: as if the terminate came behind the start, unless exec hangs. */
static void process_doom_start(struct process *j, uint64_t grace_ms) {
    if (j->cancel.pos != 0) { /* not the first one: the sharpest counts, the time runs on */
        j->cancel_grace_ms = MIN(j->cancel_grace_ms, grace_ms);
        return;
    }
    j->cancel_grace_ms = grace_ms;
    if (!j->host->settings.one_at_a_time ||
        loop_timer_set(j->host->loop, &j->cancel, PROCESS_CANCEL_MS * LOOP_MS) < 0)
        process_cancel_start(j);
}

bool process_terminate(struct process *j, uint64_t grace_ms) {
    if (j->proc.state == PROC_STARTING) {
        process_doom_start(j, grace_ms);
        return true;
    }
    if (!proc_terminate(&j->proc, grace_ms))
        return false;
    process_write_pump(j);
    return true;
}

void process_kill(struct process *j) {
    if (j->start_call != NULL) {
        events_failed(j, "its session ended before it had started");
        rpc_forget(steal_ptr(&j->start_call));
    }
    process_wait_drop(j);
    process_write_drop(j);
    /* What was terminated is not spared by an end that follows. */
    process_let_die(j, j->host->settings.keep_detached && !j->proc.terminated);
}
