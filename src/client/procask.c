#include "client/procask.h"

#include "client/headtail.h"
#include "client/procflow.h"
#include "client/procsnap.h"
#include "json/base64.h"

#include <errno.h>

#define PROCASK_LIST_MAX ((size_t)4 << 20) /* bytes of a list that is made here */

/* -- wait -- */

struct procask_wait_op {
    struct prochub_op o;
    bool until_closed;
    struct xs_exit *out;
    struct loop_timer limit;
};

static void procask_wait_end(struct op *op) {
    loop_timer_del(client_loop(op->client), &((struct procask_wait_op *)op)->limit);
    prochub_op_end(op);
}

/* A consumer that takes events gets them before the wait ends; one that does not is not waited for.
 */
static bool procask_has_ended(const struct xs_process *p, bool until_closed) {
    bool follows = p->talk != NULL || (p->fn != NULL && !p->paused);
    if (until_closed)
        return follows ? p->closed_told : p->q.closed_seq != 0 && !p->q.exit_held;
    if (!p->exit.exited || p->q.exit_held)
        return false;
    return !follows || p->exited_told;
}

static void procask_wait_check(struct prochub_op *o) {
    struct procask_wait_op *w = (struct procask_wait_op *)o;
    struct xs_process *p = o->p;
    if (procask_has_ended(p, w->until_closed)) {
        if (w->out != NULL)
            procflow_copy_exit(p, w->out);
        op_finish(&o->op, 0);
    } else if (p->state == PROCHUB_FAILED) {
        xs_error_copy(&o->op.error, &p->failure);
        op_finish(&o->op, p->failure.code);
    }
}

static void procask_on_limit(struct loop_timer *t) {
    struct procask_wait_op *w = container_of(t, struct procask_wait_op, limit);
    op_fail(&w->o.op, XS_ETIMEOUT, "wait: the process has not ended in time");
}

int procask_wait(struct xs_process *p, bool until_closed, int64_t ms, struct xs_exit *e,
                 struct xs_call *k) {
    struct procask_wait_op *w;
    int r = prochub_op_new(p, k, sizeof(*w), procask_wait_end, &w);
    if (r < 0)
        return r;
    w->until_closed = until_closed;
    w->out = e;
    w->limit.fn = procask_on_limit;
    w->o.check = procask_wait_check;
    w->o.stalls = true;
    if (ms >= 0 &&
        loop_timer_set(client_loop(p->hub->client), &w->limit, loop_ms((uint64_t)ms)) < 0)
        return op_refuse(&w->o.op, XS_ENOMEM, "wait: out of memory");
    procflow_kick(p);
    return op_wait(&w->o.op);
}

/* -- answers as they are -- */

struct procask_text_op {
    struct prochub_op o;
    struct xs_bytes *out;
};

static void procask_text_done(struct calls_request *r, int err, const struct json_node *result,
                              struct xs_error *e) {
    struct procask_text_op *t = container_of(r, struct procask_text_op, o.request);
    if (err < 0)
        op_fail_with(&t->o.op, e);
    else if (calls_bytes(t->out, result) < 0)
        op_fail(&t->o.op, XS_ENOMEM, "out of memory");
    else
        op_finish(&t->o.op, 0);
}

int procask_read(struct xs_process *p, uint64_t after, uint64_t max, uint64_t wait_ms,
                 struct xs_bytes *json, struct xs_call *k) {
    struct procask_text_op *t;
    struct params params;
    int r = prochub_op_new(p, k, sizeof(*t), prochub_op_end, &t);
    if (r < 0)
        return r;
    if (p->view)
        return op_refuse(&t->o.op, XS_EINVAL, "read: a view only looks");
    t->out = json;
    t->o.request.done = procask_text_done;
    t->o.request.after = CALLS_AGAIN;
    t->o.request.patient = wait_ms > 0;
    struct buf *b = calls_begin(p->hub->client, &t->o.request, "process/read");
    if (b == NULL)
        return op_refuse(&t->o.op, XS_ENOMEM, "read: out of memory");
    prochub_params(&params, b, p->id);
    params_u64(&params, "afterSeq", after);
    if (max > 0)
        params_u64(&params, "maxBytes", max);
    if (wait_ms > 0)
        params_u64(&params, "waitMs", wait_ms);
    params_close(&params, '}');
    if (calls_send(p->hub->client, &t->o.request, params.r, &t->o.op.error) < 0)
        return op_refused(&t->o.op);
    return op_wait(&t->o.op);
}

/* What this client knows, in the protocol's shape. */
static int procask_list_here(struct xs_client *c, struct xs_bytes *json) {
    struct processes *hub = prochub_get(c);
    _cleanup_buf_ struct buf b = BUF_INIT(PROCASK_LIST_MAX);
    struct params params = {.b = &b};
    if (hub == NULL)
        return XS_ENOMEM;
    params_open(&params, NULL, '{');
    params_open(&params, "processes", '[');
    list_for_each(it, &hub->all) {
        const struct xs_process *p = list_entry(it, struct xs_process, node);
        if (p->view)
            continue;
        params_open(&params, NULL, '{');
        params_strz(&params, "processId", p->id);
        params_strz(&params, "state",
                    p->state == PROCHUB_STARTING ? "starting"
                    : p->exit.closed             ? "closed"
                    : p->exit.exited             ? "exited"
                                                 : "running");
        if (p->exit.exited)
            params_i64(&params, "exitCode", p->exit.code);
        else
            params_raw(&params, "exitCode", STR_LIT("null"));
        params_close(&params, '}');
    }
    params_close(&params, ']');
    params_close(&params, '}');
    if (params.r < 0 || buf_putc(&b, '\0') < 0)
        return XS_ENOMEM;
    json->n = b.len - 1;
    json->data = steal_ptr(&b.p);
    b.len = b.cap = 0;
    return 0;
}

int procask_list(struct xs_client *c, struct xs_bytes *json, struct xs_call *k) {
    struct procask_text_op *t;
    int r = op_new(c, k, sizeof(*t), prochub_op_end, &t);
    if (r < 0)
        return r;
    t->out = json;
    if (xs_client_info(c) != NULL && !client_can(c, "processList")) {
        if (procask_list_here(c, json) < 0)
            return op_refuse(&t->o.op, XS_ENOMEM, "list: out of memory");
        op_finish(&t->o.op, 0);
        return op_wait(&t->o.op);
    }
    t->o.request.done = procask_text_done;
    t->o.request.after = CALLS_AGAIN;
    struct buf *b = calls_begin(c, &t->o.request, "process/list");
    int built = b != NULL ? buf_putz(b, "{}") : -ENOMEM;
    if (calls_send(c, &t->o.request, built, &t->o.op.error) < 0)
        return op_refused(&t->o.op);
    return op_wait(&t->o.op);
}

/* -- snapshot -- */

struct procask_snapshot_op {
    struct prochub_op o;
    size_t max;
    struct xs_snapshot *out;
};

static void procask_exit(const struct procmsg_exit *m, bool exited, bool closed,
                         struct xs_exit *e) {
    *e = (struct xs_exit){.size = sizeof(*e), .exited = exited, .closed = closed, .code = -1};
    if (!exited)
        return;
    e->code = m->code;
    e->signal = m->signal;
    e->timed_out = m->timed_out;
    e->sandbox_denied = m->sandbox_denied;
    e->user_ms = m->user_ms;
    e->system_ms = m->system_ms;
    e->wall_ms = m->wall_ms;
    e->peak_bytes = m->peak_bytes;
}

static int procask_part(const struct procmsg_part *from, struct procsnap_part *to, char **memory) {
    _cleanup_err_ struct err why = ERR_INIT;
    *memory = malloc(base64_decoded_max(from->base64.n));
    if (*memory == NULL)
        return XS_ENOMEM;
    ssize_t n = base64_decode(*memory, from->base64.p, from->base64.n, &why);
    if (n < 0 || from->head > (uint64_t)n || from->tail != (uint64_t)n - from->head ||
        from->total < (uint64_t)n || from->omitted != from->total - (uint64_t)n)
        return XS_EPROTO;
    *to = (struct procsnap_part){.head = (size_t)from->head,
                                 .tail = (size_t)from->tail,
                                 .total = from->total,
                                 .data = *memory};
    return 0;
}

/* The answer of process/snapshot. */
static int procask_from_server(struct procask_snapshot_op *s, const struct json_node *result) {
    struct xs_process *p = s->o.p;
    struct procmsg_snapshot m;
    struct procsnap_part parts[EVQUEUE_STREAMS];
    char *memory[EVQUEUE_STREAMS] = {NULL};
    struct xs_exit exit;
    int r = procmsg_snapshot(result, &m) < 0 ? XS_EPROTO : 0;
    for (size_t i = 0; r == 0 && i < EVQUEUE_STREAMS; i++) {
        r = procask_part(&m.parts[i], &parts[i], &memory[i]);
        parts[i].present = r == 0 && (m.parts[i].total > 0 || (i == EVQUEUE_PTY) == p->tty);
    }
    if (r == 0) {
        procask_exit(&m.exit, m.exited, m.closed, &exit);
        bool known = p->exit.exited && p->exit_details;
        r = procsnap_make(s->out, parts, known ? &p->exit : &exit);
    }
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++)
        free(memory[i]);
    return r;
}

static void procask_copy(const void *from, char *dst) {
    headtail_copy(from, dst);
}

/* An answer of process/read: all that the server retains is the end of its output. */
static int procask_from_read(struct procask_snapshot_op *s, const struct json_node *result) {
    struct xs_process *p = s->o.p;
    struct procmsg_page m;
    struct headtail streams[EVQUEUE_STREAMS];
    struct procsnap_part parts[EVQUEUE_STREAMS] = {{0}};
    struct xs_exit exit;
    int r = procmsg_page(result, &m);
    if (r < 0)
        return r == -ENOMEM ? XS_ENOMEM : XS_EPROTO;
    bool whole = m.count == 0 || m.chunks[0].seq == 1;
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++) {
        headtail_init(&streams[i], s->max);
        if (!whole) {
            streams[i].tail_max = s->max;
            streams[i].head_max = 0;
        }
    }
    for (size_t i = 0; r == 0 && i < m.count; i++) {
        const struct evqueue_chunk *c = &m.chunks[i];
        _cleanup_free_ char *data = malloc(base64_decoded_max(c->base64.n));
        _cleanup_err_ struct err why = ERR_INIT;
        ssize_t n = data != NULL ? base64_decode(data, c->base64.p, c->base64.n, &why) : -ENOMEM;
        if (n < 0)
            r = n == -ENOMEM ? XS_ENOMEM : XS_EPROTO;
        else if (headtail_put(&streams[c->stream], data, (size_t)n) < 0)
            r = XS_ENOMEM;
    }
    for (size_t i = 0; r == 0 && i < EVQUEUE_STREAMS; i++) {
        struct headtail *h = &streams[i];
        parts[i] = (struct procsnap_part){
            .present = h->total > 0 || (i == EVQUEUE_PTY) == p->tty,
            .head = h->head_len,
            .tail = h->tail_len,
            .total = MAX(h->total, whole ? 0 : p->bytes[i]),
            .data = h,
            .copy = procask_copy,
        };
    }
    procask_exit(&m.exit, m.exited, m.closed, &exit);
    if (r == 0)
        r = procsnap_make(s->out, parts, p->exit.exited ? &p->exit : &exit);
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++)
        headtail_fini(&streams[i]);
    procmsg_page_fini(&m);
    return r;
}

static void procask_snapshot_done(struct calls_request *r, int err, const struct json_node *result,
                                  struct xs_error *e) {
    struct procask_snapshot_op *s = container_of(r, struct procask_snapshot_op, o.request);
    if (err < 0) {
        op_fail_with(&s->o.op, e);
        return;
    }
    bool by_server = client_can(s->o.op.client, "processSnapshot");
    err = by_server ? procask_from_server(s, result) : procask_from_read(s, result);
    if (err < 0)
        op_fail(&s->o.op, err, "snapshot: %s",
                err == XS_ENOMEM ? "out of memory" : "the answer is malformed");
    else
        op_finish(&s->o.op, 0);
}

int procask_snapshot(struct xs_process *p, size_t max, struct xs_snapshot *out, struct xs_call *k) {
    struct procask_snapshot_op *s;
    struct params params;
    bool by_server = client_can(p->hub->client, "processSnapshot");
    int r = prochub_op_new(p, k, sizeof(*s), prochub_op_end, &s);
    if (r < 0)
        return r;
    if (p->view)
        return op_refuse(&s->o.op, XS_EINVAL, "snapshot: a view only looks");
    s->max = max;
    s->out = out;
    s->o.request.done = procask_snapshot_done;
    s->o.request.after = CALLS_AGAIN;
    struct buf *b =
        calls_begin(p->hub->client, &s->o.request, by_server ? "process/snapshot" : "process/read");
    if (b == NULL)
        return op_refuse(&s->o.op, XS_ENOMEM, "snapshot: out of memory");
    prochub_params(&params, b, p->id);
    if (by_server)
        params_u64(&params, "maxBytes", max);
    params_close(&params, '}');
    if (calls_send(p->hub->client, &s->o.request, params.r, &s->o.op.error) < 0)
        return op_refused(&s->o.op);
    return op_wait(&s->o.op);
}
