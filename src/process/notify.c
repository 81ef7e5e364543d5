#include "process/notify.h"

#include "json/base64.h"
#include "json/jsonw.h"
#include "process/process_json.h"

#include <inttypes.h>
#include <stdio.h>

const char *notify_stream_name(enum outlog_stream stream) {
    static const char *const names[] = {
        [OUTLOG_STDOUT] = "stdout", [OUTLOG_STDERR] = "stderr", [OUTLOG_PTY] = "pty"};
    return names[stream];
}

struct notify_to notify_owner(const struct process *p) {
    const struct rpc_peer *peer = p->session->peer;
    return (struct notify_to){peer ? peer->conn : NULL, 0};
}

static char *notify_put(char *dst, struct str s) {
    return s.n > 0 ? mempcpy(dst, s.p, s.n) : dst;
}

/* Writes `{"method":METHOD,"params":{"processId":ID`; returns room for `rest` bytes, or NULL. */
static char *notify_begin(struct notify_to to, const struct process *p, const char *method,
                          size_t rest, size_t *total) {
    char head[96];
    int n = snprintf(head, sizeof head, "{\"method\":\"%s\",\"params\":{", method);
    if (to.attach_id != 0)
        n += snprintf(head + n, sizeof head - (size_t)n, "\"attachId\":%" PRIu64 ",", to.attach_id);
    n += snprintf(head + n, sizeof head - (size_t)n, "\"processId\":");
    *total = (size_t)n + p->id_json.n + rest;
    char *at = to.conn ? conn_reserve(to.conn, *total) : NULL;
    if (at == NULL)
        return NULL;
    at = notify_put(at, (struct str){head, (size_t)n});
    return notify_put(at, p->id_json);
}

void notify_output(struct notify_to to, const struct process *p, uint64_t seq,
                   enum outlog_stream stream, const char *data, size_t n) {
    char mid[96];
    size_t total;
    int mid_n = snprintf(mid, sizeof mid, ",\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"",
                         seq, notify_stream_name(stream));
    char *at =
        notify_begin(to, p, "process/output", (size_t)mid_n + base64_encoded_len(n) + 3, &total);
    if (at == NULL)
        return;
    at = notify_put(at, (struct str){mid, (size_t)mid_n});
    at += base64_encode(at, data, n);
    notify_put(at, STR_LIT("\"}}"));
    conn_commit(to.conn, total);
}

void notify_event(struct notify_to to, const struct process *p, const char *method,
                  struct str rest) {
    size_t total;
    char *at = notify_begin(to, p, method, rest.n + 2, &total);
    if (at == NULL)
        return;
    at = notify_put(at, rest);
    notify_put(at, STR_LIT("}}"));
    conn_commit(to.conn, total);
}

void notify_exited(struct notify_to to, const struct process *p, uint64_t seq) {
    _cleanup_buf_ struct buf rest = BUF_INIT(1024);
    int r = buf_putf(&rest, ",\"seq\":%" PRIu64 ",\"exitCode\":%d,\"sandboxDenied\":%s", seq,
                     p->proc.exit_code, p->sandbox_denied ? "true" : "false");
    if (r == 0)
        r = process_json_put_extra(&p->proc, "timedOut", &rest);
    if (r == 0)
        r = buf_putz(&rest, ",\"resources\":");
    if (r == 0)
        r = process_json_put_resources(&p->proc, &rest);
    if (r == 0)
        notify_event(to, p, "process/exited", buf_str(&rest));
    else if (to.conn != NULL) /* the client must not miss an event */
        conn_end(to.conn, 1011, "out of memory");
}

void notify_closed(struct notify_to to, const struct process *p, uint64_t seq) {
    char rest[32];
    int n = snprintf(rest, sizeof rest, ",\"seq\":%" PRIu64, seq);
    notify_event(to, p, "process/closed", (struct str){rest, (size_t)n});
}

void notify_started(struct process *p) {
    char rest[64];
    int n = snprintf(rest, sizeof rest, ",\"pid\":%d,\"startedAtMs\":%" PRId64, (int)p->proc.pid,
                     p->proc.started_ms);
    if (p->session->wants_started)
        notify_event(notify_owner(p), p, "process/started", (struct str){rest, (size_t)n});
}

void notify_failed(struct process *p, const char *message) {
    _cleanup_buf_ struct buf rest = BUF_INIT(ERR_MSG_MAX * 6 + 64);
    if (p->session->wants_failed && buf_putz(&rest, ",\"message\":") == 0 &&
        jsonw_str(&rest, str_of(message)) == 0)
        notify_event(notify_owner(p), p, "process/failed", buf_str(&rest));
}
