#include "client/procflow.h"

#include "client/procend.h"
#include "client/procstart.h"
#include "client/proctalk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define PROCFLOW_MARGIN ((uint64_t)64 << 10) /* the server stops this much before it is full */
#define PROCFLOW_SLACK ((size_t)128 << 10)   /* a held process stops within the window and this */
#define PROCFLOW_RETRY_MS 20

struct procflow_next_op {
    struct prochub_op o;
    const struct xs_event **out;
};

static void procflow_run(struct notice *n);
static void procflow_on_retry(struct loop_timer *t);
static void procflow_on_retry_now(struct loop_task *t);
static void procflow_page_done(struct calls_request *r, int err, const struct json_node *result,
                               struct xs_error *e);
static void procflow_details_done(struct calls_request *r, int err, const struct json_node *result,
                                  struct xs_error *e);

void procflow_init(struct xs_process *p, uint64_t after) {
    const struct xs_options *o = client_options(p->hub->client);
    int64_t window = xs_options_get_num(o, XS_OPT_WINDOW, 1 << 20);
    evqueue_init(&p->q, after, (size_t)MAX(window, 1) + PROCFLOW_SLACK);
    notice_init(&p->notice, procflow_run);
    p->exit = (struct xs_exit){.size = sizeof(p->exit), .code = -1};
    p->page.done = procflow_page_done;
    p->page.after = CALLS_AGAIN;
    p->details.done = procflow_details_done;
    p->details.after = CALLS_AGAIN;
    p->retry.fn = procflow_on_retry;
    p->retry_now.fn = procflow_on_retry_now;
    list_init(&p->retry_now.node);
}

void procflow_fini(struct xs_process *p) {
    if (p->holds)
        client_hold(p->hub->client, -1);
    notice_drop(&p->notice);
    loop_timer_del(client_loop(p->hub->client), &p->retry);
    loop_task_del(&p->retry_now);
    calls_drop(&p->page);
    calls_drop(&p->details);
    calls_drop(&p->attach);
    evqueue_fini(&p->q);
    xs_error_fini(&p->failure);
    free(p->current);
}

/* -- what is known -- */

bool procflow_has_consumer(const struct xs_process *p) {
    return p->talk != NULL || p->next != NULL || (p->fn != NULL && !p->paused);
}

void procflow_copy_exit(const struct xs_process *p, struct xs_exit *out) {
    size_t size = MIN(out->size, sizeof(p->exit));
    struct xs_exit e = p->exit;
    e.size = out->size;
    memcpy(out, &e, size);
}

static void procflow_set_exit(struct xs_process *p, const struct procmsg_exit *e) {
    struct xs_exit *x = &p->exit;
    if (p->exit_details)
        return;
    x->exited = 1;
    x->code = e->code;
    x->signal = e->signal;
    x->timed_out = e->timed_out || p->timed_out;
    x->sandbox_denied = e->sandbox_denied;
    if (!e->resources)
        return;
    x->user_ms = e->user_ms;
    x->system_ms = e->system_ms;
    x->wall_ms = e->wall_ms;
    x->peak_bytes = e->peak_bytes;
    p->exit_details = true;
}

static uint64_t procflow_retained(const struct xs_process *p) {
    const struct xs_info *i = xs_client_info(p->hub->client);
    int64_t retained = i != NULL ? i->retained_output_bytes : 0;
    return retained > (int64_t)PROCFLOW_MARGIN ? (uint64_t)retained - PROCFLOW_MARGIN : 0;
}

/* -- the end without CLOSED -- */

static void procflow_over(struct xs_process *p, enum prochub_state s) {
    prochub_set_state(p, s);
    procend_stop(p);
    calls_drop(&p->page);
    calls_drop(&p->attach);
}

void procflow_fail_with(struct xs_process *p, const struct xs_error *why) {
    if (p->state == PROCHUB_FAILED)
        return;
    xs_error_copy(&p->failure, why);
    procflow_over(p, PROCHUB_FAILED);
    calls_drop(&p->details);
    procflow_kick(p);
}

void procflow_fail(struct xs_process *p, int code, const char *fmt, ...) {
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    xs_error_set(&why, code, "%s", text);
    procflow_fail_with(p, &why);
}

/* -- acknowledgements -- */

static void procflow_again_soon(struct xs_process *p) {
    struct loop *l = client_loop(p->hub->client);
    /* Without memory for a timer in the next turn: to fail here would hand out events while one is
     * being handed out. */
    if (p->retry.pos == 0 && loop_timer_set(l, &p->retry, loop_ms(PROCFLOW_RETRY_MS)) < 0)
        loop_yield(l, &p->retry_now);
}

/* `hold`: 1, 0, or -1 to leave it as it is. 0, or a negative enum xs_err. */
static int procflow_send_ack(struct xs_process *p, int hold) {
    struct buf *b = NULL;
    struct params params;
    struct prochub_errand *e = prochub_errand_new(p->hub, "process/ack", &b);
    if (e == NULL)
        return XS_ENOMEM;
    prochub_params(&params, b, p->id);
    params_u64(&params, "seq", p->q.handed);
    if (hold >= 0)
        params_bool(&params, "hold", hold != 0);
    params_close(&params, '}');
    return prochub_errand_send(p->hub, e, params.r);
}

static void procflow_ack(struct xs_process *p) {
    uint64_t step = MIN(PROCHUB_ACK_STEP, procflow_retained(p) / 2);
    if (!p->held || p->overruns || p->state != PROCHUB_LIVE || p->unacked_events == 0 ||
        (p->unacked < step && p->unacked_events < PROCHUB_ACK_EVENTS))
        return;
    /* planted: lost-ack */
    if (procflow_send_ack(p, -1) < 0) {
        procflow_again_soon(p);
        return;
    }
    p->unacked = p->unacked_events = 0;
}

/* -- a full window -- */

/* Whether a blocking operation waits for what cannot happen while this process stands still. */
static bool procflow_blocks(const struct xs_process *p) {
    list_for_each(it, &p->ops) {
        const struct prochub_op *o = list_entry(it, struct prochub_op, node);
        if (o->stalls && o->op.call == NULL)
            return true;
    }
    return false;
}

static void procflow_overrun(struct xs_process *p) {
    uint64_t stop = p->held ? MIN((uint64_t)p->q.window, procflow_retained(p)) : p->q.window;
    bool full = p->q.ready_cost >= stop / 2;
    if (!p->overruns && p->state == PROCHUB_LIVE && full && !procflow_has_consumer(p) &&
        procflow_blocks(p)) {
        p->overruns = p->overran = true;
        if (p->held && procflow_send_ack(p, 0) < 0)
            p->overruns = false; /* tried again */
        if (!p->overruns)
            procflow_again_soon(p);
    } else if (p->overruns && procflow_has_consumer(p)) {
        if (p->held && p->state == PROCHUB_LIVE && procflow_send_ack(p, 1) < 0)
            procflow_again_soon(p);
        else
            p->overruns = false;
    }
}

static void procflow_hold(struct xs_process *p) {
    bool hold =
        evqueue_is_full(&p->q) && p->state == PROCHUB_LIVE && !p->held && !p->view && !p->overruns;
    if (hold != p->holds)
        client_hold(p->hub->client, hold ? 1 : -1);
    p->holds = hold;
}

/* -- process/read -- */

static void procflow_send_page(struct xs_process *p) {
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    struct params params;
    struct buf *b = calls_begin(p->hub->client, &p->page, "process/read");
    if (b == NULL) {
        procflow_again_soon(p);
        return;
    }
    p->page_after = p->q.last;
    p->page_held = p->held && !p->overran;
    p->page_limited = p->page_held || !p->q.cut;
    prochub_params(&params, b, p->id);
    params_u64(&params, "afterSeq", p->page_after);
    if (p->page_limited)
        params_u64(&params, "maxBytes", PROCHUB_PAGE_BYTES);
    params_close(&params, '}');
    if (calls_send(p->hub->client, &p->page, params.r, &why) < 0)
        procflow_again_soon(p);
    else
        evqueue_asked(&p->q);
}

static void procflow_fetch(struct xs_process *p) {
    if (p->state != PROCHUB_LIVE || !evqueue_wants_page(&p->q))
        return;
    if (p->view) {
        if (p->attach.client == NULL)
            procstart_attach(p);
    } else if (p->page.client == NULL) {
        procflow_send_page(p);
    }
}

/* EXITED came without its resources: process/list has them. */
static void procflow_ask_details(struct xs_process *p) {
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    if (p->details.client != NULL)
        return;
    struct buf *b = calls_begin(p->hub->client, &p->details, "process/list");
    int r = b != NULL ? calls_send(p->hub->client, &p->details, buf_putz(b, "{}"), &why) : -1;
    if (r < 0)
        procflow_details_done(&p->details, XS_EBUSY, NULL, NULL);
}

static void procflow_details_done(struct calls_request *r, int err, const struct json_node *result,
                                  struct xs_error *e) {
    struct xs_process *p = container_of(r, struct xs_process, details);
    struct procmsg_exit exit;
    (void)e;
    if (err == 0 && procmsg_list_find(result, str_of(p->id), &exit))
        procflow_set_exit(p, &exit);
    if (evqueue_release_exit(&p->q) < 0)
        procflow_fail(p, XS_ENOMEM, "process %s: out of memory for its events", p->id);
    else
        procflow_kick(p);
}

int procflow_page(struct xs_process *p, uint64_t after, bool limited,
                  const struct json_node *result) {
    struct procmsg_page m;
    int r = procmsg_page(result, &m);
    if (r < 0)
        return r;
    struct evqueue_page page = {.after = after,
                                .limited = limited,
                                .held = p->page_held,
                                .chunks = m.chunks,
                                .count = m.count,
                                .next_seq = m.next_seq,
                                .exited = m.exited,
                                .closed = m.closed};
    p->q.wants_details = client_can(p->hub->client, "processList") && !p->exit_details;
    r = evqueue_page(&p->q, &page);
    if (r == 0 && m.exited)
        procflow_set_exit(p, &m.exit);
    procmsg_page_fini(&m);
    if (r == 0 && p->q.exit_held)
        procflow_ask_details(p);
    return r;
}

/* The server has forgotten the process. What is missing of it is lost. */
static void procflow_forgotten(struct xs_process *p, const struct xs_error *e) {
    if (p->q.closed_seq == 0) {
        procflow_fail(p, XS_EGONE, "process %s: %s", p->id, xs_error_text(e));
        return;
    }
    struct evqueue_page page = {
        .after = p->q.last, .next_seq = p->q.closed_seq + 1, .exited = true, .closed = true};
    p->q.wants_details = false;
    if (evqueue_page(&p->q, &page) < 0)
        procflow_fail(p, XS_ENOMEM, "process %s: out of memory for its events", p->id);
    else
        procflow_kick(p);
}

static void procflow_page_done(struct calls_request *r, int err, const struct json_node *result,
                               struct xs_error *e) {
    struct xs_process *p = container_of(r, struct xs_process, page);
    if (err == XS_EREMOTE && xs_error_rpc(e) == ERR_INVALID_REQUEST) {
        procflow_forgotten(p, e);
        return;
    }
    if (err < 0) {
        procflow_fail_with(p, e);
        return;
    }
    err = procflow_page(p, p->page_after, p->page_limited, result);
    if (err == -EPROTO)
        procflow_fail(p, XS_EPROTO, "process %s: the server's process/read contradicts its events",
                      p->id);
    else if (err < 0)
        procflow_fail(p, XS_ENOMEM, "process %s: out of memory for its events", p->id);
    else
        procflow_kick(p);
}

void procflow_resumed(struct xs_process *p) {
    p->held = client_can(p->hub->client, "processAck");
    if (p->held && p->overruns && procflow_send_ack(p, 0) < 0)
        procflow_again_soon(p);
    calls_drop(&p->page);
    if (p->q.closed_queued)
        return;
    evqueue_cut(&p->q);
    procflow_send_page(p);
}

/* -- notifications -- */

/* Numbers that a view has lost. */
static int procflow_gap(struct xs_process *p, const struct procmsg_note *n) {
    struct evqueue_page page = {.after = p->q.last, .limited = true, .next_seq = n->to + 1};
    if (n->seq > p->q.last + 1)
        return -EPROTO;
    return n->to > p->q.last ? evqueue_page(&p->q, &page) : 0;
}

int procflow_note(struct xs_process *p, const struct procmsg_note *n) {
    int r = 0;
    switch (n->type) {
    case PROCMSG_OTHER: return 0;
    case PROCMSG_OUTPUT: r = evqueue_output(&p->q, &n->chunk); break;
    case PROCMSG_EXITED:
        procflow_set_exit(p, &n->exit);
        r = evqueue_exited(&p->q, n->seq);
        break;
    case PROCMSG_CLOSED: r = evqueue_closed(&p->q, n->seq); break;
    case PROCMSG_GAP: r = procflow_gap(p, n); break;
    case PROCMSG_DETACHED:
        p->attached = false;
        procflow_fail(p, XS_EGONE, "process %s: the server ended the view", p->id);
        return 0;
    }
    if (r < 0)
        return r;
    procflow_kick(p);
    return 0;
}

/* -- handing out -- */

static void procflow_fill(struct xs_process *p, const struct evqueue_event *e) {
    static const enum xs_ev types[] = {[EVQUEUE_OUTPUT] = XS_EV_OUTPUT,
                                       [EVQUEUE_EXITED] = XS_EV_EXITED,
                                       [EVQUEUE_CLOSED] = XS_EV_CLOSED,
                                       [EVQUEUE_GAP] = XS_EV_GAP};
    p->event = (struct xs_event){.type = types[e->type], .seq = e->seq, .gap_to = e->to};
    if (e->type == EVQUEUE_OUTPUT) {
        p->event.stream = (enum xs_stream)e->stream;
        p->event.data = e->data;
        p->event.n = e->n;
        p->bytes[e->stream] += e->n;
    }
    if (e->type != EVQUEUE_EXITED && e->type != EVQUEUE_CLOSED)
        return;
    p->exited_told = true;
    p->closed_told = e->type == EVQUEUE_CLOSED;
    p->event_exit = p->exit;
    p->event_exit.exited = 1;
    p->event_exit.closed = p->closed_told;
    p->event.exit = &p->event_exit;
}

static void procflow_gap_fails(struct xs_process *p) {
    if (xs_options_get_num(client_options(p->hub->client), XS_OPT_GAP_FAILS, 0) == 0)
        return;
    if (!p->view && !p->exit.exited)
        prochub_kill(p->hub, p->id);
    evqueue_fini(&p->q);
    xs_error_set(&p->failure, XS_EGAP, "process %s: output %llu to %llu is lost", p->id,
                 (unsigned long long)p->event.seq, (unsigned long long)p->event.gap_to);
    procflow_over(p, PROCHUB_FAILED);
}

bool procflow_take(struct xs_process *p) {
    struct evqueue_event *e = evqueue_pop(&p->q);
    free(steal_ptr(&p->current));
    if (e == NULL) {
        if (p->state != PROCHUB_FAILED || p->failure_told)
            return false;
        p->failure_told = true;
        p->event = (struct xs_event){.type = XS_EV_FAILED, .text = xs_error_text(&p->failure)};
        p->event.seq = p->q.handed;
        return true;
    }
    p->current = e;
    procflow_fill(p, e);
    p->unacked += e->n;
    p->unacked_events++;
    procflow_ack(p);
    if (e->type == EVQUEUE_GAP)
        procflow_gap_fails(p);
    return true;
}

/* Whether procflow_take() has something. */
static bool procflow_has_event(const struct xs_process *p) {
    return !list_empty(&p->q.ready) || (p->state == PROCHUB_FAILED && !p->failure_told);
}

/* Nothing will follow what was handed out. */
static bool procflow_is_over(const struct xs_process *p) {
    return p->closed_told || p->failure_told;
}

static void procflow_serve_next(struct xs_process *p) {
    struct procflow_next_op *n = (struct procflow_next_op *)p->next;
    if (n == NULL)
        return;
    if (procflow_has_event(p)) {
        (void)procflow_take(p);
        *n->out = &p->event;
        op_finish(&n->o.op, 1);
    } else if (procflow_is_over(p)) {
        *n->out = NULL;
        op_finish(&n->o.op, 0);
    }
}

void procflow_kick(struct xs_process *p) {
    if (p->state == PROCHUB_STARTING)
        return;
    if (p->talk != NULL)
        proctalk_feed(p);
    else
        procflow_serve_next(p);
    if (p->q.closed_seq != 0)
        p->exit.closed = p->exit.exited = 1;
    if (p->state == PROCHUB_LIVE && p->q.closed_queued)
        procflow_over(p, PROCHUB_CLOSED);
    procflow_overrun(p);
    procflow_hold(p);
    procflow_fetch(p);
    if (p->fn != NULL && !p->paused && p->talk == NULL && procflow_has_event(p))
        notice_post(p->hub->client, &p->notice);
    prochub_check(p);
}

/* One event for the callback, which may free anything. */
static void procflow_run(struct notice *n) {
    struct xs_process *p = container_of(n, struct xs_process, notice);
    bool gone = false;
    if (p->fn == NULL || p->paused || p->talk != NULL || !procflow_take(p))
        return;
    procflow_kick(p);
    p->gone = &gone;
    int r = p->fn(p, &p->event, p->user);
    if (gone)
        return;
    p->gone = NULL;
    if (r == XS_PAUSE)
        p->paused = true;
    if (p->paused)
        notice_drop(&p->notice);
}

static void procflow_try_again(struct xs_process *p) {
    procflow_ack(p);
    procflow_kick(p);
}

static void procflow_on_retry(struct loop_timer *t) {
    procflow_try_again(container_of(t, struct xs_process, retry));
}

static void procflow_on_retry_now(struct loop_task *t) {
    procflow_try_again(container_of(t, struct xs_process, retry_now));
}

/* -- the consumer -- */

int procflow_next(struct xs_process *p, const struct xs_event **e, struct xs_call *k) {
    struct procflow_next_op *n;
    int r = prochub_op_new(p, k, sizeof(*n), prochub_op_end, &n);
    if (r < 0)
        return r;
    if (p->fn != NULL)
        return op_refuse(&n->o.op, XS_EINVAL, "next: the process has a callback for its events");
    if (p->next != NULL || p->talk != NULL)
        return op_refuse(&n->o.op, XS_EBUSY, "next: another call takes the events");
    n->out = e;
    p->next = &n->o;
    procflow_kick(p);
    return op_wait(&n->o.op);
}

void procflow_on_event(struct xs_process *p,
                       int (*fn)(struct xs_process *p, const struct xs_event *e, void *user),
                       void *user) {
    p->fn = fn;
    p->user = user;
    p->paused = false;
    if (fn == NULL)
        notice_drop(&p->notice);
    procflow_kick(p);
}

void procflow_unpause(struct xs_process *p) {
    p->paused = false;
    procflow_kick(p);
}
