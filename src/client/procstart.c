#include "client/procstart.h"

#include "client/procend.h"
#include "client/procflow.h"
#include "client/startparams.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROCSTART_ASK_MS 50      /* between two questions whether a start has been decided */
#define PROCSTART_STUCK_MS 10000 /* a reference's start whose connection is gone may never be */
#define PROCSTART_MARGIN_MS 2000 /* of the time for which a closed process is kept */

/* Start or adopt. */
struct procstart_op {
    struct prochub_op o; /* o.p is not the caller's yet; request: start, or process/read */
    struct xs_process **out;
    bool done; /* the process is the caller's */
    bool adopts;
    bool sent;                  /* the process may exist */
    struct xs_options *options; /* owned: until the params are built */
    struct buf params;
    uint64_t timeout_ms;
    uint64_t sent_ms;  /* CLOCK_BOOTTIME when it was sent last */
    uint64_t asked_ms; /* when the server was asked first after a cut */
    unsigned sends;
    struct loop_timer ask;
    char what[256]; /* program and directory, for errors */
};

static struct procstart_op *procstart_of(struct calls_request *r) {
    return container_of(r, struct procstart_op, o.request);
}

static void procstart_end(struct op *op) {
    struct procstart_op *s = (struct procstart_op *)op;
    struct xs_process *p = s->o.p;
    bool kill = s->sent || calls_was_sent(&s->o.request);
    loop_timer_del(client_loop(op->client), &s->ask);
    xs_options_free(steal_ptr(&s->options));
    buf_fini(&s->params);
    prochub_op_end(op);
    if (s->done || p == NULL)
        return;
    if (kill && !s->adopts)
        prochub_kill(p->hub, p->id);
    prochub_process_free(p, XS_ECANCELED);
}

/* The process runs, or has run. */
static void procstart_finish(struct procstart_op *s) {
    struct xs_process *p = s->o.p;
    s->done = true;
    p->held = client_can(p->hub->client, "processAck");
    prochub_set_live(p);
    if (s->timeout_ms > 0 && procend_limit(p, s->timeout_ms) < 0)
        procflow_fail(p, XS_ENOMEM, "process %s: out of memory", p->id);
    *s->out = p;
    op_finish(&s->o.op, 0);
    procflow_kick(p);
}

/* -- a start whose answer is lost -- */

static void procstart_send(struct procstart_op *s);

static void procstart_page(struct procstart_op *s, const struct json_node *result) {
    struct xs_process *p = s->o.p;
    evqueue_asked(&p->q);
    int r = procflow_page(p, s->adopts ? p->q.handed : 0, false, result);
    if (r == -EPROTO)
        op_fail(&s->o.op, XS_EPROTO, "process %s: a malformed answer to process/read", p->id);
    else if (r < 0)
        op_fail(&s->o.op, XS_ENOMEM, "process %s: out of memory", p->id);
    else
        procstart_finish(s);
}

static bool procstart_says(const struct xs_error *e, const char *words) {
    return strstr(xs_error_text(e), words) != NULL;
}

/* The server does not know the id: the start has not happened, or so long ago that it is over. */
static void procstart_unknown(struct procstart_op *s) {
    uint64_t age = client_boottime_ms() - s->sent_ms;
    uint64_t kept = client_closed_retention_ms(s->o.op.client);
    if (age + PROCSTART_MARGIN_MS > kept) {
        op_fail(&s->o.op, XS_ELOST,
                "start: sent %llu ms ago and unknown now; it may have run and been forgotten",
                (unsigned long long)age);
        return;
    }
    procstart_send(s);
}

static void procstart_undecided(struct procstart_op *s) {
    struct xs_client *c = s->o.op.client;
    bool ours = client_can(c, "processTerminateModes");
    if (!ours && client_boottime_ms() - s->asked_ms > PROCSTART_STUCK_MS)
        op_fail(&s->o.op, XS_ELOST, "start: the server does not decide it after a lost connection");
    else if (loop_timer_set(client_loop(c), &s->ask, loop_ms(PROCSTART_ASK_MS)) < 0)
        op_fail(&s->o.op, XS_ENOMEM, "start: out of memory");
}

static void procstart_asked(struct calls_request *r, int err, const struct json_node *result,
                            struct xs_error *e) {
    struct procstart_op *s = procstart_of(r);
    bool refused = err == XS_EREMOTE && xs_error_rpc(e) == ERR_INVALID_REQUEST;
    if (err == 0)
        procstart_page(s, result);
    else if (refused && procstart_says(e, "is starting"))
        procstart_undecided(s);
    else if (refused && !s->adopts)
        procstart_unknown(s);
    else
        op_fail_with(&s->o.op, e);
}

static void procstart_ask(struct procstart_op *s) {
    struct params params;
    s->o.request.done = procstart_asked;
    s->o.request.after = CALLS_AGAIN;
    s->o.request.lost = NULL;
    struct buf *b = calls_begin(s->o.op.client, &s->o.request, "process/read");
    if (b == NULL) {
        op_fail(&s->o.op, XS_ENOMEM, "start: out of memory");
        return;
    }
    prochub_params(&params, b, s->o.p->id);
    params_u64(&params, "afterSeq", s->adopts ? s->o.p->q.handed : 0);
    params_close(&params, '}');
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (calls_send(s->o.op.client, &s->o.request, params.r, &e) < 0)
        op_fail_with(&s->o.op, &e);
}

static void procstart_on_ask(struct loop_timer *t) {
    procstart_ask(container_of(t, struct procstart_op, ask));
}

static void procstart_lost(struct calls_request *r) {
    struct procstart_op *s = procstart_of(r);
    s->sent = true;
    s->sent_ms = client_boottime_ms() - calls_age_ms(r);
    s->asked_ms = client_boottime_ms();
    procstart_ask(s);
}

/* -- the start itself -- */

/* The server's text does not name what it could not start. */
static void procstart_name(const struct procstart_op *s, struct xs_error *e) {
    static const char prefix[] = "process/start: ";
    const char *why = xs_error_text(e);
    if (strncmp(why, prefix, sizeof(prefix) - 1) == 0)
        why += sizeof(prefix) - 1;
    struct xs_error named = XS_ERROR_INIT;
    xs_error_set(&named, e->code, "start %s: %s", s->what, why);
    named.rpc = e->rpc;
    named.os = e->os;
    xs_error_move(e, &named);
}

static void procstart_done(struct calls_request *r, int err, const struct json_node *result,
                           struct xs_error *e) {
    struct procstart_op *s = procstart_of(r);
    (void)result;
    if (err == 0) {
        procstart_finish(s);
        return;
    }
    if (err == XS_EREMOTE && s->sends > 1 && procstart_says(e, "already exists")) {
        /* An earlier copy has arrived after all: nobody else uses this id. */
        procstart_ask(s);
        return;
    }
    if (err == XS_EREMOTE) {
        s->sent = false; /* it does not run: nothing is to be killed */
        procstart_name(s, e);
    }
    op_fail_with(&s->o.op, e);
}

static void procstart_send(struct procstart_op *s) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    s->o.request.done = procstart_done;
    s->o.request.after = CALLS_ASK;
    s->o.request.lost = procstart_lost;
    s->sends++;
    struct buf *b = calls_begin(s->o.op.client, &s->o.request, "process/start");
    int built = b != NULL ? buf_put(b, s->params.p, s->params.len) : -ENOMEM;
    if (calls_send(s->o.op.client, &s->o.request, built, &e) < 0)
        op_fail_with(&s->o.op, &e);
}

/* Builds the params: the server is known. 0, or a negative enum xs_err in op.error. */
static int procstart_build(struct procstart_op *s, const struct xs_options *o) {
    struct xs_client *c = s->o.op.client;
    struct startparams made;
    size_t words;
    const char *const *argv = xs_options_list(o, XS_OPT_ARGV, &words);
    const char *cwd = xs_options_get(o, XS_OPT_CWD, NULL);
    snprintf(s->what, sizeof(s->what), "%s%s%s", words > 0 ? argv[0] : "",
             cwd != NULL ? " in " : "", cwd != NULL ? cwd : "");
    s->params = BUF_INIT(CALLS_TEXT_MAX);
    int r = startparams_put(c, o, &s->params, &made, &s->o.op.error);
    if (r < 0)
        return r;
    struct processes *hub = prochub_get(c);
    struct xs_process *p = hub != NULL ? prochub_process_new(hub, made.process_id, 0) : NULL;
    if (p == NULL)
        return xs_error_set(&s->o.op.error, XS_ENOMEM, "start: out of memory");
    p->tty = made.tty;
    p->stdin_open = made.stdin_open;
    s->timeout_ms = made.timeout_ms;
    r = prochub_add(p);
    if (r < 0) {
        prochub_process_free(p, XS_ECANCELED);
        return xs_error_set(&s->o.op.error, r, "start: the process id is in use");
    }
    s->o.p = p;
    list_append(&p->ops, &s->o.node);
    return 0;
}

/* The server is known now: the answer to a request that changes nothing. */
static void procstart_ready(struct calls_request *r, int err, const struct json_node *result,
                            struct xs_error *e) {
    struct procstart_op *s = procstart_of(r);
    (void)result;
    if (err < 0 && err != XS_EREMOTE && err != XS_ENOTSUP) {
        op_fail_with(&s->o.op, e);
        return;
    }
    int built = procstart_build(s, s->options);
    if (built < 0)
        op_finish(&s->o.op, built);
    else
        procstart_send(s);
}

static int procstart_wait_ready(struct procstart_op *s, const struct xs_options *o) {
    s->options = xs_options_copy(o);
    s->o.request.done = procstart_ready;
    s->o.request.after = CALLS_AGAIN;
    struct buf *b = s->options != NULL
                        ? calls_begin(s->o.op.client, &s->o.request, "environment/status")
                        : NULL;
    if (b == NULL)
        return op_refuse(&s->o.op, XS_ENOMEM, "start: out of memory");
    if (calls_send(s->o.op.client, &s->o.request, buf_putz(b, "{}"), &s->o.op.error) < 0)
        return op_refused(&s->o.op);
    return op_wait(&s->o.op);
}

int procstart_start(struct xs_client *c, const struct xs_options *o, struct xs_process **out,
                    struct xs_call *k) {
    struct procstart_op *s;
    int r = op_new(c, k, sizeof(*s), procstart_end, &s);
    if (r < 0)
        return r;
    list_init(&s->o.node);
    s->out = out;
    s->ask.fn = procstart_on_ask;
    if (xs_client_info(c) == NULL)
        return procstart_wait_ready(s, o);
    if (procstart_build(s, o) < 0)
        return op_refused(&s->o.op);
    procstart_send(s);
    return op_wait(&s->o.op);
}

int procstart_adopt(struct xs_client *c, const char *id, uint64_t after, struct xs_process **out,
                    struct xs_call *k) {
    struct procstart_op *s;
    int r = op_new(c, k, sizeof(*s), procstart_end, &s);
    if (r < 0)
        return r;
    struct processes *hub = prochub_get(c);
    struct xs_process *p = hub != NULL ? prochub_process_new(hub, id, after) : NULL;
    list_init(&s->o.node);
    s->out = out;
    s->adopts = true;
    s->ask.fn = procstart_on_ask;
    if (p == NULL)
        return op_refuse(&s->o.op, XS_ENOMEM, "adopt: out of memory");
    p->tty = p->stdin_open = true; /* unknown: the server refuses what cannot be */
    p->overran = true;             /* nobody has acknowledged anything here */
    r = prochub_add(p);
    if (r < 0) {
        prochub_process_free(p, XS_ECANCELED);
        return op_refuse(&s->o.op, r, "adopt: this client has the process %s already", id);
    }
    s->o.p = p;
    list_append(&p->ops, &s->o.node);
    procstart_ask(s);
    return op_wait(&s->o.op);
}

/* -- views -- */

struct procstart_view_op {
    struct prochub_op o;
    struct xs_process **out;
    bool done;
};

static void procstart_view_end(struct op *op) {
    struct procstart_view_op *v = (struct procstart_view_op *)op;
    struct xs_process *p = v->o.p;
    prochub_op_end(op);
    if (v->done || p == NULL)
        return;
    procstart_detach(p);
    prochub_process_free(p, XS_ECANCELED);
}

void procstart_detach(struct xs_process *p) {
    struct buf *b = NULL;
    if (!p->attached)
        return;
    p->attached = false;
    struct prochub_errand *e = prochub_errand_new(p->hub, "process/detach", &b);
    if (e == NULL)
        return;
    e->request.after = CALLS_LOST; /* the view ends with its connection */
    (void)prochub_errand_send(p->hub, e,
                              buf_putf(b, "{\"attachId\":%llu}", (unsigned long long)p->attach_id));
}

/* The operation that made the view, while it waits. */
static struct procstart_view_op *procstart_view_op_of(struct xs_process *p) {
    if (p->state != PROCHUB_STARTING || list_empty(&p->ops))
        return NULL;
    return (struct procstart_view_op *)list_entry(list_first(&p->ops), struct prochub_op, node);
}

static void procstart_attached(struct calls_request *r, int err, const struct json_node *result,
                               struct xs_error *e) {
    struct xs_process *p = container_of(r, struct xs_process, attach);
    struct procstart_view_op *v = procstart_view_op_of(p);
    const struct json_node *id =
        err == 0 && result->type == JSON_OBJECT ? json_get(result, "attachId") : NULL;
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    if (err == 0 && (id == NULL || json_u64(id, &p->attach_id) < 0)) {
        err = xs_error_set(&why, XS_EPROTO, "view: the answer has no attachId");
        e = &why;
    }
    if (err < 0 && v != NULL) {
        op_fail_with(&v->o.op, e);
        return;
    }
    if (err < 0) {
        procflow_fail_with(p, e);
        return;
    }
    p->attached = true;
    evqueue_asked(&p->q);
    if (v != NULL) {
        v->done = true;
        *v->out = p;
        prochub_set_live(p);
        op_finish(&v->o.op, 0);
    }
    procflow_kick(p);
}

static int procstart_attach_send(struct xs_process *p, struct xs_error *e) {
    struct params params;
    p->attach.done = procstart_attached;
    p->attach.after = CALLS_AGAIN;
    struct buf *b = calls_begin(p->hub->client, &p->attach, "process/attach");
    if (b == NULL)
        return xs_error_set(e, XS_ENOMEM, "view: out of memory");
    prochub_params(&params, b, p->id);
    params_strz(&params, "sessionId", p->session);
    params_u64(&params, "afterSeq", p->q.last);
    params_close(&params, '}');
    return calls_send(p->hub->client, &p->attach, params.r, e);
}

void procstart_attach(struct xs_process *p) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    procstart_detach(p);
    if (procstart_attach_send(p, &e) < 0)
        procflow_fail_with(p, &e);
}

int procstart_view(struct xs_client *c, const char *session, const char *id, uint64_t after,
                   struct xs_process **out, struct xs_call *k) {
    struct procstart_view_op *v;
    int r = op_new(c, k, sizeof(*v), procstart_view_end, &v);
    if (r < 0)
        return r;
    list_init(&v->o.node);
    const struct xs_info *info = xs_client_info(c);
    if (info == NULL || !client_can(c, "processAttach"))
        return op_refuse(&v->o.op, XS_ENOTSUP, "view: the server does not allow it");
    struct processes *hub = prochub_get(c);
    struct xs_process *p = hub != NULL ? prochub_process_new(hub, id, after) : NULL;
    if (p == NULL)
        return op_refuse(&v->o.op, XS_ENOMEM, "view: out of memory");
    p->view = true;
    p->session = strdup(session != NULL ? session : info->session);
    v->o.p = p;
    v->out = out;
    list_append(&p->ops, &v->o.node);
    if (p->session == NULL || prochub_add(p) < 0)
        return op_refuse(&v->o.op, XS_ENOMEM, "view: out of memory");
    if (procstart_attach_send(p, &v->o.op.error) < 0)
        return op_refused(&v->o.op);
    return op_wait(&v->o.op);
}
