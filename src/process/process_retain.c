#include "process/process_retain.h"

#include "base/log.h"

static struct conn *process_conn(const struct process *j) {
    return j->session->peer != NULL ? j->session->peer->conn : NULL;
}

/* -- what the client has -- */

static bool process_is_seen(const struct process *j) {
    const struct conn *c = process_conn(j);
    return j->missed_seq == 0 && (c == NULL || j->sent_at <= conn_tx_written(c));
}

static void process_classify(struct process *j) {
    struct process_host *h = j->host;
    enum retention_kind kind = process_is_seen(j) ? RETENTION_SEEN : RETENTION_UNSEEN;
    retention_set_kind(&h->outputs, &j->output, kind);
    retention_set_kind(&h->entries, &j->entry, kind);
    list_remove(&j->unsent);
    /* Sent, but not taken by the socket yet: process_promote() looks again. */
    if (kind == RETENTION_UNSEEN && j->missed_seq == 0)
        list_append(&j->session->unsent, &j->unsent);
}

/* Looks again at the closed processes of a session whose last events were queued. */
static void process_promote(struct session *s) {
    for (struct list *n; (n = list_first(&s->unsent)) != NULL;) {
        struct process *j = list_entry(n, struct process, unsent);
        if (!process_is_seen(j))
            return; /* the later ones were queued behind it */
        process_classify(j);
    }
}

static void process_promote_all(struct process_host *h) {
    list_for_each(n, &h->conns->conns) {
        const struct rpc_peer *p = list_entry(n, struct conn, node)->user;
        if (p != NULL && p->user != NULL)
            process_promote(p->user);
    }
}

void process_retain_note_event(struct process *j, uint64_t seq) {
    const struct conn *c = process_conn(j);
    if (c != NULL && conn_is_open(c))
        j->sent_at = conn_tx_end(c);
    else
        j->missed_seq = seq;
}

void process_retain_note_read(struct process *j, uint64_t seq, size_t n) {
    const struct conn *c = process_conn(j);
    if (c == NULL || j->missed_seq == 0 || seq < j->missed_seq)
        return;
    j->missed_seq = 0;
    j->sent_at = conn_tx_end(c);
    if (j->sent_at <= UINT64_MAX - n)
        j->sent_at += n;
    if (j->entry.share != NULL)
        process_classify(j);
}

void process_retain_note_detach(struct session *s) {
    uint64_t confirmed = conn_tx_confirmed(s->peer->conn);
    list_for_each(n, &s->order) {
        struct process *j = list_entry(n, struct process, order);
        if (j->sent_at > confirmed)
            j->missed_seq = j->proc.next_seq - 1;
        j->sent_at = 0; /* positions of the next connection begin at 0 */
        if (j->entry.share != NULL)
            process_classify(j);
    }
}

/* -- the bounds -- */

/* Forgets the output of a closed process; its entry stays. */
static void process_drop_output(struct process *j) {
    const struct outlog *log = &j->proc.log;
    retention_drop(&j->host->outputs, &j->output);
    if (log->count > 0)
        j->lost_seq = outlog_at(log, log->count - 1)->seq;
    proc_drop_output(&j->proc);
}

/* The entry of `j`, whose process is just telling that it has closed, cannot go at once. */
static void process_bound_entries(struct process_host *h, struct process *j) {
    for (struct retention_item *i; (i = retention_victim(&h->entries)) != NULL;) {
        struct process *victim = container_of(i, struct process, entry);
        if (victim != j) {
            process_expire(victim);
            continue;
        }
        retention_drop(&h->entries, i);
        (void)!loop_timer_set(h->loop, &j->retention, 1); /* it is running */
    }
}

static void process_bound_retention(struct process_host *h, struct process *j) {
    if (retention_victim(&h->outputs) == NULL && retention_victim(&h->entries) == NULL)
        return;
    process_promote_all(h);
    for (struct retention_item *i; (i = retention_victim(&h->outputs)) != NULL;)
        process_drop_output(container_of(i, struct process, output));
    process_bound_entries(h, j);
}

/* What an entry costs besides its output. */
static size_t process_entry_size(const struct process *j) {
    return sizeof *j + j->id.n + j->id_json.n + j->argv_json.n;
}

void process_retain(struct process *j) {
    struct process_host *h = j->host;
    size_t size = proc_retained(&j->proc);
    if (size > 0)
        retention_keep(&h->outputs, &j->session->output, &j->output, size, RETENTION_UNSEEN);
    retention_keep(&h->entries, &j->session->entries, &j->entry, process_entry_size(j),
                   RETENTION_UNSEEN);
    process_classify(j);
    if (loop_timer_set(h->loop, &j->retention, h->settings.closed_retention_ms * LOOP_MS) < 0)
        log_error("out of memory: a closed process is kept until its session ends");
    process_bound_retention(h, j);
}

void process_retain_drop(struct process *j) {
    loop_timer_del(j->host->loop, &j->retention);
    list_remove(&j->unsent);
    retention_drop(&j->host->outputs, &j->output);
    retention_drop(&j->host->entries, &j->entry);
}
