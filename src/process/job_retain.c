#include "process/job_retain.h"

#include "base/log.h"

static struct conn *job_conn(const struct job *j) {
    return j->session->peer != NULL ? j->session->peer->conn : NULL;
}

/* -- what the client has -- */

static bool job_is_seen(const struct job *j) {
    const struct conn *c = job_conn(j);
    return j->missed_seq == 0 && (c == NULL || j->sent_at <= conn_tx_written(c));
}

static void job_classify(struct job *j) {
    struct server *s = j->server;
    enum retention_kind kind = job_is_seen(j) ? RETENTION_SEEN : RETENTION_UNSEEN;
    retention_set_kind(&s->outputs, &j->output, kind);
    retention_set_kind(&s->entries, &j->entry, kind);
    list_remove(&j->unsent);
    /* Sent, but not taken by the socket yet: job_promote() looks again. */
    if (kind == RETENTION_UNSEEN && j->missed_seq == 0)
        list_append(&j->session->unsent, &j->unsent);
}

/* Looks again at the closed processes of a session whose last events were queued. */
static void job_promote(struct session *s) {
    for (struct list *n; (n = list_first(&s->unsent)) != NULL;) {
        struct job *j = list_entry(n, struct job, unsent);
        if (!job_is_seen(j))
            return; /* the later ones were queued behind it */
        job_classify(j);
    }
}

static void job_promote_all(struct server *s) {
    list_for_each(n, &s->conns.conns) {
        const struct rpc_peer *p = list_entry(n, struct conn, node)->user;
        if (p != NULL && p->user != NULL)
            job_promote(p->user);
    }
}

void job_note_event(struct job *j, uint64_t seq) {
    const struct conn *c = job_conn(j);
    if (c != NULL && conn_is_open(c))
        j->sent_at = conn_tx_end(c);
    else
        j->missed_seq = seq;
}

void job_note_read(struct job *j, uint64_t seq, size_t n) {
    const struct conn *c = job_conn(j);
    if (c == NULL || j->missed_seq == 0 || seq < j->missed_seq)
        return;
    j->missed_seq = 0;
    j->sent_at = conn_tx_end(c);
    if (j->sent_at <= UINT64_MAX - n)
        j->sent_at += n;
    if (j->entry.share != NULL)
        job_classify(j);
}

void job_note_detach(struct session *s) {
    uint64_t confirmed = conn_tx_confirmed(s->peer->conn);
    list_for_each(n, &s->order) {
        struct job *j = list_entry(n, struct job, order);
        if (j->sent_at > confirmed)
            j->missed_seq = j->proc.next_seq - 1;
        j->sent_at = 0; /* positions of the next connection begin at 0 */
        if (j->entry.share != NULL)
            job_classify(j);
    }
}

/* -- the bounds -- */

/* Forgets the output of a closed job; its entry stays. */
static void job_drop_output(struct job *j) {
    const struct outlog *log = &j->proc.log;
    retention_drop(&j->server->outputs, &j->output);
    if (log->count > 0)
        j->lost_seq = outlog_at(log, log->count - 1)->seq;
    proc_drop_output(&j->proc);
}

/* The entry of `j`, whose process is just telling that it has closed, cannot go at once. */
static void job_bound_entries(struct server *s, struct job *j) {
    for (struct retention_item *i; (i = retention_victim(&s->entries)) != NULL;) {
        struct job *victim = container_of(i, struct job, entry);
        if (victim != j) {
            job_expire(victim);
            continue;
        }
        retention_drop(&s->entries, i);
        (void)!loop_timer_set(&s->loop, &j->retention, 1); /* it is running */
    }
}

static void job_bound_retention(struct server *s, struct job *j) {
    if (retention_victim(&s->outputs) == NULL && retention_victim(&s->entries) == NULL)
        return;
    job_promote_all(s);
    for (struct retention_item *i; (i = retention_victim(&s->outputs)) != NULL;)
        job_drop_output(container_of(i, struct job, output));
    job_bound_entries(s, j);
}

/* What an entry costs besides its output. */
static size_t job_entry_size(const struct job *j) {
    return sizeof *j + j->id.n + j->id_json.n + j->argv_json.n;
}

void job_retain(struct job *j) {
    struct server *s = j->server;
    size_t size = proc_retained(&j->proc);
    if (size > 0)
        retention_keep(&s->outputs, &j->session->output, &j->output, size, RETENTION_UNSEEN);
    retention_keep(&s->entries, &j->session->entries, &j->entry, job_entry_size(j),
                   RETENTION_UNSEEN);
    job_classify(j);
    if (loop_timer_set(&s->loop, &j->retention, s->opt->closed_retention_ms * LOOP_MS) < 0)
        log_error("out of memory: a closed process is kept until its session ends");
    job_bound_retention(s, j);
}

void job_unretain(struct job *j) {
    loop_timer_del(&j->server->loop, &j->retention);
    list_remove(&j->unsent);
    retention_drop(&j->server->outputs, &j->output);
    retention_drop(&j->server->entries, &j->entry);
}
