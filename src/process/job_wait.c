#include "process/job_wait.h"

#include "json/base64.h"
#include "process/job_retain.h"
#include "process/notify.h"
#include "process/status.h"

#include <errno.h>
#include <inttypes.h>

/* -- reads -- */

struct job_wait {
    struct list node;
    struct job *job;
    struct rpc_call *call;
    struct job_query query;
    bool due; /* the deadline has passed */
    struct loop_timer deadline;
};

bool job_ready(const struct job *j, const struct job_query *q) {
    const struct proc *p = &j->proc;
    if (p->state == PROC_CLOSED || (q->until == JOB_UNTIL_EXITED && p->state == PROC_EXITED))
        return true;
    return q->until == JOB_UNTIL_NEWS && (outlog_find(&p->log, q->after) < p->log.count ||
                                          (p->state == PROC_EXITED && q->after < p->next_seq - 1));
}

/* In the ring, or joined in the scratch buffer. */
const char *job_chunk_bytes(const struct job *j, const struct outlog_chunk *c) {
    struct str s[2];
    outlog_bytes(&j->proc.log, c, s);
    if (s[1].n == 0)
        return s[0].p;
    char *joined = j->proc.host->scratch;
    memcpy(joined, s[0].p, s[0].n);
    memcpy(joined + s[0].n, s[1].p, s[1].n);
    return joined;
}

static int job_put_chunk(const struct job *j, const struct outlog_chunk *c, struct buf *b) {
    int r = buf_putf(b, "{\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"", c->seq,
                     notify_stream_name(c->stream));
    if (r == 0)
        r = buf_reserve(b, base64_encoded_len(c->len) + 3);
    if (r < 0)
        return r;
    b->len += base64_encode(b->p + b->len, job_chunk_bytes(j, c), c->len);
    return buf_putz(b, "\"}");
}

/* The chunks a read asks for; *last becomes the seq of the last one, if any. */
static int job_put_chunks(const struct job *j, const struct job_query *q, struct buf *b,
                          uint64_t *last) {
    uint64_t total = 0;
    size_t first = outlog_find(&j->proc.log, q->after);
    for (size_t i = first; i < j->proc.log.count; i++) {
        const struct outlog_chunk *c = outlog_at(&j->proc.log, i);
        /* The first chunk always goes, whole; further ones only within the limit. */
        if (i > first && (total >= q->max_bytes || c->len > q->max_bytes - total))
            break;
        int err = i > first ? buf_putc(b, ',') : 0;
        if (err == 0)
            err = job_put_chunk(j, c, b);
        if (err < 0)
            return err;
        total += c->len;
        *last = c->seq;
    }
    return 0;
}

/* The last event that an answer tells of which the last chunk is `last` (0: there was none). */
static uint64_t job_read_covers(const struct job *j, const struct job_query *q, uint64_t last) {
    const struct proc *p = &j->proc;
    if (outlog_find(&p->log, MAX(last, q->after)) < p->log.count)
        return last;                                     /* there is more */
    return q->after < p->next_seq ? p->next_seq - 1 : 0; /* beyond all numbers: it only waits */
}

static int job_put_read(struct job *j, const struct job_query *q, struct buf *b) {
    uint64_t last = 0;
    int r = buf_putz(b, "{\"chunks\":[");
    if (r == 0)
        r = job_put_chunks(j, q, b, &last);
    uint64_t next = q->limited && last != 0 ? last + 1 : j->proc.next_seq;
    if (r == 0)
        r = buf_putf(b, "],\"nextSeq\":%" PRIu64 ",\"failure\":", next);
    if (r == 0 && job_has_lost(j, q->after))
        r = buf_putf(b,
                     "\"output of the process was dropped: closed processes retain at most %zu "
                     "bytes\",",
                     j->server->outputs.max);
    else if (r == 0)
        r = buf_putz(b, "null,");
    if (r == 0)
        r = status_put(j, "timedOut", b);
    if (r == 0)
        r = buf_putc(b, '}');
    if (r == 0)
        job_note_read(j, job_read_covers(j, q, last), b->len);
    return r;
}

int job_put_answer(struct job *j, const struct job_query *q, bool late, struct buf *b) {
    if (q->until == JOB_UNTIL_NEWS)
        return job_put_read(j, q, b);
    int r = buf_putf(b, "{\"nextSeq\":%" PRIu64 ",", j->proc.next_seq);
    if (r == 0)
        r = status_put(j, "processTimedOut", b);
    return r < 0 ? r : buf_putf(b, ",\"timedOut\":%s}", late ? "true" : "false");
}

static void job_wait_free(struct job_wait *w) {
    loop_timer_del(&w->job->server->loop, &w->deadline);
    list_remove(&w->node);
    free(w);
}

static void job_wait_answer(struct job_wait *w) {
    struct rpc_call *c = w->call;
    struct buf *b = rpc_result_begin(c);
    if (job_put_answer(w->job, &w->query, !job_ready(w->job, &w->query), b) < 0)
        b->len = 0;
    job_wait_free(w);
    rpc_result_send(c);
}

/* Answers if there is something to say, and room to say it. */
static void job_wait_try(struct job_wait *w) {
    if ((w->due || job_ready(w->job, &w->query)) && rpc_has_room(w->call))
        job_wait_answer(w);
}

static void job_wait_on_deadline(struct loop_timer *t) {
    struct job_wait *w = container_of(t, struct job_wait, deadline);
    w->due = true;
    job_wait_try(w);
}

static void job_wait_on_room(struct rpc_call *c) {
    job_wait_try(c->user);
}

static void job_wait_expire(struct rpc_call *c) {
    job_wait_answer(c->user);
}

static void job_wait_cancelled(struct rpc_call *c) {
    job_wait_free(c->user);
    rpc_forget(c);
}

int job_wait_for(struct job *j, struct rpc_call *c, const struct job_query *q, uint64_t ms,
                 struct err *e) {
    struct job_wait *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    *w = (struct job_wait){.job = j, .query = *q, .deadline.fn = job_wait_on_deadline};
    if (loop_timer_set(&j->server->loop, &w->deadline, loop_ms(ms)) < 0) {
        free(w);
        return err_os(e, ERR_INTERNAL, ENOMEM);
    }
    list_append(&j->waits, &w->node);
    w->call = rpc_park(c, e);
    if (w->call == NULL) {
        job_wait_free(w);
        return -EAGAIN;
    }
    w->call->user = w;
    w->call->cancelled = job_wait_cancelled;
    w->call->expire = job_wait_expire;
    w->call->room = job_wait_on_room;
    return 0;
}

void job_wake_waits(struct job *j) {
    list_for_each(n, &j->waits) {
        job_wait_try(list_entry(n, struct job_wait, node));
    }
}

void job_expire_waits(struct job *j) {
    for (struct list *n; (n = list_first(&j->waits)) != NULL;)
        job_wait_answer(list_entry(n, struct job_wait, node));
}

/* -- writes -- */

/* A write that waits for room; nothing of it has been written. */
struct job_write {
    struct list node;
    struct job *job;
    struct rpc_call *call;
    bool has_id, close;
    struct inq_id id;
    size_t n;
    char data[];
};

/* One attempt. JOB_WRITE_WAITING when the queue is full; then nothing was done. */
static enum job_write_status job_write_now(struct job *j, const struct inq_id *id, struct str data,
                                           bool close, struct err *e) {
    struct proc *p = &j->proc;
    if (p->state == PROC_STARTING)
        return JOB_WRITE_STARTING;
    if (id != NULL && inq_seen(&p->inq, *id))
        return JOB_WRITE_ACCEPTED;
    /* The end-of-file of a terminal is a chunk of its own: both go, or both wait. */
    if (close && p->tty && !proc_stdin_has_room(p, data.n > 0 ? 2 : 1))
        return JOB_WRITE_WAITING;
    int r = proc_write(p, data.p, data.n);
    if (r == 0 && close)
        r = proc_close_stdin(p);
    if (r == -EAGAIN)
        return JOB_WRITE_WAITING;
    if (r == -ENOTCONN)
        return JOB_WRITE_STDIN_CLOSED;
    if (r == 0)
        j->server->metrics.input_bytes += data.n;
    if (r == 0 && id != NULL)
        r = inq_remember(&p->inq, *id);
    if (r == 0)
        return JOB_WRITE_ACCEPTED;
    err_set(e, ERR_INTERNAL, "failed to write to process stdin");
    return JOB_WRITE_FAILED;
}

static void job_write_free(struct job_write *w) {
    if (w->call->peer != NULL)
        w->call->peer->parked_bytes -= w->n;
    list_remove(&w->node);
    free(w);
}

static void job_write_cancelled(struct rpc_call *c) {
    job_write_free(c->user);
    rpc_forget(c);
}

static void job_write_fail(struct rpc_call *c) {
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "failed to write to process stdin");
    job_write_free(c->user);
    rpc_fail(c, &e);
}

static enum job_write_status job_park_write(struct job *j, struct rpc_call *c,
                                            const struct inq_id *id, const struct job_input *in,
                                            struct err *e) {
    struct rpc_peer *peer = c->peer;
    size_t n = in->data.n;
    if (peer->parked_bytes + n > JOB_PARKED_BYTES_MAX) {
        err_set(e, ERR_INVALID_REQUEST,
                "too many bytes wait to be written on this connection (limit %u)",
                JOB_PARKED_BYTES_MAX);
        return JOB_WRITE_FAILED;
    }
    struct job_write *w = malloc(sizeof *w + n);
    struct rpc_call *kept = NULL;
    if (w == NULL)
        err_os(e, ERR_INTERNAL, ENOMEM);
    else
        kept = rpc_park(c, e);
    if (kept == NULL) {
        free(w);
        return JOB_WRITE_FAILED;
    }
    *w = (struct job_write){.job = j, .call = kept, .has_id = id != NULL, .n = n};
    w->close = in->close;
    if (id != NULL)
        w->id = *id;
    if (n > 0)
        memcpy(w->data, in->data.p, n);
    kept->user = w;
    kept->cancelled = job_write_cancelled;
    kept->expire = job_write_fail;
    peer->parked_bytes += n;
    list_append(&j->writes, &w->node);
    return JOB_WRITE_WAITING;
}

enum job_write_status job_write(struct job *j, struct rpc_call *c, const struct job_input *in,
                                struct err *e) {
    struct inq_id id, *known = NULL;
    if (in->write_id.p != NULL) {
        id = inq_digest(j->server->write_key, in->write_id);
        known = &id;
    }
    enum job_write_status s = JOB_WRITE_WAITING; /* behind earlier ones */
    if (list_empty(&j->writes) || (known != NULL && inq_seen(&j->proc.inq, id)))
        s = job_write_now(j, known, in->data, in->close, e);
    return s == JOB_WRITE_WAITING ? job_park_write(j, c, known, in, e) : s;
}

void job_pump_writes(struct job *j) {
    for (struct list *node; (node = list_first(&j->writes)) != NULL;) {
        struct job_write *w = list_entry(node, struct job_write, node);
        struct rpc_call *c = w->call;
        _cleanup_err_ struct err e = ERR_INIT;
        enum job_write_status s =
            job_write_now(j, w->has_id ? &w->id : NULL, (struct str){w->data, w->n}, w->close, &e);
        if (s == JOB_WRITE_WAITING)
            return;
        if (s == JOB_WRITE_FAILED) {
            job_write_fail(c);
            continue;
        }
        job_write_free(w);
        struct buf *b = rpc_result_begin(c);
        if (buf_putz(b, s == JOB_WRITE_ACCEPTED ? "{\"status\":\"accepted\"}"
                                                : "{\"status\":\"stdinClosed\"}") < 0)
            b->len = 0;
        rpc_result_send(c);
    }
}

void job_fail_waiters(struct job *j) {
    for (struct list *n; (n = list_first(&j->waits)) != NULL;)
        job_wait_cancelled(list_entry(n, struct job_wait, node)->call);
    for (struct list *n; (n = list_first(&j->writes)) != NULL;)
        job_write_cancelled(list_entry(n, struct job_write, node)->call);
}
