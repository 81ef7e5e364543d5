#include "process/process_wait.h"

#include "json/base64.h"
#include "process/process_retain.h"
#include "process/notify.h"
#include "process/process_json.h"

#include <errno.h>
#include <inttypes.h>

struct process_wait {
    struct list node;
    struct process *process;
    struct rpc_call *call;
    struct process_query query;
    bool due; /* the deadline has passed */
    struct loop_timer deadline;
};

bool process_wait_ready(const struct process *p, const struct process_query *q) {
    const struct proc *proc = &p->proc;
    if (proc->state == PROC_CLOSED ||
        (q->until == PROCESS_UNTIL_EXITED && proc->state == PROC_EXITED))
        return true;
    return q->until == PROCESS_UNTIL_NEWS &&
           (outlog_find(&proc->log, q->after) < proc->log.count ||
            (proc->state == PROC_EXITED && q->after < proc->next_seq - 1));
}

/* Points into the ring, or joins two parts in the scratch buffer. */
const char *process_wait_chunk_bytes(const struct process *p, const struct outlog_chunk *c) {
    struct str s[2];
    outlog_bytes(&p->proc.log, c, s);
    if (s[1].n == 0)
        return s[0].p;
    char *joined = p->proc.host->scratch;
    memcpy(joined, s[0].p, s[0].n);
    memcpy(joined + s[0].n, s[1].p, s[1].n);
    return joined;
}

static int process_put_chunk(const struct process *p, const struct outlog_chunk *c, struct buf *b) {
    int r = buf_putf(b, "{\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"", c->seq,
                     notify_stream_name(c->stream));
    if (r == 0)
        r = buf_reserve(b, base64_encoded_len(c->len) + 3);
    if (r < 0)
        return r;
    b->len += base64_encode(b->p + b->len, process_wait_chunk_bytes(p, c), c->len);
    return buf_putz(b, "\"}");
}

/* Appends the chunks that a read asks for; *last becomes the seq of the last one, if any. */
static int process_put_chunks(const struct process *p, const struct process_query *q, struct buf *b,
                              uint64_t *last) {
    uint64_t total = 0;
    size_t first = outlog_find(&p->proc.log, q->after);
    for (size_t i = first; i < p->proc.log.count; i++) {
        const struct outlog_chunk *c = outlog_at(&p->proc.log, i);
        /* The first chunk always goes out whole; further ones only within the limit. */
        if (i > first && (total >= q->max_bytes || c->len > q->max_bytes - total))
            break;
        int err = i > first ? buf_putc(b, ',') : 0;
        if (err == 0)
            err = process_put_chunk(p, c, b);
        if (err < 0)
            return err;
        total += c->len;
        *last = c->seq;
    }
    return 0;
}

/* The last event that an answer covers if `last` is its last chunk (0: it has none). */
static uint64_t process_read_covers(const struct process *p, const struct process_query *q,
                                    uint64_t last) {
    const struct proc *proc = &p->proc;
    if (outlog_find(&proc->log, MAX(last, q->after)) < proc->log.count)
        return last;                                           /* there is more */
    return q->after < proc->next_seq ? proc->next_seq - 1 : 0; /* 0: it only waits */
}

static int process_put_read(struct process *p, const struct process_query *q, struct buf *b) {
    uint64_t last = 0;
    int r = buf_putz(b, "{\"chunks\":[");
    if (r == 0)
        r = process_put_chunks(p, q, b, &last);
    uint64_t next = q->limited && last != 0 ? last + 1 : p->proc.next_seq;
    if (r == 0)
        r = buf_putf(b, "],\"nextSeq\":%" PRIu64 ",\"failure\":", next);
    if (r == 0 && process_retain_has_lost(p, q->after))
        r = buf_putf(b,
                     "\"output of the process was dropped: closed processes retain at most %zu "
                     "bytes\",",
                     p->host->outputs.max);
    else if (r == 0)
        r = buf_putz(b, "null,");
    if (r == 0)
        r = process_json_put(p, "timedOut", b);
    if (r == 0)
        r = buf_putc(b, '}');
    if (r == 0)
        process_retain_note_read(p, process_read_covers(p, q, last), b->len);
    return r;
}

int process_wait_put_answer(struct process *p, const struct process_query *q, bool late,
                            struct buf *b) {
    if (q->until == PROCESS_UNTIL_NEWS)
        return process_put_read(p, q, b);
    int r = buf_putf(b, "{\"nextSeq\":%" PRIu64 ",", p->proc.next_seq);
    if (r == 0)
        r = process_json_put(p, "processTimedOut", b);
    return r < 0 ? r : buf_putf(b, ",\"timedOut\":%s}", late ? "true" : "false");
}

static void process_wait_free(struct process_wait *w) {
    loop_timer_del(w->process->host->loop, &w->deadline);
    list_remove(&w->node);
    free(w);
}

static void process_wait_answer(struct process_wait *w) {
    struct rpc_call *c = w->call;
    struct buf *b = rpc_result_begin(c);
    bool late = !process_wait_ready(w->process, &w->query);
    if (process_wait_put_answer(w->process, &w->query, late, b) < 0)
        b->len = 0;
    process_wait_free(w);
    rpc_result_send(c);
}

/* Answers if the query is ready and the connection has room. */
static void process_wait_try(struct process_wait *w) {
    if ((w->due || process_wait_ready(w->process, &w->query)) && rpc_has_room(w->call))
        process_wait_answer(w);
}

static void process_wait_on_deadline(struct loop_timer *t) {
    struct process_wait *w = container_of(t, struct process_wait, deadline);
    w->due = true;
    process_wait_try(w);
}

static void process_wait_on_room(struct rpc_call *c) {
    process_wait_try(c->user);
}

static void process_wait_on_expiry(struct rpc_call *c) {
    process_wait_answer(c->user);
}

static void process_wait_cancelled(struct rpc_call *c) {
    process_wait_free(c->user);
    rpc_forget(c);
}

int process_wait_for(struct process *p, struct rpc_call *c, const struct process_query *q,
                     uint64_t ms, struct err *e) {
    struct process_wait *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    *w = (struct process_wait){.process = p, .query = *q, .deadline.fn = process_wait_on_deadline};
    if (loop_timer_set(p->host->loop, &w->deadline, loop_ms(ms)) < 0) {
        free(w);
        return err_os(e, ERR_INTERNAL, ENOMEM);
    }
    list_append(&p->waits, &w->node);
    w->call = rpc_yield(c, e);
    if (w->call == NULL) {
        process_wait_free(w);
        return -EAGAIN;
    }
    w->call->user = w;
    w->call->cancelled = process_wait_cancelled;
    w->call->expire = process_wait_on_expiry;
    w->call->room = process_wait_on_room;
    return 0;
}

void process_wait_wake(struct process *p) {
    list_for_each(n, &p->waits) {
        process_wait_try(list_entry(n, struct process_wait, node));
    }
}

void process_wait_expire(struct process *p) {
    for (struct list *n; (n = list_first(&p->waits)) != NULL;)
        process_wait_answer(list_entry(n, struct process_wait, node));
}

void process_wait_drop(struct process *p) {
    for (struct list *n; (n = list_first(&p->waits)) != NULL;)
        process_wait_cancelled(list_entry(n, struct process_wait, node)->call);
}
