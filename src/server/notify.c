#include "server/notify.h"

#include "json/base64.h"
#include "json/jsonw.h"

#include <inttypes.h>
#include <stdio.h>

const char *notify_stream_name(enum outlog_stream stream) {
    static const char *const names[] = {
        [OUTLOG_STDOUT] = "stdout", [OUTLOG_STDERR] = "stderr", [OUTLOG_PTY] = "pty"};
    return names[stream];
}

int notify_put_id(struct buf *b, struct str id) {
    return jsonw_str(b, id);
}

/* Room for a message of n bytes to whoever listens, or NULL. */
static char *notify_reserve(struct job *j, size_t n) {
    return j->session->peer ? conn_reserve(j->session->peer->conn, n) : NULL;
}

static char *notify_put(char *dst, struct str s) {
    return mempcpy(dst, s.p, s.n);
}

void notify_output(struct job *j, uint64_t seq, enum outlog_stream stream, const char *data,
                   size_t n) {
    static const struct str head = STR_LIT("{\"method\":\"process/output\",\"params\":{\"processId\":");
    static const struct str tail = STR_LIT("\"}}");
    char mid[96];
    int mid_n = snprintf(mid, sizeof mid, ",\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"", seq,
                         notify_stream_name(stream));
    size_t total = head.n + j->id_json.n + (size_t)mid_n + base64_encoded_len(n) + tail.n;
    char *p = notify_reserve(j, total);
    if (p == NULL)
        return;
    p = notify_put(p, head);
    p = notify_put(p, j->id_json);
    p = notify_put(p, (struct str){mid, (size_t)mid_n});
    p += base64_encode(p, data, n);
    notify_put(p, tail);
    conn_commit(j->session->peer->conn, total);
}

/* {"method":METHOD,"params":{"processId":ID,"seq":SEQ REST}} */
static void notify_event(struct job *j, const char *method, uint64_t seq, const char *rest) {
    char head[64], tail[128];
    int head_n =
        snprintf(head, sizeof head, "{\"method\":\"%s\",\"params\":{\"processId\":", method);
    int tail_n = snprintf(tail, sizeof tail, ",\"seq\":%" PRIu64 "%s}}", seq, rest);
    size_t total = (size_t)head_n + j->id_json.n + (size_t)tail_n;
    char *p = notify_reserve(j, total);
    if (p == NULL)
        return;
    p = notify_put(p, (struct str){head, (size_t)head_n});
    p = notify_put(p, j->id_json);
    notify_put(p, (struct str){tail, (size_t)tail_n});
    conn_commit(j->session->peer->conn, total);
}

void notify_exited(struct job *j, uint64_t seq) {
    char rest[96], name[16];
    int n = snprintf(rest, sizeof rest, ",\"exitCode\":%d,\"sandboxDenied\":false",
                     j->proc.exit_code);
    if (j->proc.signal != 0) {
        proc_signal_name(j->proc.signal, name);
        snprintf(rest + n, sizeof rest - (size_t)n, ",\"signal\":\"%s\"", name);
    }
    notify_event(j, "process/exited", seq, rest);
}

void notify_closed(struct job *j, uint64_t seq) {
    notify_event(j, "process/closed", seq, "");
}
