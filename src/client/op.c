#include "client/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void op_on_notice(struct notice *n);
static void op_on_deadline(struct loop_timer *t);

/* -- the beginning -- */

/* Why no operation can begin now, or 0. */
static int op_check(struct xs_client *c, const struct xs_call *k) {
    if (k == NULL && c->in_callback)
        return client_error(c, XS_EBUSY, "a blocking call inside a callback");
    if (c->state == XS_STATE_FAILED || c->state == XS_STATE_CLOSED)
        return xs_error_copy(&c->error, &c->failure);
    return 0;
}

static int op_make(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
                   void *out) {
    struct op *op = calloc(1, size);
    if (op == NULL)
        return client_error(c, XS_ENOMEM, "out of memory");
    op->client = c;
    op->call = k;
    op->end = end;
    notice_init(&op->notice, op_on_notice);
    op->deadline.fn = op_on_deadline;
    list_append(&c->ops, &op->node);
    if (k != NULL)
        memset(k->priv, 0, sizeof k->priv);
    if (k != NULL)
        k->priv[0] = op;
    *(struct op **)out = op;
    return 0;
}

int op_new_always(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
                  void *out) {
    client_enter(c);
    return op_make(c, k, size, end, out);
}

int op_new_early(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
                 void *out) {
    client_enter(c);
    int r = op_check(c, k);
    return r < 0 ? r : op_make(c, k, size, end, out);
}

int op_new(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
           void *out) {
    client_enter(c);
    int r = op_check(c, k);
    if (r == 0 && c->state == XS_STATE_NEW)
        r = client_error(c, XS_ECONNECT, "not connected yet");
    r = r < 0 ? r : op_make(c, k, size, end, out);
    struct op *op = r < 0 ? NULL : *(struct op **)out;
    return r == 0 && op_limit(op) < 0 ? op_refuse(op, XS_ENOMEM, "out of memory") : r;
}

static void op_free(struct op *op) {
    notice_drop(&op->notice);
    loop_timer_del(&op->client->loop, &op->deadline);
    list_remove(&op->node);
    xs_error_fini(&op->error);
    free(op);
}

/* -- the end -- */

/* While it waits, the socket is read: a full window of another process must not hold its answer. */
static void op_block(struct op *op) {
    op->blocks = true;
    op->client->blocked++;
    client_balance(op->client);
}

static void op_unblock(struct op *op) {
    if (!op->blocks)
        return;
    op->blocks = false;
    op->client->blocked--;
    client_balance(op->client);
}

void op_finish(struct op *op, int result) {
    if (op->finished)
        return;
    op->finished = true;
    op->result = result;
    op_unblock(op);
    loop_timer_del(&op->client->loop, &op->deadline);
    if (op->end != NULL)
        op->end(op);
    if (op->call != NULL)
        notice_post(op->client, &op->notice);
}

void op_fail(struct op *op, int code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    if (op->finished)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    op_finish(op, xs_error_set(&op->error, code, "%s", text));
}

void op_fail_with(struct op *op, struct xs_error *e) {
    if (!op->finished)
        op_finish(op, xs_error_move(&op->error, e));
}

static void op_on_deadline(struct loop_timer *t) {
    struct op *op = container_of(t, struct op, deadline);
    struct xs_client *c = op->client;
    bool ends = op == c->ending;
    op_fail(op, XS_ETIMEOUT, "the call took longer than %lld ms",
            (long long)xs_options_get_num(c->options, XS_OPT_CALL_MS, 0));
    if (ends)
        resume_close(c); /* a close without a goodbye */
}

int op_limit(struct op *op) {
    struct xs_client *c = op->client;
    int64_t limit = xs_options_get_num(c->options, XS_OPT_CALL_MS, 0);
    if (limit <= 0)
        return 0;
    return loop_timer_set(&c->loop, &op->deadline, loop_ms((uint64_t)limit)) < 0 ? XS_ENOMEM : 0;
}

static void op_on_notice(struct notice *n) {
    struct op *op = container_of(n, struct op, notice);
    struct xs_call *k = op->call;
    int result = op->result;
    if (result < 0)
        xs_error_move(&op->client->error, &op->error);
    k->priv[0] = NULL;
    op_free(op);
    if (k->done != NULL)
        k->done(k, result);
}

int op_refused(struct op *op) {
    struct xs_client *c = op->client;
    int code = xs_error_move(&c->error, &op->error);
    op->finished = true;
    if (op->end != NULL)
        op->end(op);
    if (op->call != NULL)
        op->call->priv[0] = NULL;
    op_free(op);
    return code;
}

int op_refuse(struct op *op, int code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    xs_error_set(&op->error, code, "%s", text);
    return op_refused(op);
}

int op_wait(struct op *op) {
    struct xs_client *c = op->client;
    if (op->call != NULL) {
        client_leave(c);
        return 0;
    }
    int gone = 0;
    if (!op->finished)
        op_block(op);
    while (!op->finished && gone == 0)
        gone = client_step(c, UINT64_MAX);
    if (gone != 0) {
        /* A callback freed the client, and with it whatever the result names. */
        xs_error_fini(&op->error);
        free(op); /* op_end_all() has taken it out of everything */
        return XS_ECANCELED;
    }
    int result = op->result;
    if (result < 0)
        xs_error_move(&c->error, &op->error);
    op_free(op);
    client_leave(c);
    return result;
}

void op_end_all(struct xs_client *c) {
    for (struct list *n; (n = list_first(&c->ops)) != NULL;) {
        struct op *op = list_entry(n, struct op, node);
        bool was_finished = op->finished;
        op->finished = true;
        if (!was_finished)
            op->result = XS_ECANCELED;
        if (!was_finished && op->end != NULL)
            op->end(op);
        if (op->call != NULL) {
            op->call->priv[0] = NULL;
            op_free(op);
            continue;
        }
        loop_timer_del(&c->loop, &op->deadline);
        list_remove(&op->node); /* op_wait() frees it */
    }
}
