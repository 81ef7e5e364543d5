#include "process/process_retain.h"

#include "process/process.h"
#include "base/log.h"

static struct conn *process_conn(const struct process *p) {
    return p->session->peer != NULL ? p->session->peer->conn : NULL;
}

/* -- events that the client has -- */

static bool process_is_seen(const struct process *p) {
    const struct conn *c = process_conn(p);
    return p->missed_seq == 0 && !proc_has_unacked(&p->proc) &&
           (c == NULL || p->sent_at <= conn_tx_written(c));
}

static void process_classify(struct process *p) {
    struct process_host *h = p->host;
    enum retention_kind kind = process_is_seen(p) ? RETENTION_SEEN : RETENTION_UNSEEN;
    retention_set_kind(&h->outputs, &p->output, kind);
    retention_set_kind(&h->entries, &p->entry, kind);
    list_remove(&p->unsent);
    /* Queued, but the socket has not taken it yet: process_promote() looks again. */
    if (kind == RETENTION_UNSEEN && p->missed_seq == 0 && !proc_has_unacked(&p->proc))
        list_append(&p->session->unsent, &p->unsent);
}

/* Classifies again the closed processes of a session whose last events were queued. */
static void process_promote(struct session *s) {
    for (struct list *n; (n = list_first(&s->unsent)) != NULL;) {
        struct process *p = list_entry(n, struct process, unsent);
        if (!process_is_seen(p))
            return; /* later ones are queued behind this one */
        process_classify(p);
    }
}

static void process_promote_all(struct process_host *h) {
    list_for_each(n, &h->conns->conns) {
        const struct rpc_peer *p = list_entry(n, struct conn, node)->user;
        if (p != NULL && p->user != NULL)
            process_promote(p->user);
    }
}

void process_retain_note_event(struct process *p, uint64_t seq) {
    const struct conn *c = process_conn(p);
    if (c != NULL && conn_is_open(c))
        p->sent_at = conn_tx_end(c);
    else
        p->missed_seq = seq;
}

void process_retain_note_read(struct process *p, uint64_t seq, size_t n) {
    const struct conn *c = process_conn(p);
    if (c == NULL || p->missed_seq == 0 || seq < p->missed_seq)
        return;
    p->missed_seq = 0;
    p->sent_at = conn_tx_end(c);
    if (p->sent_at <= UINT64_MAX - n)
        p->sent_at += n;
    if (p->entry.share != NULL)
        process_classify(p);
}

void process_retain_note_ack(struct process *p) {
    if (p->entry.share != NULL)
        process_classify(p);
}

void process_retain_note_detach(struct session *s) {
    uint64_t confirmed = conn_tx_confirmed(s->peer->conn);
    list_for_each(n, &s->order) {
        struct process *p = list_entry(n, struct process, order);
        if (p->sent_at > confirmed)
            p->missed_seq = p->proc.next_seq - 1;
        p->sent_at = 0; /* positions of the next connection begin at 0 */
        if (p->entry.share != NULL)
            process_classify(p);
    }
}

/* -- the bounds -- */

/* Forgets the output of a closed process; its entry stays. */
static void process_drop_output(struct process *p) {
    const struct outlog *log = &p->proc.log;
    retention_drop(&p->host->outputs, &p->output);
    if (log->count > 0)
        p->lost_seq = outlog_at(log, log->count - 1)->seq;
    proc_drop_output(&p->proc);
}

/* Spares the entry of `p`, which is just reporting that it has closed. */
static void process_bound_entries(struct process_host *h, struct process *p) {
    for (struct retention_item *i; (i = retention_victim(&h->entries)) != NULL;) {
        struct process *victim = container_of(i, struct process, entry);
        if (victim != p) {
            process_expire(victim);
            continue;
        }
        retention_drop(&h->entries, i);
        (void)!loop_timer_set(h->loop, &p->retention, 1); /* it is running */
    }
}

static void process_bound_retention(struct process_host *h, struct process *p) {
    if (retention_victim(&h->outputs) == NULL && retention_victim(&h->entries) == NULL)
        return;
    process_promote_all(h);
    for (struct retention_item *i; (i = retention_victim(&h->outputs)) != NULL;)
        process_drop_output(container_of(i, struct process, output));
    process_bound_entries(h, p);
}

/* Bytes of an entry besides its output. */
static size_t process_entry_size(const struct process *p) {
    size_t write_ids = p->proc.stdinq.ids_cap * sizeof(struct stdinq_id);
    return sizeof *p + p->id.n + p->id_json.n + p->argv_json.n + write_ids;
}

void process_retain(struct process *p) {
    struct process_host *h = p->host;
    size_t size = proc_retained(&p->proc);
    if (size > 0)
        retention_keep(&h->outputs, &p->session->output, &p->output, size, RETENTION_UNSEEN);
    retention_keep(&h->entries, &p->session->entries, &p->entry, process_entry_size(p),
                   RETENTION_UNSEEN);
    process_classify(p);
    if (loop_timer_set(h->loop, &p->retention, p->session->closed_retention_ms * LOOP_MS) < 0)
        log_error("out of memory: a closed process is kept until its session ends");
    process_bound_retention(h, p);
}

void process_retain_drop(struct process *p) {
    loop_timer_del(p->host->loop, &p->retention);
    list_remove(&p->unsent);
    retention_drop(&p->host->outputs, &p->output);
    retention_drop(&p->host->entries, &p->entry);
}

bool process_retain_has_lost(const struct process *p, uint64_t after) {
    return p->lost_seq > after;
}
