#include "process/process_write.h"

#include "process/process.h"

#include <errno.h>

/* A write that waits for room; none of its bytes has been written. */
struct process_write {
    struct list node;
    struct process *process;
    struct rpc_call *call;
    bool has_id, close;
    struct stdinq_id id;
    size_t n;
    char data[];
};

/* Tries once. PROCESS_WRITE_WAITING: the queue is full and nothing was written. */
static enum process_write_status process_write_now(struct process *p, const struct stdinq_id *id,
                                                   struct str data, bool close, struct err *e) {
    struct proc *proc = &p->proc;
    if (proc->state == PROC_STARTING)
        return PROCESS_WRITE_STARTING;
    /* planted: repeated-write */
    if (id != NULL && stdinq_seen(&proc->stdinq, *id))
        return PROCESS_WRITE_ACCEPTED;
    /* A terminal's end-of-file is a chunk of its own: both go out, or both wait. */
    if (close && proc->tty && !proc_stdin_has_room(proc, data.n > 0 ? 2 : 1))
        return PROCESS_WRITE_WAITING;
    int r = proc_write(proc, data.p, data.n);
    if (r == 0 && close)
        r = proc_close_stdin(proc);
    if (r == -EAGAIN)
        return PROCESS_WRITE_WAITING;
    if (r == -ENOTCONN)
        return PROCESS_WRITE_STDIN_CLOSED;
    if (r == 0)
        p->host->ops->metrics.input_bytes += data.n;
    /* A closed process accepts repetitions anyway, but for the one that ends stdin. */
    if (r == 0 && id != NULL && (close || proc->state != PROC_CLOSED))
        r = stdinq_remember(&proc->stdinq, *id);
    if (r == 0)
        return PROCESS_WRITE_ACCEPTED;
    err_set(e, ERR_INTERNAL, "failed to write to process stdin");
    return PROCESS_WRITE_FAILED;
}

static void process_write_free(struct process_write *w) {
    if (w->call->peer != NULL)
        w->call->peer->yielded_bytes -= w->n;
    list_remove(&w->node);
    free(w);
}

static void process_write_cancelled(struct rpc_call *c) {
    process_write_free(c->user);
    rpc_forget(c);
}

static void process_write_on_expiry(struct rpc_call *c) {
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "failed to write to process stdin");
    process_write_free(c->user);
    rpc_fail(c, &e);
}

static enum process_write_status process_write_park(struct process *p, struct rpc_call *c,
                                                    const struct stdinq_id *id,
                                                    const struct process_input *in, struct err *e) {
    struct rpc_peer *peer = c->peer;
    size_t n = in->data.n;
    if (peer->yielded_bytes + n > PROCESS_YIELDED_BYTES_MAX) {
        err_set(e, ERR_INVALID_REQUEST,
                "too many bytes wait to be written on this connection (limit %u)",
                PROCESS_YIELDED_BYTES_MAX);
        return PROCESS_WRITE_FAILED;
    }
    struct process_write *w = malloc(sizeof *w + n);
    struct rpc_call *kept = NULL;
    if (w == NULL)
        err_os(e, ERR_INTERNAL, ENOMEM);
    else
        kept = rpc_yield(c, e);
    if (kept == NULL) {
        free(w);
        return PROCESS_WRITE_FAILED;
    }
    *w = (struct process_write){.process = p, .call = kept, .has_id = id != NULL, .n = n};
    w->close = in->close;
    if (id != NULL)
        w->id = *id;
    if (n > 0)
        memcpy(w->data, in->data.p, n);
    kept->user = w;
    kept->cancelled = process_write_cancelled;
    kept->expire = process_write_on_expiry;
    peer->yielded_bytes += n;
    list_append(&p->writes, &w->node);
    return PROCESS_WRITE_WAITING;
}

enum process_write_status process_write(struct process *p, struct rpc_call *c,
                                        const struct process_input *in, struct err *e) {
    struct stdinq_id id, *known = NULL;
    if (in->write_id.p != NULL) {
        id = stdinq_digest(p->host->write_key, in->write_id);
        known = &id;
    }
    enum process_write_status s = PROCESS_WRITE_WAITING; /* behind earlier ones */
    if (list_empty(&p->writes) || (known != NULL && stdinq_seen(&p->proc.stdinq, id)))
        s = process_write_now(p, known, in->data, in->close, e);
    return s == PROCESS_WRITE_WAITING ? process_write_park(p, c, known, in, e) : s;
}

void process_write_pump(struct process *p) {
    for (struct list *node; (node = list_first(&p->writes)) != NULL;) {
        struct process_write *w = list_entry(node, struct process_write, node);
        struct rpc_call *c = w->call;
        _cleanup_err_ struct err e = ERR_INIT;
        enum process_write_status s = process_write_now(p, w->has_id ? &w->id : NULL,
                                                        (struct str){w->data, w->n}, w->close, &e);
        if (s == PROCESS_WRITE_WAITING)
            return;
        if (s == PROCESS_WRITE_FAILED) {
            process_write_on_expiry(c);
            continue;
        }
        process_write_free(w);
        struct buf *b = rpc_result_begin(c);
        if (buf_putz(b, s == PROCESS_WRITE_ACCEPTED ? "{\"status\":\"accepted\"}"
                                                    : "{\"status\":\"stdinClosed\"}") < 0)
            b->len = 0;
        rpc_result_send(c);
    }
}

void process_write_drop(struct process *p) {
    for (struct list *n; (n = list_first(&p->writes)) != NULL;)
        process_write_cancelled(list_entry(n, struct process_write, node)->call);
}
