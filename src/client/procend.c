#include "client/procend.h"

#include "client/procflow.h"

#include <errno.h>
#include <signal.h>

static void procend_on_grace(struct loop_timer *t) {
    struct xs_process *p = container_of(t, struct xs_process, grace);
    prochub_kill(p->hub, p->id);
}

/* SIGINT, and later SIGKILL: what a server without graceful ends can do. 0 or -ENOMEM. */
static int procend_grace(struct xs_process *p, uint64_t ms) {
    return loop_timer_set(client_loop(p->hub->client), &p->grace, loop_ms(ms));
}

static void procend_interrupt(struct xs_process *p) {
    struct buf *b = NULL;
    struct params params;
    struct prochub_errand *e = prochub_errand_new(p->hub, "process/signal", &b);
    if (e == NULL)
        return;
    e->request.after = CALLS_LOST;
    prochub_params(&params, b, p->id);
    params_strz(&params, "signal", "interrupt");
    params_close(&params, '}');
    (void)prochub_errand_send(p->hub, e, params.r);
}

static void procend_on_timeout(struct loop_timer *t) {
    struct xs_process *p = container_of(t, struct xs_process, timeout);
    if (p->exit.exited)
        return;
    p->timed_out = true;
    procend_interrupt(p);
    if (procend_grace(p, PROCHUB_GRACE_MS) < 0)
        prochub_kill(p->hub, p->id);
}

void procend_init(struct xs_process *p) {
    p->timeout.fn = procend_on_timeout;
    p->grace.fn = procend_on_grace;
}

void procend_stop(struct xs_process *p) {
    loop_timer_del(client_loop(p->hub->client), &p->timeout);
    loop_timer_del(client_loop(p->hub->client), &p->grace);
}

void procend_fini(struct xs_process *p) {
    procend_stop(p);
}

int procend_limit(struct xs_process *p, uint64_t ms) {
    return loop_timer_set(client_loop(p->hub->client), &p->timeout, loop_ms(ms));
}

/* -- the calls: one request each -- */

static void procend_done(struct calls_request *r, int err, const struct json_node *result,
                         struct xs_error *e) {
    struct prochub_op *o = container_of(r, struct prochub_op, request);
    if (err < 0) {
        op_fail_with(&o->op, e);
        return;
    }
    const struct json_node *running =
        result->type == JSON_OBJECT ? json_get(result, "running") : NULL;
    op_finish(&o->op, running != NULL && running->type == JSON_TRUE ? 1 : 0);
}

/* An operation with its request begun, or a negative enum xs_err. */
static int procend_begin(struct xs_process *p, const char *method, struct xs_call *k,
                         struct prochub_op **out, struct params *params) {
    struct prochub_op *o;
    int r = prochub_op_new(p, k, sizeof(*o), prochub_op_end, &o);
    if (r < 0)
        return r;
    if (p->view)
        return op_refuse(&o->op, XS_EINVAL, "%s: a view only looks", method);
    if (p->state == PROCHUB_FAILED) {
        xs_error_copy(&o->op.error, &p->failure);
        return op_refused(&o->op);
    }
    o->request.done = procend_done;
    o->request.after = CALLS_AGAIN;
    struct buf *b = calls_begin(p->hub->client, &o->request, method);
    if (b == NULL)
        return op_refuse(&o->op, XS_ENOMEM, "%s: out of memory", method);
    prochub_params(params, b, p->id);
    *out = o;
    return 0;
}

static int procend_send(struct prochub_op *o, struct params *params) {
    params_close(params, '}');
    if (calls_send(o->op.client, &o->request, params->r, &o->op.error) < 0)
        return op_refused(&o->op);
    return op_wait(&o->op);
}

/* Whether the server takes the word. */
static bool procend_can_signal(const struct xs_process *p, const char *word) {
    const struct json_node *words = client_capability(p->hub->client, "processSignals");
    if (str_eqz(str_of(word), "interrupt"))
        return true;
    if (words == NULL || words->type != JSON_ARRAY)
        return false;
    json_for_each(v, words) {
        if (v->type == JSON_STRING && str_eqz(json_str(v), word))
            return true;
    }
    return false;
}

int procend_call_signal(struct xs_process *p, int signo, struct xs_call *k) {
    struct prochub_op *o;
    struct params params;
    const char *word = procmsg_signal_word(signo);
    int r = procend_begin(p, "process/signal", k, &o, &params);
    if (r < 0)
        return r;
    if (signo < 1 || signo > SIGRTMAX)
        return op_refuse(&o->op, XS_EINVAL, "signal: %d is no signal", signo);
    if (word == NULL || !procend_can_signal(p, word))
        return op_refuse(&o->op, XS_ENOTSUP, "signal: the server cannot send signal %d", signo);
    o->request.after = CALLS_LOST;
    params_strz(&params, "signal", word);
    return procend_send(o, &params);
}

int procend_call_resize(struct xs_process *p, unsigned rows, unsigned cols, struct xs_call *k) {
    struct prochub_op *o;
    struct params params;
    int r = procend_begin(p, "process/resize", k, &o, &params);
    if (r < 0)
        return r;
    if (rows < 1 || rows > 65535 || cols < 1 || cols > 65535)
        return op_refuse(&o->op, XS_EINVAL, "resize: rows and cols are 1 to 65535");
    if (!client_can(p->hub->client, "processResize"))
        return op_refuse(&o->op, XS_ENOTSUP, "resize: the server cannot");
    params_open(&params, "size", '{');
    params_u64(&params, "rows", rows);
    params_u64(&params, "cols", cols);
    params_close(&params, '}');
    return procend_send(o, &params);
}

/* The fallback: an interrupt now, terminate when the time is over. */
static int procend_terminate_here(struct xs_process *p, int64_t grace_ms, struct xs_call *k) {
    struct prochub_op *o;
    struct params params;
    int r = procend_begin(p, "process/signal", k, &o, &params);
    if (r < 0)
        return r;
    bool runs = p->state == PROCHUB_LIVE && !p->exit.exited;
    if (!runs) {
        op_finish(&o->op, 0);
        return op_wait(&o->op);
    }
    if (procend_grace(p, (uint64_t)grace_ms) < 0)
        return op_refuse(&o->op, XS_ENOMEM, "terminate: out of memory");
    o->request.after = CALLS_LOST;
    params_strz(&params, "signal", "interrupt");
    return procend_send(o, &params);
}

int procend_call_terminate(struct xs_process *p, int64_t grace_ms, struct xs_call *k) {
    struct prochub_op *o;
    struct params params;
    if (grace_ms > 0 && !client_can(p->hub->client, "processTerminateModes"))
        return procend_terminate_here(p, grace_ms, k);
    int r = procend_begin(p, "process/terminate", k, &o, &params);
    if (r < 0)
        return r;
    if (grace_ms < 0)
        return op_refuse(&o->op, XS_EINVAL, "terminate: a negative time");
    o->request.urgent = true;
    if (grace_ms > 0) {
        params_open(&params, "mode", '{');
        params_strz(&params, "type", "graceful");
        params_i64(&params, "timeoutMs", grace_ms);
        params_close(&params, '}');
    }
    return procend_send(o, &params);
}
