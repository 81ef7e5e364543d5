#include "process/session.h"

#include "base/log.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "process/attach.h"
#include "process/process_retain.h"
#include "process/snapshot.h"

#include <errno.h>

static void session_on_ttl(struct loop_timer *t) {
    struct session *s = container_of(t, struct session, ttl);
    log_debug("session %.*s has expired", OPS_SESSION_LOGGED, s->id);
    session_end(s);
}

/* The peer sent nothing since the probe: the connection is dead, whatever TCP thinks. */
static void session_on_probe(struct loop_timer *t) {
    struct session *s = container_of(t, struct session, probe);
    if (s->peer == NULL || conn_received(s->peer->conn) != s->probe_rx)
        return;
    log_info("session %.*s: %s gives no sign of life", OPS_SESSION_LOGGED, s->id,
             s->peer->conn->peer);
    conn_end(s->peer->conn, 1008, "session was resumed by another connection");
}

/* Those who look are no rows of what they see. */
static void session_changed(struct session *s) {
    if (!s->viewer)
        ledger_touch(&s->host->ledger, &s->row);
}

static void session_attach(struct session *s, struct rpc_peer *peer) {
    loop_timer_del(s->host->loop, &s->ttl);
    if (!list_empty(&s->detached_node)) {
        list_remove(&s->detached_node);
        s->host->detached_count--;
    }
    s->peer = peer;
    peer->user = s;
    session_changed(s);
    if (peer->conn->high) /* its queue filled up before it had a session */
        proc_flow_close(&s->flow);
}

/* Enters it into the host's tables. 0 or -ENOMEM. */
static int session_enter(struct session *s) {
    struct process_host *host = s->host;
    if (retention_join(&host->outputs, &s->output) < 0)
        return -ENOMEM;
    if (retention_join(&host->entries, &s->entries) < 0) {
        retention_leave(&host->outputs);
        return -ENOMEM;
    }
    int r = hash_add(&host->sessions, &s->node, str_of(s->id));
    if (r == 0 && (r = hash_add(&host->shown, &s->shown_node, str_of(s->shown))) < 0)
        hash_remove(&host->sessions, &s->node);
    if (r < 0) {
        retention_leave(&host->outputs);
        retention_leave(&host->entries);
    }
    return r;
}

/* A session without a connection. NULL with e set. */
static struct session *session_make(struct process_host *host, struct err *e) {
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    s->host = host;
    s->ttl_ms = host->settings.session_ttl_ms;
    s->closed_retention_ms = host->settings.closed_retention_ms;
    s->started_ms = utc_now_ms();
    uuid_random(s->id);
    uuid_random(s->shown);
    memcpy(s->shown, s->id, OPS_SESSION_LOGGED);
    ledger_row_init(&s->row, LEDGER_SESSION);
    hash_init(&s->processes);
    list_init(&s->order);
    list_init(&s->views);
    list_init(&s->helpers);
    list_init(&s->snapshots);
    list_init(&s->captures);
    list_init(&s->unsent);
    list_init(&s->leftovers);
    list_init(&s->detached_node);
    proc_flow_init(&s->flow);
    s->ttl.fn = session_on_ttl;
    s->probe.fn = session_on_probe;
    attach_pace_init(s);
    if (session_enter(s) < 0) {
        free(s);
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    return s;
}

struct session *session_new(struct process_host *host, struct rpc_peer *peer, struct err *e) {
    struct session *s = session_make(host, e);
    if (s != NULL)
        session_attach(s, peer);
    return s;
}

struct session *session_new_console(struct process_host *host, struct rpc_peer *peer,
                                    struct err *e) {
    struct session *s = session_make(host, e);
    if (s == NULL)
        return NULL;
    s->console = true;
    s->ttl_ms = 0;
    s->viewer = peer != NULL;
    s->serial = ++host->last_viewer;
    s->client = strdup("console");
    host->console_count++;
    if (peer != NULL)
        session_attach(s, peer);
    session_changed(s);
    return s;
}

struct session *session_shown(const struct process_host *host, struct str name) {
    struct hash_node *n = hash_find(&host->shown, name);
    return n != NULL ? container_of(n, struct session, shown_node) : NULL;
}

static void session_ask_alive(struct session *s) {
    if (s->probe.pos != 0)
        return;
    s->probe_rx = conn_received(s->peer->conn);
    conn_ping(s->peer->conn);
    (void)!loop_timer_set(s->host->loop, &s->probe, SESSION_PROBE_MS * LOOP_MS);
}

struct session *session_resume(struct process_host *host, struct str id, struct rpc_peer *peer,
                               struct err *e) {
    struct hash_node *n = hash_find(&host->sessions, id);
    if (n == NULL) {
        err_about(e, ERR_INVALID_REQUEST, "unknown session id ", id, "");
        return NULL;
    }
    struct session *s = container_of(n, struct session, node);
    if (s->console) {
        err_about(e, ERR_INVALID_REQUEST, "unknown session id ", id, "");
        return NULL;
    }
    if (s->peer != NULL) {
        err_set(e, ERR_SESSION_BUSY, "session %s is already attached to another connection", s->id);
        session_ask_alive(s);
        return NULL;
    }
    session_attach(s, peer);
    return s;
}

/*
 * The longest detached session without a process, else the longest detached one. Lasting sessions
 * are spared: they are few, and their clients were told that they may stay away for longer.
 */
static struct session *session_least_missed(const struct process_host *host) {
    struct session *oldest = NULL;
    list_for_each(n, &host->detached) {
        struct session *s = list_entry(n, struct session, detached_node);
        if (s->lasting)
            continue;
        if (list_empty(&s->order) && list_empty(&s->leftovers))
            return s;
        if (oldest == NULL)
            oldest = s;
    }
    return oldest;
}

_Static_assert(PROCESS_HOST_LASTING_MAX < PROCESS_HOST_DETACHED_MAX, "some can be ended");

/* -- what its client asks for -- */

static uint64_t session_grant_one(uint64_t asked, uint64_t usual, uint64_t max, bool may_last) {
    return MIN(asked, may_last ? MAX(usual, max) : usual);
}

void session_grant(struct session *s, const struct session_ask *ask) {
    struct process_host *host = s->host;
    const struct process_settings *set = &host->settings;
    host->lasting_count -= s->lasting;
    bool may_last = host->lasting_count < PROCESS_HOST_LASTING_MAX;
    if (ask->has_ttl)
        s->ttl_ms =
            session_grant_one(ask->ttl_ms, set->session_ttl_ms, set->session_ttl_max_ms, may_last);
    if (ask->has_closed_retention)
        s->closed_retention_ms =
            session_grant_one(ask->closed_retention_ms, set->closed_retention_ms,
                              set->closed_retention_max_ms, may_last);
    s->lasting =
        s->ttl_ms > set->session_ttl_ms || s->closed_retention_ms > set->closed_retention_ms;
    host->lasting_count += s->lasting;
}

void session_keep_unacked(struct session *s, bool on) {
    s->output_ack = on;
    list_for_each(n, &s->order) {
        struct process *p = list_entry(n, struct process, order);
        proc_keep_unacked(&p->proc, on);
        process_retain_note_ack(p);
    }
}

void session_named(struct session *s, struct str client) {
    const char *subject = s->peer->conn->subject;
    free(s->client);
    free(s->subject);
    s->client = str_dup((struct str){client.p, utf8_cut(client.p, client.n, SESSION_CLIENT_MAX)});
    s->subject = subject != NULL ? strdup(subject) : NULL;
    session_changed(s);
}

void session_detach(struct session *s) {
    struct process_host *host = s->host;
    process_retain_note_detach(s);
    s->peer = NULL;
    attach_end_session(s);
    host->hooks->detached(s);
    session_changed(s);
    loop_timer_del(host->loop, &s->probe);
    /* planted: stale-session */
    if (host->stopping || s->ttl_ms == 0 ||
        loop_timer_set(host->loop, &s->ttl, s->ttl_ms * LOOP_MS) < 0) {
        session_end(s);
        return;
    }
    list_append(&host->detached, &s->detached_node);
    host->detached_count++;
    proc_flow_open(&s->flow); /* without a client, output is read and retained */
    if (host->detached_count > PROCESS_HOST_DETACHED_MAX)
        session_end(session_least_missed(host));
}

void session_end(struct session *s) {
    struct process_host *host = s->host;
    loop_timer_del(host->loop, &s->ttl);
    loop_timer_del(host->loop, &s->probe);
    if (!list_empty(&s->detached_node)) {
        list_remove(&s->detached_node);
        host->detached_count--;
    }
    hash_remove(&host->sessions, &s->node);
    hash_remove(&host->shown, &s->shown_node);
    host->lasting_count -= s->lasting;
    host->console_count -= s->console;
    for (struct list *n; (n = list_first(&s->order)) != NULL;)
        process_kill(list_entry(n, struct process, order));
    for (struct list *n; (n = list_first(&s->leftovers)) != NULL;)
        process_kill(list_entry(n, struct process, link));
    snapshot_end_all(s);
    host->hooks->ended(s);
    ledger_remove(&host->ledger, &s->row, str_of(s->shown), (struct str){NULL, 0});
    hash_fini(&s->processes);
    retention_leave(&host->outputs);
    retention_leave(&host->entries);
    free(s->client);
    free(s->subject);
    free(s);
    host->hooks->freed(host);
}
