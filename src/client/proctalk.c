#include "client/proctalk.h"

#include "client/headtail.h"
#include "client/procflow.h"
#include "client/procinput.h"
#include "client/procsnap.h"

/* The operation. */
struct proctalk {
    struct prochub_op o;
    struct procinput_write write;
    char *copy; /* owned: the input of a call that does not block */
    struct headtail streams[EVQUEUE_STREAMS];
    struct xs_snapshot *out;
    bool gap; /* output is lost */
};

static void proctalk_end(struct op *op) {
    struct proctalk *t = (struct proctalk *)op;
    if (t->o.p != NULL && t->o.p->talk == t)
        t->o.p->talk = NULL;
    procinput_drop(&t->write);
    xs_error_fini(&t->write.error);
    free(steal_ptr(&t->copy));
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++)
        headtail_fini(&t->streams[i]);
    prochub_op_end(op);
}

/* A process need not read its input: only the end of its output counts. */
static void proctalk_written(struct procinput_write *w, struct xs_error *e) {
    struct proctalk *t = container_of(w, struct proctalk, write);
    if (e != NULL && e->code != XS_EREMOTE && e->code != XS_EGONE)
        op_fail_with(&t->o.op, e);
}

static void proctalk_copy(const void *from, char *dst) {
    headtail_copy(from, dst);
}

static void proctalk_finish(struct proctalk *t) {
    struct xs_process *p = t->o.p;
    struct procsnap_part parts[EVQUEUE_STREAMS];
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++) {
        const struct headtail *h = &t->streams[i];
        parts[i] = (struct procsnap_part){
            .present = h->total > 0 || (i == EVQUEUE_PTY) == p->tty,
            .head = h->head_len,
            .tail = h->tail_len,
            .total = h->total,
            .data = h,
            .copy = proctalk_copy,
        };
    }
    int r = procsnap_make(t->out, parts, &p->event_exit);
    if (r < 0)
        op_fail(&t->o.op, r, "communicate: out of memory");
    else if (t->gap)
        op_fail(&t->o.op, XS_EGAP, "communicate: output of the process is lost");
    else
        op_finish(&t->o.op, 0);
}

void proctalk_feed(struct xs_process *p) {
    while (p->talk != NULL && procflow_take(p)) {
        struct proctalk *t = p->talk;
        const struct xs_event *e = &p->event;
        switch (e->type) {
        case XS_EV_OUTPUT:
            if (headtail_put(&t->streams[e->stream], e->data, e->n) < 0)
                op_fail(&t->o.op, XS_ENOMEM, "communicate: out of memory");
            break;
        case XS_EV_EXITED: break;
        case XS_EV_CLOSED: proctalk_finish(t); break;
        case XS_EV_GAP: t->gap = true; break;
        case XS_EV_FAILED: {
            _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
            xs_error_copy(&why, &p->failure);
            op_fail_with(&t->o.op, &why);
            break;
        }
        }
    }
}

static int proctalk_refused(struct xs_process *p, struct proctalk *t, size_t n) {
    if (p->view)
        return op_refuse(&t->o.op, XS_EINVAL, "communicate: a view only looks");
    if (p->next != NULL || p->talk != NULL)
        return op_refuse(&t->o.op, XS_EBUSY, "communicate: another call takes the events");
    if (p->closed_told || p->failure_told)
        return op_refuse(&t->o.op, XS_EINVAL, "communicate: all events were taken before");
    if (n > 0 && !p->stdin_open)
        return op_refuse(&t->o.op, XS_EINVAL, "communicate: the process has no stdin");
    return 0;
}

int proctalk_call(struct xs_process *p, const void *in, size_t n, size_t max, struct xs_snapshot *s,
                  struct xs_call *k) {
    struct proctalk *t;
    int r = prochub_op_new(p, k, sizeof(*t), proctalk_end, &t);
    if (r < 0)
        return r;
    if ((r = proctalk_refused(p, t, n)) < 0)
        return r;
    t->out = s;
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++)
        headtail_init(&t->streams[i], max);
    t->write = (struct procinput_write){.data = in, .n = n, .close = true};
    t->write.done = proctalk_written;
    if (k != NULL && n > 0) {
        t->copy = malloc(n);
        if (t->copy == NULL)
            return op_refuse(&t->o.op, XS_ENOMEM, "communicate: out of memory");
        memcpy(t->copy, in, n);
        t->write.data = t->copy;
    }
    /* First: the write may fail at once, which ends the operation. */
    p->talk = t;
    notice_drop(&p->notice);
    r = p->stdin_open ? procinput_put(p, &t->write, &t->o.op.error) : 0;
    if (r < 0)
        r = op_refused(&t->o.op);
    procflow_kick(p);
    return r < 0 ? r : op_wait(&t->o.op);
}
