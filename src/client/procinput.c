#include "client/procinput.h"

#include "client/procflow.h"
#include "json/base64.h"

#include <errno.h>
#include <stdio.h>

#define PROCINPUT_FRAME ((size_t)4096) /* of a message around its Base64 */

/* One request. It outlives its write: what was sent once is repeated after a cut. */
struct procinput_piece {
    struct list node; /* in p->pieces */
    struct xs_process *p;
    struct procinput_write *write; /* NULL: dropped */
    struct calls_request request;
};

static void procinput_pump(struct xs_process *p);

static void procinput_on_room(struct calls_waiter *w) {
    procinput_pump(container_of(w, struct xs_process, input_waiter));
}

void procinput_init(struct xs_process *p) {
    list_init(&p->writes);
    list_init(&p->pieces);
    p->input_waiter.fn = procinput_on_room;
}

static void procinput_piece_free(struct procinput_piece *piece) {
    calls_drop(&piece->request);
    list_remove(&piece->node);
    piece->p->piece_count--;
    free(piece);
}

void procinput_fini(struct xs_process *p) {
    calls_stop_waiting(&p->input_waiter);
    list_for_each(it, &p->pieces)
        procinput_piece_free(list_entry(it, struct procinput_piece, node));
    list_for_each(it, &p->writes) {
        struct procinput_write *w = list_entry(it, struct procinput_write, node);
        list_remove(it);
        w->p = NULL;
    }
}

void procinput_drop(struct procinput_write *w) {
    if (w->node.next != NULL)
        list_remove(&w->node);
    if (w->p == NULL)
        return;
    list_for_each(it, &w->p->pieces) {
        struct procinput_piece *piece = list_entry(it, struct procinput_piece, node);
        if (piece->write == w)
            piece->write = NULL;
    }
    w->p = NULL;
}

/* Tells the owner, if nothing is left to be sent or answered. */
static void procinput_settle(struct procinput_write *w) {
    if (w->unanswered > 0 || (!w->failed && (w->at < w->n || w->close)))
        return;
    list_remove(&w->node);
    w->p = NULL;
    struct xs_error e = w->error;
    w->error = XS_ERROR_INIT;
    w->done(w, w->failed ? &e : NULL);
    xs_error_fini(&e);
}

/* The first error counts; nothing more of it is sent. */
static void procinput_fail(struct procinput_write *w, struct xs_error *e) {
    if (!w->failed)
        xs_error_move(&w->error, e);
    w->failed = true;
    list_remove(&w->node);
}

static int procinput_answer(const struct json_node *result, struct xs_error *e) {
    enum procmsg_status status;
    if (procmsg_status(result, &status) < 0)
        return xs_error_set(e, XS_EPROTO, "write: the answer has no known status");
    switch (status) {
    case PROCMSG_ACCEPTED: return 0;
    case PROCMSG_STDIN_CLOSED:
        return xs_error_set(e, XS_EREMOTE, "write: stdin of the process is closed");
    case PROCMSG_STARTING:
        return xs_error_set(e, XS_EREMOTE, "write: the process has not started yet");
    case PROCMSG_UNKNOWN: break;
    }
    return xs_error_set(e, XS_EGONE, "write: the server no longer knows the process");
}

static void procinput_done(struct calls_request *r, int err, const struct json_node *result,
                           struct xs_error *e) {
    struct procinput_piece *piece = container_of(r, struct procinput_piece, request);
    struct procinput_write *w = piece->write;
    struct xs_process *p = piece->p;
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    procinput_piece_free(piece);
    if (err == 0) {
        err = procinput_answer(result, &why);
        e = &why;
    }
    if (w != NULL) {
        w->unanswered--;
        if (err < 0)
            procinput_fail(w, e);
        procinput_settle(w);
    }
    procinput_pump(p);
}

/* Whether the end of input is a byte of the terminal, because the server has no method for it. */
static bool procinput_closes_by_byte(const struct xs_process *p) {
    return p->tty && !client_can(p->hub->client, "processCloseStdin");
}

static void procinput_params(struct params *params, struct buf *b, struct xs_process *p) {
    char id[48];
    /* planted: doubled-write-id */
    snprintf(id, sizeof(id), "%s-%llu", p->write_prefix, (unsigned long long)++p->write_number);
    prochub_params(params, b, p->id);
    params_strz(params, "writeId", id);
}

/* Whether this process alone can be held back by a full window: its answers then wait with it. */
static bool procinput_is_alone(const struct xs_process *p) {
    return p->node.prev == &p->hub->all && p->node.next == &p->hub->all;
}

/* Sends the next piece of w. 0, or a negative enum xs_err; XS_EBUSY: later. */
static int procinput_send(struct procinput_write *w, struct xs_error *e) {
    struct xs_process *p = w->p;
    size_t n = MIN(w->n - w->at, PROCHUB_INPUT_PIECE);
    bool close = w->at == w->n, byte = close && procinput_closes_by_byte(p);
    struct procinput_piece *piece = calloc(1, sizeof(*piece));
    if (piece == NULL)
        return xs_error_set(e, XS_ENOMEM, "write: out of memory");
    piece->p = p;
    piece->write = w;
    piece->request.done = procinput_done;
    piece->request.after = CALLS_AGAIN;
    piece->request.patient = procinput_is_alone(p);
    list_append(&p->pieces, &piece->node);
    p->piece_count++;
    struct params params = {.r = -ENOMEM};
    struct buf *b = calls_begin(p->hub->client, &piece->request,
                                close && !byte ? "process/closeStdin" : "process/write");
    if (b != NULL) {
        procinput_params(&params, b, p);
        if (byte)
            params_base64(&params, "chunk", "\x04", 1);
        else if (!close)
            params_base64(&params, "chunk", w->data + w->at, n);
        params_close(&params, '}');
    }
    int r = calls_send(p->hub->client, &piece->request, params.r, e);
    if (r < 0) {
        procinput_piece_free(piece);
        return r;
    }
    w->at += n;
    w->unanswered++;
    if (close)
        w->close = false;
    return 0;
}

static void procinput_pump(struct xs_process *p) {
    while (p->piece_count < PROCHUB_INPUT_MAX && !list_empty(&p->writes)) {
        struct procinput_write *w =
            list_entry(list_first(&p->writes), struct procinput_write, node);
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        if (calls_room(p->hub->client) <
            base64_encoded_len(PROCHUB_INPUT_PIECE) + PROCINPUT_FRAME) {
            calls_wait_room(p->hub->client, &p->input_waiter);
            return;
        }
        int r = procinput_send(w, &e);
        if (r == XS_EBUSY) {
            calls_wait_room(p->hub->client, &p->input_waiter);
            return;
        }
        if (r < 0) {
            procinput_fail(w, &e);
            procinput_settle(w);
        } else if (w->at == w->n && !w->close) {
            list_remove(&w->node); /* all is sent */
        }
    }
}

int procinput_put(struct xs_process *p, struct procinput_write *w, struct xs_error *e) {
    if (w->close && !p->tty && !client_can(p->hub->client, "processCloseStdin"))
        return xs_error_set(e, XS_ENOTSUP, "the server cannot close the stdin of a process");
    w->p = p;
    list_init(&w->node);
    list_append(&p->writes, &w->node);
    procinput_pump(p);
    return 0;
}

/* -- the calls -- */

struct procinput_op {
    struct prochub_op o;
    struct procinput_write write;
    char *copy; /* owned: the data of a call that does not block */
};

static void procinput_op_end(struct op *op) {
    struct procinput_op *i = (struct procinput_op *)op;
    procinput_drop(&i->write);
    xs_error_fini(&i->write.error);
    free(steal_ptr(&i->copy));
    prochub_op_end(op);
}

static void procinput_op_done(struct procinput_write *w, struct xs_error *e) {
    struct procinput_op *i = container_of(w, struct procinput_op, write);
    if (e != NULL)
        op_fail_with(&i->o.op, e);
    else
        op_finish(&i->o.op, 0);
}

/* Bytes that were queued by calls that do not block, and not sent yet. */
static size_t procinput_queued(const struct xs_process *p) {
    size_t n = 0;
    list_for_each(it, &p->writes) {
        const struct procinput_write *w = list_entry(it, struct procinput_write, node);
        n += w->n - w->at;
    }
    return n;
}

static int procinput_call(struct xs_process *p, const void *data, size_t n, bool close,
                          struct xs_call *k) {
    struct procinput_op *i;
    int r = prochub_op_new(p, k, sizeof(*i), procinput_op_end, &i);
    if (r < 0)
        return r;
    if (p->view)
        return op_refuse(&i->o.op, XS_EINVAL, "write: a view only looks");
    if (p->state == PROCHUB_FAILED) {
        xs_error_copy(&i->o.op.error, &p->failure);
        return op_refused(&i->o.op);
    }
    i->write = (struct procinput_write){.data = data, .n = n, .close = close};
    i->write.done = procinput_op_done;
    if (k != NULL && n > 0) {
        int64_t queue = xs_options_get_num(client_options(p->hub->client), XS_OPT_QUEUE, 8 << 20);
        size_t queued = procinput_queued(p);
        if (queued > 0 && queued + n > (uint64_t)queue)
            return op_refuse(&i->o.op, XS_EBUSY, "write: %zu bytes wait to be written", queued);
        i->copy = malloc(n);
        if (i->copy == NULL)
            return op_refuse(&i->o.op, XS_ENOMEM, "write: out of memory");
        memcpy(i->copy, data, n);
        i->write.data = i->copy;
    }
    i->o.stalls = true;
    if (n == 0 && !close) {
        op_finish(&i->o.op, 0);
        return op_wait(&i->o.op);
    }
    if (procinput_put(p, &i->write, &i->o.op.error) < 0)
        return op_refused(&i->o.op);
    procflow_kick(p);
    return op_wait(&i->o.op);
}

int procinput_call_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k) {
    return procinput_call(p, data, n, false, k);
}

int procinput_call_close(struct xs_process *p, struct xs_call *k) {
    return procinput_call(p, NULL, 0, true, k);
}
