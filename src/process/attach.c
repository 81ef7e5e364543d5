#include "process/attach.h"

#include "process/notify.h"
#include "process/process_wait.h"
#include "process/params.h"
#include "process/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct attach {
    struct list node; /* in process->views */
    struct list view; /* in viewer->views */
    struct process *process;
    struct session *viewer;
    struct loop_task start; /* the first events follow the answer */
    uint64_t id;            /* from 1, per server */
    uint64_t seen;          /* seq of the last event delivered or reported as a gap */
    uint64_t sizes;         /* number of the next size of the terminal to tell; for consoles */
    bool told;              /* something was delivered */
};

static void attach_free(struct attach *a) {
    loop_task_del(&a->start);
    list_remove(&a->node);
    list_remove(&a->view);
    free(a);
}

static struct notify_to attach_to(const struct attach *a) {
    return (struct notify_to){a->viewer->peer->conn, a->id};
}

/* Reports that events seen+1 .. next-1 were evicted. */
static void attach_gap(struct attach *a, uint64_t next) {
    char rest[80];
    int n = snprintf(rest, sizeof rest, ",\"fromSeq\":%" PRIu64 ",\"toSeq\":%" PRIu64, a->seen + 1,
                     next - 1);
    notify_event(attach_to(a), a->process, "process/attachGap", (struct str){rest, (size_t)n});
}

/* Tells a console the sizes that the terminal has got: they come before later events. */
static void attach_sizes(struct attach *a) {
    const struct sizes *s = &a->process->sizes;
    if (!a->viewer->console)
        return;
    for (a->sizes = MAX(a->sizes, s->first); a->sizes < s->next; a->sizes++) {
        const struct sizes_one *one = sizes_at(s, a->sizes);
        char rest[96];
        int n =
            snprintf(rest, sizeof rest, ",\"seq\":%" PRIu64 ",\"size\":{\"rows\":%u,\"cols\":%u}",
                     one->seq, one->rows, one->cols);
        notify_event(attach_to(a), a->process, "console/resized", (struct str){rest, (size_t)n});
    }
}

/* Counts what was sent against the turn of a console. */
static void attach_pay(struct attach *a, size_t bytes) {
    struct attach_pace *pace = &a->viewer->pace;
    pace->left -= MIN(pace->left, bytes + ATTACH_PACE_EVENT);
}

/* Delivers the next event. False if there is none. */
static bool attach_step(struct attach *a) {
    attach_sizes(a);
    const struct process *p = a->process;
    const struct proc *proc = &p->proc;
    size_t i = outlog_find(&proc->log, a->seen);
    const struct outlog_chunk *c = i < proc->log.count ? outlog_at(&proc->log, i) : NULL;
    uint64_t next = c ? c->seq : UINT64_MAX;
    if (proc->exited_seq > a->seen)
        next = MIN(next, proc->exited_seq);
    if (proc->closed_seq > a->seen)
        next = MIN(next, proc->closed_seq);
    if (next == UINT64_MAX)
        return false;
    if (next > a->seen + 1)
        attach_gap(a, next);
    if (c != NULL && c->seq == next)
        notify_output(attach_to(a), p, next, c->stream, process_wait_chunk_bytes(p, c), c->len);
    else if (next == proc->exited_seq)
        notify_exited(attach_to(a), p, next);
    else
        notify_closed(attach_to(a), p, next);
    attach_pay(a, c != NULL && c->seq == next ? c->len : 0);
    a->seen = next;
    a->told = true;
    return true;
}

/* Whether the viewer takes more now. */
static bool attach_may_send(const struct attach *a) {
    const struct session *s = a->viewer;
    return !s->peer->conn->high && (!s->console || s->pace.left > 0);
}

static void attach_pump(struct attach *a) {
    while (attach_may_send(a) && attach_step(a))
        ;
    uint64_t closed = a->process->proc.closed_seq;
    if (closed == 0 || a->seen < closed)
        return;
    if (!a->told) /* the client asked for events after the end */
        notify_event(attach_to(a), a->process, "process/detached", (struct str){NULL, 0});
    attach_free(a);
}

/* Begins a turn of a console's views if it is time; else a timer will. */
static bool attach_turn(struct session *s) {
    struct loop *loop = s->host->loop;
    struct attach_pace *pace = &s->pace;
    if (!s->console)
        return true;
    if (pace->timer.pos != 0)
        return false;
    uint64_t since = loop->now - pace->began, turn = ATTACH_PACE_MS * LOOP_MS;
    if (since < turn && loop_timer_set(loop, &pace->timer, turn - since) == 0)
        return false;
    pace->began = loop->now;
    pace->left = ATTACH_PACE_BYTES;
    return true;
}

/* A turn is over: there is another one if it was too short. */
static void attach_turn_over(struct session *s) {
    if (s->console && s->pace.left == 0 && s->pace.timer.pos == 0)
        (void)!loop_timer_set(s->host->loop, &s->pace.timer, ATTACH_PACE_MS * LOOP_MS);
}

static void attach_on_pace(struct loop_timer *t) {
    struct session *s = container_of(t, struct session, pace.timer);
    s->pace.began = s->host->loop->now;
    s->pace.left = ATTACH_PACE_BYTES;
    attach_resume(s);
}

void attach_pace_init(struct session *s) {
    s->pace = (struct attach_pace){.timer.fn = attach_on_pace};
}

static size_t attach_count(const struct list *head) {
    size_t n = 0;
    list_for_each(it, head) {
        n++;
    }
    return n;
}

/* Lets a view send, within the turns of its viewer. */
static void attach_go_on(struct attach *a) {
    struct session *s = a->viewer;
    if (!attach_turn(s))
        return;
    attach_pump(a);
    attach_turn_over(s);
}

static void attach_on_start(struct loop_task *t) {
    attach_go_on(container_of(t, struct attach, start));
}

void attach_wake(struct process *p) {
    list_for_each(n, &p->views) {
        struct attach *a = list_entry(n, struct attach, node);
        if (!a->start.queued)
            attach_go_on(a);
    }
}

void attach_resume(struct session *s) {
    /* A view that fills the queue again is the last one next time. */
    for (size_t left = attach_count(&s->views); left > 0 && !s->peer->conn->high; left--) {
        struct attach *a = list_entry(list_first(&s->views), struct attach, view);
        list_remove(&a->view);
        list_append(&s->views, &a->view);
        attach_pump(a);
    }
    attach_turn_over(s);
}

void attach_end_process(struct process *p) {
    for (struct list *n; (n = list_first(&p->views)) != NULL;) {
        struct attach *a = list_entry(n, struct attach, node);
        /* What a console has not seen because of its turns, it gets now. */
        while (a->viewer->console && !a->viewer->peer->conn->high && attach_step(a))
            ;
        if (a->seen < p->proc.closed_seq || p->proc.closed_seq == 0 || !a->viewer->console)
            notify_event(attach_to(a), p, "process/detached", (struct str){NULL, 0});
        attach_free(a);
    }
}

void attach_end_session(struct session *s) {
    for (struct list *n; (n = list_first(&s->views)) != NULL;)
        attach_free(list_entry(n, struct attach, view));
    loop_timer_del(s->host->loop, &s->pace.timer);
}

/* -- process/attach -- */

struct attach_params {
    struct str session_id, process_id;
    uint64_t after;
};

static const struct jsondec_field attach_fields[] = {
    PARAM(attach_params, session_id, "sessionId", JSONDEC_STR),
    PARAM(attach_params, process_id, "processId", JSONDEC_STR),
    PARAM_OPT(attach_params, after, "afterSeq", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct attach_struct = PARAM_STRUCT("AttachParams", attach_fields);

int attach_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct attach_params *)out = (struct attach_params){0};
    return jsondec(&attach_struct, params, out, e);
}

/* The process to watch, or NULL with e set. */
static struct process *attach_find(const struct session *viewer, const struct attach_params *in,
                                   struct err *e) {
    struct process_host *host = viewer->host;
    if (!host->settings.allow_attach && !viewer->console) {
        err_set(e, ERR_INVALID_REQUEST, "attach is not allowed on this server");
        return NULL;
    }
    struct hash_node *n = viewer->console ? NULL : hash_find(&host->sessions, in->session_id);
    const struct session *s = viewer->console ? session_shown(host, in->session_id)
                              : n != NULL     ? container_of(n, struct session, node)
                                              : NULL;
    if (s == NULL) {
        err_about(e, ERR_INVALID_REQUEST, "unknown session id ", in->session_id, "");
        return NULL;
    }
    struct process *p = process_find(s, in->process_id);
    if (p == NULL)
        err_about(e, ERR_INVALID_REQUEST, "unknown process id ", in->process_id, "");
    return p;
}

/* Whether the log must name the viewer: a page watches a process again and again. */
static bool attach_is_news(struct process *p, const struct session *viewer) {
    for (size_t i = 0; i < PROCESS_NOTED && viewer->viewer; i++) {
        if (p->noted[i] == viewer->serial)
            return false;
    }
    if (viewer->viewer)
        p->noted[p->noted_next++ % PROCESS_NOTED] = viewer->serial;
    return true;
}

enum rpc_outcome attach_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    const struct attach_params *in = params;
    struct process_host *host = ((struct session *)c->peer->user)->host;
    struct session *viewer = c->peer->user;
    struct process *p = attach_find(viewer, in, e);
    if (p == NULL)
        return RPC_ERROR;
    if (attach_count(&p->views) >= ATTACH_PER_PROCESS ||
        attach_count(&viewer->views) >= ATTACH_PER_SESSION) {
        err_set(e, ERR_INVALID_REQUEST,
                "too many viewers (limit %d per process, %d per connection)", ATTACH_PER_PROCESS,
                ATTACH_PER_SESSION);
        return RPC_ERROR;
    }
    struct attach *a = calloc(1, sizeof *a);
    if (a == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    *a = (struct attach){.process = p, .viewer = viewer, .start.fn = attach_on_start};
    a->seen = in->after;
    a->sizes = p->sizes.next;
    a->id = ++host->last_attach_id;
    list_append(&p->views, &a->node);
    list_append(&viewer->views, &a->view);
    loop_defer(host->loop, &a->start);
    if (attach_is_news(p, viewer))
        events_attach(c, p);
    int r = buf_putf(result, "{\"attachId\":%" PRIu64, a->id);
    if (r == 0 && viewer->console)
        r = buf_putz(result, ",\"sizes\":");
    if (r == 0 && viewer->console)
        r = sizes_put(&p->sizes, result);
    return rpc_done(result, r < 0 ? r : buf_putc(result, '}'));
}

/* -- process/detach -- */

struct detach_params {
    uint64_t attach_id;
};

static const struct jsondec_field detach_fields[] = {
    PARAM(detach_params, attach_id, "attachId", JSONDEC_U64),
};
static const struct jsondec_struct detach_struct = PARAM_STRUCT("DetachParams", detach_fields);

int attach_detach_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct detach_params *)out = (struct detach_params){0};
    return jsondec(&detach_struct, params, out, e);
}

enum rpc_outcome attach_detach_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)e;
    const struct detach_params *p = params;
    struct session *viewer = c->peer->user;
    list_for_each(n, &viewer->views) {
        struct attach *a = list_entry(n, struct attach, view);
        if (a->id == p->attach_id) {
            attach_free(a);
            break;
        }
    }
    return rpc_done_text(result, "{}");
}
