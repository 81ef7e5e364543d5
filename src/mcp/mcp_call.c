#include "mcp/mcp_internal.h"

#include "json/json_put.h"

#include <errno.h>
#include <sodium.h>

/* -- the request -- */

bool mcp_call_can_ask(const struct json_node *capabilities) {
    const struct json_node *e = mcp_message_object(capabilities, "elicitation");
    return e != NULL &&
           (e->count == 0 || json_get(e, "form") != NULL || json_get(e, "url") == NULL);
}

static struct mcp_request *call_new(struct mcp *m, const struct mcp_message *msg, struct str id) {
    struct mcp_request *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->id = BUF_INIT(MCP_ID_MAX);
    q->token = BUF_INIT(MCP_ID_MAX);
    q->modern = msg->modern;
    q->since = m->loop.now;
    const struct json_node *token = msg->meta != NULL ? json_get(msg->meta, "progressToken") : NULL;
    bool usable = token != NULL && (token->type == JSON_STRING || token->type == JSON_NUMBER);
    q->can_ask = q->modern ? mcp_call_can_ask(mcp_message_object(
                                 msg->meta, "io.modelcontextprotocol/clientCapabilities"))
                           : m->can_ask;
    if (buf_put(&q->id, id.p, id.n) < 0 || (usable && json_put(&q->token, token) < 0)) {
        mcp_send_free(q);
        return NULL;
    }
    return q;
}

/* What a retry must repeat. False: memory is short. */
static bool call_digest(struct str name, const struct json_node *arguments, uint8_t out[32]) {
    _cleanup_buf_ struct buf b = BUF_INIT(MCP_LINES_MAX);
    if (buf_put(&b, name.p, name.n) < 0 || buf_putc(&b, '\0') < 0 || json_put(&b, arguments) < 0)
        return false;
    crypto_generichash(out, 32, (const unsigned char *)b.p, b.len, NULL, 0);
    return true;
}

/* -- shell -- */

/* The state of this call: its own, or the last one that was sent. `own` is memory for it. */
static int call_state(struct mcp *m, const struct mcp_message *msg, struct mcp_state *own,
                      const struct mcp_state **out, struct err *e) {
    const struct json_node *v = mcp_message_object(msg->meta, "codex/sandbox-state-meta");
    if (v == NULL)
        v = mcp_message_object(msg->meta, "codex/sandbox-state");
    *out = msg->modern || v != NULL ? own : &m->state;
    return v == NULL ? 0 : mcp_state_take(own, v, false, &m->state_doc, e);
}

static void call_fail(struct mcp *m, struct mcp_request *q, const struct err *e) {
    if (m->o->compat)
        mcp_send_error(m, buf_str(&q->id), e->code, err_str(e), (struct str){0});
    else
        mcp_send_tool_text(m, buf_str(&q->id), q->modern, err_str(e), true);
    mcp_send_free(q);
}

static void call_audit(struct mcp *m, const struct mcp_tools_args *args) {
    struct audit_argv argv;
    if (!audit_enabled(&m->audit))
        return;
    audit_begin(&m->audit, "call_started");
    audit_argv_begin(&m->audit, &argv);
    audit_argv_add(&m->audit, &argv, str_of(m->shell));
    audit_argv_add(&m->audit, &argv, args->login ? STR_LIT("-lc") : STR_LIT("-c"));
    audit_argv_add(&m->audit, &argv, args->command);
    audit_argv_end(&m->audit, &argv);
    if (args->workdir.p != NULL)
        audit_text(&m->audit, "cwd", args->workdir, 4096);
    audit_end(&m->audit);
}

static void call_shell(struct mcp *m, const struct mcp_message *msg,
                       const struct mcp_tools_args *args, const uint8_t digest[32],
                       struct mcp_request *q) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_state own = MCP_STATE_INIT;
    const struct mcp_state *state;
    int r = call_state(m, msg, &own, &state, &e);
    if (r == 0)
        call_audit(m, args);
    if (r == 0)
        r = mcp_run_start(m, args, state, digest, q, &e);
    if (r < 0)
        call_fail(m, q, &e);
    mcp_state_fini(&own);
}

/* -- write_stdin -- */

static int call_write(struct mcp_run *r, const struct mcp_tools_args *args, struct err *e) {
    if (args->signal != 0)
        proc_signal(&r->proc, args->signal);
    if (args->chars.n == 0 || r->ended)
        return 0;
    bool end = !r->proc.tty && str_eqz(args->chars, "\x04");
    int x = end ? proc_close_stdin(&r->proc) : proc_write(&r->proc, args->chars.p, args->chars.n);
    if (x == -EAGAIN)
        return err_set(e, ERR_INTERNAL, "the command does not read its input");
    return x == -ENOTCONN ? err_set(e, ERR_INTERNAL, "the input of the command has ended")
                          : MIN(x, 0);
}

static void call_write_stdin(struct mcp *m, const struct mcp_tools_args *args,
                             const uint8_t digest[32], struct mcp_request *q) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_run *r = mcp_run_session(m, args->session);
    int x = 0;
    if (r == NULL)
        x = err_set(&e, ERR_INVALID_PARAMS, "unknown session_id %llu",
                    (unsigned long long)args->session);
    else if (r->request != NULL)
        x = err_set(&e, ERR_INVALID_PARAMS, "another call waits for this session");
    else
        x = call_write(r, args, &e);
    if (x < 0 || r == NULL) {
        call_fail(m, q, &e);
        return;
    }
    q->is_write = true;
    memcpy(r->digest, digest, sizeof r->digest);
    mcp_run_wait(r, q, args->yield_ms);
}

/* -- tools/call -- */

/* A call without the shape of one; the old server took it for a method it did not know. */
static void call_malformed(struct mcp *m, struct str id, const char *why) {
    if (m->o->compat)
        mcp_send_error(m, id, ERR_METHOD_NOT_FOUND, STR_LIT("codex/sandbox-state/update"),
                       (struct str){0});
    else
        mcp_send_error(m, id, ERR_INVALID_PARAMS, str_of(why), (struct str){0});
}

static void call_run(struct mcp *m, const struct mcp_message *msg, int tool,
                     const struct json_node *arguments, const uint8_t digest[32],
                     struct mcp_request *q) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_tools_args args;
    if (mcp_tools_decode((enum mcp_tools_name)tool, arguments, m->o->compat, &args, &e) < 0) {
        call_fail(m, q, &e);
        return;
    }
    bool retry = q->modern && json_get(msg->params, "requestState") != NULL;
    bool waits = tool == MCP_TOOLS_WRITE_STDIN || args.has_yield;
    if (retry) {
        if (mcp_ask_resume(m, msg, digest, q, waits ? args.yield_ms : UINT64_MAX))
            return;
        mcp_send_error(m, buf_str(&q->id), ERR_INVALID_PARAMS,
                       STR_LIT("unknown or expired requestState"), (struct str){0});
        mcp_send_free(q);
    } else if (tool == MCP_TOOLS_SHELL) {
        call_shell(m, msg, &args, digest, q);
    } else {
        call_write_stdin(m, &args, digest, q);
    }
}

void mcp_call(struct mcp *m, const struct mcp_message *msg, struct str id) {
    struct str name = mcp_message_text(msg->params, "name");
    const struct json_node *arguments = name.p != NULL ? json_get(msg->params, "arguments") : NULL;
    uint8_t digest[32];
    if (arguments != NULL && arguments->type == JSON_NULL)
        arguments = NULL;
    if (name.p == NULL) {
        call_malformed(m, id, "tools/call needs params with a name");
        return;
    }
    if (arguments != NULL && arguments->type != JSON_OBJECT) {
        call_malformed(m, id, "arguments must be an object");
        return;
    }
    int tool = mcp_tools_find(name, m->o->compat);
    if (tool < 0) {
        mcp_send_error(m, id, ERR_INVALID_PARAMS, STR_LIT("tool not found"), (struct str){0});
        return;
    }
    struct mcp_request *q = call_digest(name, arguments, digest) ? call_new(m, msg, id) : NULL;
    if (q == NULL)
        mcp_send_error(m, id, ERR_INTERNAL, STR_LIT("out of memory"), (struct str){0});
    else
        call_run(m, msg, tool, arguments, digest, q);
}

bool mcp_call_cancel(struct mcp *m, struct str id) {
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        if (r->request == NULL || !str_eq(buf_str(&r->request->id), id))
            continue;
        if (r->request->is_write) /* the command goes on */
            mcp_send_free(mcp_run_take_request(r));
        else
            mcp_run_cancel(r);
        return true;
    }
    return false;
}
