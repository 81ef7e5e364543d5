#include "mcp/mcp_internal.h"

#include "json/jsonw.h"

#include <inttypes.h>

#define RESULT_TEXT_MAX (8u << 20)   /* of the output as text */
#define RESULT_JSON_MAX (128u << 20) /* escapes twice */

/* -- what the old server did -- */

/* Whether the output looks as if the sandbox had refused something. */
static bool result_looks_denied(const struct mcp_run *r, struct str out, struct str err) {
    static const char *const signs[] = {"operation not permitted",
                                        "permission denied",
                                        "read-only file system",
                                        "seccomp",
                                        "sandbox",
                                        "landlock",
                                        "failed to write file"};
    if (!r->confined || r->proc.exit_code == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        size_t n = strlen(signs[i]);
        for (int k = 0; k < 2; k++) {
            struct str s = k == 0 ? out : err;
            for (; s.n >= n; str_take(&s, 1)) {
                if (strncasecmp(s.p, signs[i], n) == 0)
                    return true;
            }
        }
    }
    return r->proc.exit_code == 128 + 31; /* SIGSYS */
}

/* One stream as text; stdout and stderr share 1 MiB. */
static int result_compat_streams(const struct mcp_run *r, struct buf *out, struct buf *err) {
    struct str o = buf_str(&r->out.head), e = buf_str(&r->err.head);
    if (o.n + e.n > MCP_OUTPUT_MAX) {
        size_t third = MCP_OUTPUT_MAX / 3;
        size_t for_err = MIN(e.n, (size_t)MCP_OUTPUT_MAX - third);
        o.n = MIN(o.n, (size_t)MCP_OUTPUT_MAX - for_err);
        e.n = MIN(e.n, (size_t)MCP_OUTPUT_MAX - o.n);
    }
    int x = mcp_output_mend(out, o);
    return x < 0 ? x : mcp_output_mend(err, e);
}

/* The error that stands for the result; 0: there is none. */
static int result_compat_error(const struct mcp_run *r, struct buf *out, struct buf *err,
                               struct buf *text) {
    if (r->timed_out)
        return buf_putz(text, "sandbox error: command timed out") == 0;
    if (r->proc.signal != 0)
        return buf_putz(text, "sandbox error: command was killed by a signal") == 0;
    if (!result_looks_denied(r, buf_str(out), buf_str(err)))
        return 0;
    int x = buf_putf(text, "sandbox error: sandbox denied exec error, exit code: %d, stdout: ",
                     r->proc.exit_code);
    if (x == 0)
        x = buf_put(text, out->p, out->len);
    if (x == 0)
        x = buf_putz(text, ", stderr: ");
    if (x == 0)
        x = buf_put(text, err->p, err->len);
    return x == 0;
}

/* -- the document -- */

static int result_put_end(const struct mcp_run *r, struct buf *b) {
    if (!r->ended)
        return buf_putz(b, "{\"exit_code\":null,\"output\":");
    int code = r->timed_out ? 124 : r->proc.exit_code;
    return buf_putf(b, "{\"exit_code\":%d,\"output\":", code);
}

static int result_put_rest(const struct mcp_run *r, uint64_t omitted, struct buf *b) {
    uint64_t ns = r->ended ? r->took : r->m->loop.now - r->started;
    int x = buf_putf(
        b, ",\"duration\":{\"secs\":%" PRIu64 ",\"nanos\":%" PRIu64 "},\"timed_out\":%s",
        (uint64_t)(ns / LOOP_SEC), (uint64_t)(ns % LOOP_SEC), r->timed_out ? "true" : "false");
    if (x == 0 && r->ended && r->proc.signal != 0) {
        char name[16];
        proc_signal_name(r->proc.signal, name);
        x = buf_putf(b, ",\"signal\":\"%s\"", name);
    }
    if (x == 0 && omitted > 0)
        x = buf_putf(b, ",\"omitted_bytes\":%" PRIu64, omitted);
    if (x == 0 && !r->ended)
        x = buf_putf(b, ",\"session_id\":%" PRIu64, r->session);
    return x < 0 ? x : buf_putc(b, '}');
}

static int result_document(const struct mcp_run *r, struct str output, uint64_t omitted,
                           struct buf *b) {
    int x = result_put_end(r, b);
    if (x == 0)
        x = jsonw_str(b, output);
    return x < 0 ? x : result_put_rest(r, omitted, b);
}

/* The result of tools/call around the document. */
static int result_wrap(struct str document, bool compat, struct buf *b) {
    int x = buf_putz(b, "{\"content\":[{\"type\":\"text\",\"text\":");
    if (x == 0)
        x = jsonw_str(b, document);
    if (x == 0)
        x = buf_putz(b, compat ? "}],\"isError\":false}" : "}],\"structuredContent\":");
    if (x == 0 && !compat)
        x = buf_put(b, document.p, document.n);
    return x < 0 || compat ? x : buf_putz(b, ",\"isError\":false}");
}

/* Sends the answer. False: memory was short. */
static bool result_answer(struct mcp_run *r, const struct mcp_request *q, struct str output,
                          uint64_t omitted) {
    _cleanup_buf_ struct buf document = BUF_INIT(RESULT_JSON_MAX), b = BUF_INIT(RESULT_JSON_MAX);
    if (result_document(r, output, omitted, &document) < 0 ||
        result_wrap(buf_str(&document), r->m->o->compat, &b) < 0)
        return false;
    mcp_send_result(r->m, buf_str(&q->id), q->modern, buf_str(&b));
    return true;
}

static bool result_compat(struct mcp_run *r, const struct mcp_request *q) {
    _cleanup_buf_ struct buf out = BUF_INIT(RESULT_TEXT_MAX), err = BUF_INIT(RESULT_TEXT_MAX),
                             text = BUF_INIT(RESULT_TEXT_MAX);
    if (result_compat_streams(r, &out, &err) < 0)
        return false;
    if (result_compat_error(r, &out, &err, &text) != 0) {
        mcp_send_error(r->m, buf_str(&q->id), ERR_INTERNAL, buf_str(&text), (struct str){0});
        return true;
    }
    return buf_put(&out, err.p, err.len) == 0 && result_answer(r, q, buf_str(&out), 0);
}

static bool result_ours(struct mcp_run *r, const struct mcp_request *q) {
    _cleanup_buf_ struct buf text = BUF_INIT(RESULT_TEXT_MAX);
    uint64_t omitted;
    bool good = mcp_output_text(&r->out, &text, &omitted) == 0 &&
                result_answer(r, q, buf_str(&text), omitted);
    mcp_output_reset(&r->out);
    return good;
}

/* Notes the answer in the audit log. */
static void result_audit(const struct mcp_run *r) {
    struct audit *a = &r->m->audit;
    if (!audit_enabled(a) || !r->ended)
        return;
    audit_begin(a, "call_ended");
    audit_number(a, "pid", r->proc.pid);
    audit_number(a, "exitCode", r->timed_out ? 124 : r->proc.exit_code);
    audit_flag(a, "timedOut", r->timed_out);
    audit_end(a);
}

void mcp_result_send(struct mcp_run *r) {
    struct mcp *m = r->m;
    if (!r->ended && r->session == 0) {
        r->session = ++m->next_session;
        m->session_count++;
    }
    struct mcp_request *q = mcp_run_take_request(r);
    bool good = m->o->compat ? result_compat(r, q) : result_ours(r, q);
    if (!good)
        mcp_send_error(m, buf_str(&q->id), ERR_INTERNAL, STR_LIT("out of memory"), (struct str){0});
    result_audit(r);
    if (r->ended) {
        r->reported = true;
        if (r->session != 0)
            m->session_count--;
        r->session = 0;
    }
    mcp_send_free(q);
}
