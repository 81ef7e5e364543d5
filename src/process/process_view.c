#include "process/params.h"
#include "process/process.h"
#include "process/process_api.h"

#include "json/base64.h"
#include "process/process_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define LIST_MAX (4u << 20) /* bytes of a process/list answer */

/* -- process/snapshot -- */

struct snapshot_params {
    struct str process_id;
    uint64_t max_bytes;
};

static const struct jsondec_field snapshot_fields[] = {
    PARAM(snapshot_params, process_id, "processId", JSONDEC_STR),
    PARAM_OPT(snapshot_params, max_bytes, "maxBytes", JSONDEC_USIZE, JSONDEC_NULLABLE),
};
static const struct jsondec_struct snapshot_struct =
    PARAM_STRUCT("SnapshotParams", snapshot_fields);

int process_view_snapshot_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct snapshot_params *)out = (struct snapshot_params){.max_bytes = UINT64_MAX};
    return jsondec(&snapshot_struct, params, out, e);
}

/* A stream by name, and the place that keeps its bytes (NULL: none). */
struct snapshot_stream {
    const char *name;
    enum outlog_stream stream;
    const struct capture *capture;
    struct capture_view view;
};

static void snapshot_measure(const struct proc *p, size_t max, struct snapshot_stream s[3]) {
    const struct capture *out = &p->out[0].capture, *err = &p->out[1].capture;
    s[0] = (struct snapshot_stream){"stdout", OUTLOG_STDOUT, p->tty ? NULL : out, {0}};
    s[1] = (struct snapshot_stream){"stderr", OUTLOG_STDERR, p->tty ? NULL : err, {0}};
    s[2] = (struct snapshot_stream){"terminal", OUTLOG_PTY, p->tty ? out : NULL, {0}};
    for (int i = 0; i < 3; i++) {
        if (s[i].capture != NULL)
            s[i].view = capture_measure(s[i].capture, &p->log, s[i].stream, max);
    }
}

/* "NAME":"<base64 of head and tail>", */
static int snapshot_put_bytes(const struct proc *p, const struct snapshot_stream *s,
                              struct buf *b) {
    _cleanup_buf_ struct buf raw = BUF_INIT(s->view.head + s->view.tail + 1);
    int r = buf_putf(b, "\"%s\":\"", s->name);
    if (r == 0 && s->capture != NULL)
        r = capture_put(s->capture, &s->view, &p->log, s->stream, &raw);
    if (r == 0)
        r = buf_reserve(b, base64_encoded_len(raw.len) + 2);
    if (r < 0)
        return r;
    if (raw.len > 0)
        b->len += base64_encode(b->p + b->len, raw.p, raw.len);
    return buf_putz(b, "\",");
}

static int snapshot_put_counts(const struct snapshot_stream s[3], struct buf *b) {
    bool truncated = s[0].view.omitted + s[1].view.omitted + s[2].view.omitted > 0;
    int r = buf_putf(b, "\"truncated\":%s,\"streams\":{", truncated ? "true" : "false");
    for (int i = 0; r == 0 && i < 3; i++)
        r = buf_putf(b,
                     "%s\"%s\":{\"headBytes\":%zu,\"tailBytes\":%zu,\"omittedBytes\":%" PRIu64
                     ",\"totalBytes\":%" PRIu64 "}",
                     i ? "," : "", s[i].name, s[i].view.head, s[i].view.tail, s[i].view.omitted,
                     s[i].view.total);
    return r < 0 ? r : buf_putz(b, "},");
}

static int snapshot_put(const struct process *p, size_t max, struct buf *b) {
    const struct proc *proc = &p->proc;
    struct snapshot_stream s[3];
    snapshot_measure(proc, max, s);
    int r = buf_putc(b, '{');
    for (int i = 0; r == 0 && i < 3; i++)
        r = snapshot_put_bytes(proc, &s[i], b);
    if (r == 0)
        r = snapshot_put_counts(s, b);
    if (r == 0)
        r = buf_putf(b, "\"running\":%s,\"nextSeq\":%" PRIu64 ",",
                     proc->state < PROC_EXITED ? "true" : "false", proc->next_seq);
    if (r == 0)
        r = process_json_put(p, "timedOut", b);
    return r < 0 ? r : buf_putc(b, '}');
}

enum rpc_outcome process_view_snapshot_run(struct rpc_call *c, void *params, struct buf *result,
                                           struct err *e) {
    const struct snapshot_params *in = params;
    struct process *p = process_of_call(c, in->process_id, e);
    if (p == NULL)
        return RPC_ERROR;
    return rpc_done(result, snapshot_put(p, (size_t)in->max_bytes, result));
}

/* -- process/list -- */

static int list_put_one(const struct process *p, struct buf *b) {
    const struct proc *proc = &p->proc;
    char pid[16] = "null", code[16] = "null", signal[24] = "null", name[16], started[24] = "null";
    if (proc->state != PROC_STARTING) {
        snprintf(pid, sizeof pid, "%d", (int)proc->pid);
        snprintf(started, sizeof started, "%" PRId64, proc->started_ms);
    }
    if (proc->state >= PROC_EXITED)
        snprintf(code, sizeof code, "%d", proc->exit_code);
    if (proc->state >= PROC_EXITED && proc->signal != 0) {
        proc_signal_name(proc->signal, name);
        snprintf(signal, sizeof signal, "\"%s\"", name);
    }
    int r = buf_putz(b, "{\"processId\":");
    if (r == 0)
        r = buf_put(b, p->id_json.p, p->id_json.n);
    if (r == 0)
        r = buf_putz(b, ",\"argv\":");
    if (r == 0)
        r = buf_put(b, p->argv_json.p, p->argv_json.n);
    if (r == 0 && p->argv_kept < p->argv_count)
        r = buf_putf(b, ",\"argvOmitted\":%zu", p->argv_count - p->argv_kept);
    if (r == 0)
        r = buf_putf(b,
                     ",\"pid\":%s,\"state\":\"%s\",\"startedAtMs\":%s,\"exitCode\":%s,"
                     "\"signal\":%s,\"timedOut\":%s,\"sandboxType\":\"%s\",\"bytes\":%" PRIu64
                     ",\"resources\":",
                     pid, process_json_word(proc), started, code, signal,
                     proc->timed_out ? "true" : "false", process_json_sandbox(p),
                     proc->out[0].capture.total + proc->out[1].capture.total);
    if (r == 0)
        r = process_json_put_resources(proc, b);
    return r < 0 ? r : buf_putc(b, '}');
}

enum rpc_outcome process_view_list_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    (void)params;
    const struct session *s = c->peer->user;
    int r = buf_putz(result, "{\"processes\":[");
    bool first = true;
    list_for_each(n, &s->order) {
        if (r == 0 && !first)
            r = buf_putc(result, ',');
        if (r == 0)
            r = list_put_one(list_entry(n, struct process, order), result);
        first = false;
        if (r == 0 && result->len > LIST_MAX) {
            err_set(e, ERR_INTERNAL, "too many processes to list");
            return RPC_ERROR;
        }
    }
    return rpc_done(result, r < 0 ? r : buf_putz(result, "]}"));
}
