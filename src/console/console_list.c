#include "console/console_list.h"

#include "base/utc.h"
#include "console/console.h"
#include "console/console_methods.h"
#include "json/jsonw.h"
#include "process/params.h"
#include "process/process.h"
#include "process/process_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define LIST_ROWS_MIN 32                          /* rows of an answer that is not at its end */
#define LIST_ROOM (CONSOLE_LIST_MAX + (1u << 20)) /* bytes, with a last row beyond the maximum */

struct list_params {
    uint64_t after;
    bool has_after;
};

static const struct jsondec_field list_fields[] = {
    PARAM_HAS(list_params, after, has_after, "after", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct list_struct = PARAM_STRUCT("ListParams", list_fields);

int console_list_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct list_params *)out = (struct list_params){.has_after = false};
    return params == NULL ? 0 : jsondec(&list_struct, params, out, e);
}

/* -- rows -- */

static int list_put_text(struct buf *b, const char *name, const char *text) {
    int r = buf_putf(b, ",\"%s\":", name);
    if (r == 0)
        r = text != NULL ? jsonw_str(b, str_of(text)) : buf_putz(b, "null");
    return r;
}

static int list_put_session(const struct session *s, struct buf *b) {
    int r = buf_putf(b, "%s{\"sessionId\":\"%s\"", b->len > 0 ? "," : "", s->shown);
    if (r == 0)
        r = list_put_text(b, "client", s->client);
    if (r == 0)
        r = list_put_text(b, "peer", s->peer != NULL ? s->peer->conn->peer : NULL);
    return r < 0 ? r
                 : buf_putf(b, ",\"connected\":%s,\"console\":%s,\"startedAtMs\":%" PRId64 "}",
                            s->peer != NULL ? "true" : "false", s->console ? "true" : "false",
                            s->started_ms);
}

/* Values of a process that may be null, as JSON. */
struct list_values {
    char pid[16], started[24], ended[24], code[16], signal[24], size[48];
};

static void list_size(const struct proc *p, char out[48]) {
    struct winsize w;
    if (p->tty && p->out[0].io.fd >= 0 && ioctl(p->out[0].io.fd, TIOCGWINSZ, &w) == 0)
        snprintf(out, 48, "{\"rows\":%u,\"cols\":%u}", w.ws_row, w.ws_col);
}

static void list_values(const struct proc *p, struct list_values *v) {
    char name[16];
    *v = (struct list_values){"null", "null", "null", "null", "null", "null"};
    list_size(p, v->size);
    if (p->state == PROC_STARTING)
        return;
    snprintf(v->pid, sizeof v->pid, "%d", (int)p->pid);
    snprintf(v->started, sizeof v->started, "%" PRId64, p->started_ms);
    if (p->state < PROC_EXITED)
        return;
    int64_t ran = (int64_t)((p->ended - p->started) / LOOP_MS);
    snprintf(v->ended, sizeof v->ended, "%" PRId64, p->started_ms + ran);
    snprintf(v->code, sizeof v->code, "%d", p->exit_code);
    if (p->signal != 0) {
        proc_signal_name(p->signal, name);
        snprintf(v->signal, sizeof v->signal, "\"%s\"", name);
    }
}

static int list_put_process(const struct process *p, bool first, struct buf *b) {
    const struct proc *proc = &p->proc;
    struct list_values v;
    struct str argv = p->argv_json.n > 0 ? p->argv_json : STR_LIT("[]");
    struct str cwd = p->cwd_json.n > 0 ? p->cwd_json : STR_LIT("null");
    list_values(proc, &v);
    int r =
        buf_putf(b, "%s{\"sessionId\":\"%s\",\"processId\":", first ? "" : ",", p->session->shown);
    if (r == 0)
        r = buf_put(b, p->id_json.p, p->id_json.n);
    if (r == 0)
        r = buf_putz(b, ",\"argv\":");
    if (r == 0)
        r = buf_put(b, argv.p, argv.n);
    if (r == 0 && p->argv_kept < p->argv_count)
        r = buf_putf(b, ",\"argvOmitted\":%zu", p->argv_count - p->argv_kept);
    if (r == 0)
        r = buf_putz(b, ",\"cwd\":");
    if (r == 0)
        r = buf_put(b, cwd.p, cwd.n);
    if (r < 0)
        return r;
    return buf_putf(
        b,
        ",\"tty\":%s,\"size\":%s,\"pid\":%s,\"state\":\"%s\",\"startedAtMs\":%s,\"endedAtMs\":%s,"
        "\"exitCode\":%s,\"signal\":%s,\"timedOut\":%s,\"sandbox\":\"%s\",\"bytes\":%" PRIu64
        ",\"rev\":%" PRIu64 "}",
        proc->tty ? "true" : "false", v.size, v.pid, process_json_word(proc), v.started, v.ended,
        v.code, v.signal, proc->timed_out ? "true" : "false", p->confined ? "sandboxed" : "none",
        proc->out[0].capture.total + proc->out[1].capture.total, p->row.revision);
}

/* The rows that are gone: sessions, or processes. */
static int list_put_gone(const struct ledger *l, uint64_t after, bool sessions, struct buf *b) {
    bool first = true;
    int r = 0;
    for (const struct list *n = ledger_gone_after(l, after); r == 0 && n != &l->gone; n = n->next) {
        const struct ledger_gone *g = list_entry(n, struct ledger_gone, node);
        bool is_session = g->n == UUID_LEN;
        if (is_session != sessions)
            continue;
        r = buf_putf(b, sessions ? "%s\"%.*s\"" : "%s[\"%.*s\",", first ? "" : ",", UUID_LEN,
                     g->ids);
        if (r == 0 && !is_session)
            r = buf_put(b, g->ids + UUID_LEN, g->n - UUID_LEN);
        if (r == 0 && !is_session)
            r = buf_putc(b, ']');
        first = false;
    }
    return r;
}

/* Puts processes into b, sessions into their own buffer. *seen is the revision of the last row. */
static int list_put_rows(const struct console *k, uint64_t after, struct buf *sessions,
                         struct buf *b, uint64_t *seen) {
    const struct ledger *l = &k->processes->ledger;
    uint64_t end = loop_slice(k->loop);
    size_t rows = 0, limit = b->len + CONSOLE_LIST_MAX;
    bool first = true;
    int r = 0;
    *seen = l->revision;
    for (const struct list *n = ledger_rows_after(l, after); r == 0 && n != &l->rows; n = n->next) {
        const struct ledger_row *row = list_entry(n, struct ledger_row, node);
        if (b->len + sessions->len >= limit ||
            (rows >= LIST_ROWS_MIN && loop_slice_over(k->loop, end))) {
            *seen = list_entry(n->prev, struct ledger_row, node)->revision;
            break;
        }
        rows++;
        if (row->kind == LEDGER_SESSION) {
            r = list_put_session(container_of(row, struct session, row), sessions);
        } else {
            r = list_put_process(container_of(row, struct process, row), first, b);
            first = false;
        }
    }
    return r;
}

static int list_put(const struct console *k, uint64_t after, bool full, struct buf *b) {
    const struct ledger *l = &k->processes->ledger;
    _cleanup_buf_ struct buf sessions = BUF_INIT(LIST_ROOM);
    uint64_t seen = 0;
    int r = buf_putf(b, "{\"full\":%s,\"nowMs\":%lld,\"removed\":[", full ? "true" : "false",
                     (long long)utc_now_ms());
    if (r == 0 && !full)
        r = list_put_gone(l, after, false, b);
    if (r == 0)
        r = buf_putz(b, "],\"removedSessions\":[");
    if (r == 0 && !full)
        r = list_put_gone(l, after, true, b);
    if (r == 0)
        r = buf_putz(b, "],\"processes\":[");
    if (r == 0)
        r = list_put_rows(k, after, &sessions, b, &seen);
    if (r == 0)
        r = buf_putz(b, "],\"sessions\":[");
    if (r == 0)
        r = buf_put(b, sessions.p, sessions.len);
    return r < 0 ? r
                 : buf_putf(b, "],\"revision\":%" PRIu64 ",\"more\":%s}", seen,
                            seen < l->revision ? "true" : "false");
}

enum rpc_outcome console_list_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    (void)e;
    const struct list_params *p = params;
    const struct console *k = console_of_call(c);
    bool full = !p->has_after || ledger_is_old(&k->processes->ledger, p->after);
    return rpc_done(result, list_put(k, full ? 0 : p->after, full, result));
}
