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
#include "process/snapshot.h"

#include <errno.h>

struct process *process_find(const struct session *s, struct str id) {
    struct hash_node *n = hash_find(&s->processes, id);
    return n ? container_of(n, struct process, node) : NULL;
}

struct process *process_of_call(const struct rpc_call *c, struct str id, struct err *e) {
    struct process *p = process_find(session_of_call(c), id);
    bool starting = p != NULL && p->proc.state == PROC_STARTING;
    if (p != NULL && !starting)
        return p;
    err_about(e, ERR_INVALID_REQUEST, p ? "process id " : "unknown process id ", id,
              starting ? " is starting" : "");
    return NULL;
}

static void process_unlist(struct process *p) {
    if (!p->listed)
        return;
    p->listed = false;
    if (p->proc.state != PROC_CLOSED)
        p->session->running--;
    attach_end_process(p);
    list_remove(&p->order);
    ledger_remove(&p->host->ledger, &p->row, str_of(p->session->shown), p->id_json);
    hash_remove(&p->session->processes, &p->node);
}

void process_expire(struct process *p) {
    process_retain_drop(p);
    process_wait_expire(p);
    process_write_drop(p);
    process_unlist(p);
    if (proc_is_gone(&p->proc)) {
        process_free(p);
        return;
    }
    proc_abandon(&p->proc, false, false);
    list_append(&p->session->leftovers, &p->link);
}

static void process_on_retention(struct loop_timer *t) {
    process_expire(container_of(t, struct process, retention));
}

/* -- events of the process -- */

static void process_refuse_start(struct process *p, struct rpc_call *c, int error) {
    _cleanup_err_ struct err e = ERR_INIT;
    int step = p->proc.child.sup->failed_limit;
    if (p->proc.refusal.code != 0)
        err_about(&e, p->proc.refusal.code, "", err_str(&p->proc.refusal), "");
    else if (step >= 0)
        err_set(&e, ERR_INTERNAL, "cannot set limits.%s: %s (os error %d)",
                limits_name((enum limits_kind)step), err_os_text(error), error);
    else
        err_os(&e, ERR_INTERNAL, error);
    events_failed(p, err_msg(&e));
    p->start_call = NULL;
    rpc_fail(c, &e);
    notify_failed(p, err_msg(&e));
}

static void process_confirm_start(struct process *p, struct rpc_call *c) {
    if (c->peer == NULL) {
        rpc_forget(c);
    } else {
        struct buf *b = rpc_result_begin(c);
        if (buf_putz(b, "{\"processId\":") < 0 || buf_put(b, p->id_json.p, p->id_json.n) < 0 ||
            buf_putf(b, ",\"sandboxType\":\"%s\"", process_json_sandbox(p)) < 0 ||
            (p->session->console && buf_putf(b, ",\"sessionId\":\"%s\"", p->session->shown) < 0) ||
            buf_putc(b, '}') < 0)
            b->len = 0;
        rpc_result_send(c);
    }
    notify_started(p);
}

static void process_forget_start(struct process *p) {
    arena_fini(&p->start);
    p->command = (struct process_command){0};
}

static void process_on_started(struct proc *proc, int error) {
    struct process *p = container_of(proc, struct process, proc);
    bool doomed = p->cancel.pos != 0;
    loop_timer_del(p->host->loop, &p->cancel);
    struct rpc_call *c = p->start_call;
    if (error == 0) {
        events_started(p);
        p->start_call = NULL;
        process_forget_start(p);
        process_confirm_start(p, c);
        ledger_touch(&p->host->ledger, &p->row);
        proc_begin_output(proc);
        if (doomed)
            process_terminate(p, p->cancel_grace_ms);
        return;
    }
    process_refuse_start(p, c, error);
    process_forget_start(p);
    /* The id is free at once; the memory goes with the supervisor. */
    network_free(steal_ptr(&p->network));
    process_unlist(p);
    proc_abandon(proc, false, false);
    p->session = NULL;
    list_append(&p->host->dying, &p->link);
}

/* The owner has event `seq`: tells those who wait and watch. */
static void process_spread(struct process *p, uint64_t seq) {
    ledger_touch(&p->host->ledger, &p->row);
    process_retain_note_event(p, seq);
    process_wait_wake(p);
    attach_wake(p);
}

static void process_on_output(struct proc *proc, uint64_t seq, enum outlog_stream stream,
                              const char *data, size_t n) {
    struct process *p = container_of(proc, struct process, proc);
    p->host->ops->metrics.output_bytes += n;
    notify_output(notify_owner(p), p, seq, stream, data, n);
    process_spread(p, seq);
}

static void process_on_exited(struct proc *proc, uint64_t seq) {
    struct process *p = container_of(proc, struct process, proc);
    p->sandbox_denied = p->sandboxed && denial_seen(&proc->log, proc->exit_code);
    events_exited(p);
    notify_exited(notify_owner(p), p, seq);
    process_spread(p, seq);
}

static void process_on_closed(struct proc *proc, uint64_t seq) {
    struct process *p = container_of(proc, struct process, proc);
    p->session->running--;
    network_free(steal_ptr(&p->network));
    notify_closed(notify_owner(p), p, seq);
    process_spread(p, seq);
    process_write_pump(p);
    process_retain(p);
}

static void process_on_stdin_room(struct proc *p) {
    process_write_pump(container_of(p, struct process, proc));
}

static void process_on_gone(struct proc *proc) {
    struct process *p = container_of(proc, struct process, proc);
    struct process_host *host = p->host;
    events_exited(p); /* a process that ends with its session reports nothing else */
    remains_take(&host->remains, steal_ptr(&p->placeholders));
    if (!p->listed)
        process_free(p); /* was a leftover, or dying */
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

static int process_set_id(struct process *p, struct str id) {
    _cleanup_buf_ struct buf json = BUF_INIT(PROCESS_ID_MAX * 6 + 2);
    char *copy = malloc(id.n + 1);
    if (copy == NULL || jsonw_str(&json, id) < 0) {
        free(copy);
        return -ENOMEM;
    }
    if (id.n > 0)
        memcpy(copy, id.p, id.n);
    p->id = (struct str){copy, id.n};
    p->id_json = buf_str(&json);
    json.p = NULL;
    return 0;
}

struct process *process_new(struct session *s, struct str id) {
    struct process *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->session = s;
    p->host = s->host;
    memcpy(p->session_name, s->id, OPS_SESSION_LOGGED);
    p->cancel.fn = process_on_cancel;
    list_init(&p->link);
    list_init(&p->order);
    list_init(&p->views);
    list_init(&p->waits);
    list_init(&p->writes);
    list_init(&p->unsent);
    ledger_row_init(&p->row, LEDGER_PROCESS);
    list_init(&p->output.node);
    list_init(&p->entry.node);
    p->retention.fn = process_on_retention;
    proc_init(&p->proc, &s->host->procs, &process_ops, &s->flow, s->host->settings.retained_output);
    proc_keep_unacked(&p->proc, s->output_ack);
    if (process_set_id(p, id) < 0 || hash_add(&s->processes, &p->node, p->id) < 0) {
        process_free(p);
        return NULL;
    }
    p->listed = true;
    s->running++;
    list_append(&s->order, &p->order);
    ledger_touch(&p->host->ledger, &p->row);
    return p;
}

int process_start(struct process *p, const struct child_spec *spec) {
    int r = proc_start(&p->proc, spec);
    if (r < 0)
        return r;
    p->confined = spec->launch != NULL;
    p->placeholders = spec->launch != NULL ? spec->launch->placeholders : NULL;
    return 0;
}

void process_free(struct process *p) {
    if (p->waiting != NULL)
        snapshot_forget(steal_ptr(&p->waiting));
    loop_timer_del(p->host->loop, &p->cancel);
    process_unlist(p);
    list_remove(&p->link);
    proc_fini(&p->proc);
    process_forget_start(p);
    if (proc_is_gone(&p->proc)) /* else the supervisor still uses them */
        remains_take(&p->host->remains, steal_ptr(&p->placeholders));
    cgroup_remove(&p->cgroup);
    network_free(steal_ptr(&p->network));
    free((char *)p->id.p);
    free((char *)p->id_json.p);
    free((char *)p->argv_json.p);
    free((char *)p->cwd_json.p);
    sizes_fini(&p->sizes);
    p->host->hooks->freed(p->host);
    free(p);
}

/* Hands the process to the server until its last descendant is dead. */
static void process_let_die(struct process *p, bool spare_setsid) {
    loop_timer_del(p->host->loop, &p->cancel);
    network_free(steal_ptr(&p->network));
    process_retain_drop(p);
    process_unlist(p);
    list_remove(&p->link);
    if (proc_is_gone(&p->proc)) {
        process_free(p);
        return;
    }
    proc_abandon(&p->proc, true, spare_setsid);
    p->session = NULL;
    list_append(&p->host->dying, &p->link);
}

/* Stops a start before exec; its request fails. The id is free at once. */
static void process_cancel_start(struct process *p) {
    struct rpc_call *c = steal_ptr(&p->start_call);
    if (c != NULL) {
        _cleanup_err_ struct err e = ERR_INIT;
        err_about(&e, ERR_INVALID_REQUEST, "process ", p->id, " start was cancelled");
        events_failed(p, err_msg(&e));
        rpc_fail(c, &e);
        notify_failed(p, err_msg(&e));
    }
    process_let_die(p, false);
}

static void process_on_cancel(struct loop_timer *t) {
    process_cancel_start(container_of(t, struct process, cancel));
}

/* With one request at a time the terminate takes effect after the start, unless exec hangs. */
static void process_doom_start(struct process *p, uint64_t grace_ms) {
    if (p->cancel.pos !=
        0) { /* not the first terminate: the shortest grace counts, the timer runs on */
        p->cancel_grace_ms = MIN(p->cancel_grace_ms, grace_ms);
        return;
    }
    p->cancel_grace_ms = grace_ms;
    if (!p->host->settings.one_at_a_time ||
        loop_timer_set(p->host->loop, &p->cancel, PROCESS_CANCEL_MS * LOOP_MS) < 0)
        process_cancel_start(p);
}

bool process_terminate(struct process *p, uint64_t grace_ms) {
    if (p->proc.state == PROC_STARTING) {
        process_doom_start(p, grace_ms);
        return true;
    }
    if (!proc_terminate(&p->proc, grace_ms))
        return false;
    process_write_pump(p);
    return true;
}

void process_resized(struct process *p, unsigned rows, unsigned cols) {
    if (!p->host->ledger.on)
        return;
    sizes_add(&p->sizes, p->proc.next_seq - 1, rows, cols);
    ledger_touch(&p->host->ledger, &p->row);
    attach_wake(p);
}

void process_kill(struct process *p) {
    if (p->start_call != NULL) {
        events_failed(p, "its session ended before it had started");
        rpc_forget(steal_ptr(&p->start_call));
    }
    process_wait_drop(p);
    process_write_drop(p);
    /* The end of the session does not spare a process that was terminated before. */
    process_let_die(p, p->host->settings.keep_detached && !p->proc.terminated);
}
