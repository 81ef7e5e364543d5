#include "mcp/mcp_internal.h"

#include "json/jsonw.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

#define ASK_MESSAGE_MAX (256u << 10)

#define ASK_SCHEMA_COMPAT                                                                          \
    "\"requestedSchema\":{\"type\":\"object\",\"title\":\"Execution Permission Request\","         \
    "\"properties\":{\"reason\":{\"type\":\"string\",\"description\":\"Optional reason for "       \
    "allowing or denying execution\"}}}"
#define ASK_SCHEMA "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}"

static void ask_free(struct mcp_exec *x) {
    list_remove(&x->node);
    x->run->exec_count--;
    free(x->message);
    free(x);
}

/* Ends a question with its answer. */
static void ask_answer(struct mcp_exec *x, enum decide_action action, struct str reason) {
    struct mcp_run *r = x->run;
    const struct mcp_engine *engine = x->engine;
    void *token = x->token;
    ask_free(x);
    mcp_run_clock(r, -1);
    engine->answer(token, action, reason);
}

static void ask_take_action(struct mcp_exec *x, struct str action) {
    if (str_eqz(action, "accept"))
        ask_answer(x, x->accepted, (struct str){0});
    else if (str_eqz(action, "decline"))
        ask_answer(x, DECIDE_DENY, STR_LIT("User declined execution"));
    else if (str_eqz(action, "cancel"))
        ask_answer(x, DECIDE_DENY, STR_LIT("User cancelled execution"));
    else
        ask_answer(x, DECIDE_DENY, STR_LIT("the client could not ask its user"));
}

/* -- handshake era -- */

static void ask_send(struct mcp_exec *x) {
    struct mcp *m = x->run->m;
    _cleanup_buf_ struct buf b = BUF_INIT(4 * ASK_MESSAGE_MAX);
    int r = buf_putf(&b,
                     "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
                     ",\"method\":\"elicitation/create\",\"params\":{",
                     x->id);
    if (r == 0 && m->o->compat)
        r = buf_putf(&b, "\"_meta\":{\"progressToken\":%" PRIu64 "},", x->id);
    if (r == 0 && m->form_mode)
        r = buf_putz(&b, "\"mode\":\"form\",");
    if (r == 0)
        r = buf_putz(&b, "\"message\":");
    if (r == 0)
        r = jsonw_str(&b, str_of(x->message));
    if (r == 0)
        r = buf_putz(&b, m->o->compat ? "," ASK_SCHEMA_COMPAT "}}" : "," ASK_SCHEMA "}}");
    if (r < 0) {
        ask_answer(x, DECIDE_DENY, STR_LIT("out of memory"));
        return;
    }
    x->sent = true;
    mcp_lines_send(&m->lines, buf_str(&b));
}

/* The question with that number that was sent, or NULL. */
static struct mcp_exec *ask_find(struct mcp *m, uint64_t id) {
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        list_for_each(k, &r->execs) {
            struct mcp_exec *x = list_entry(k, struct mcp_exec, node);
            if (x->sent && x->id == id)
                return x;
        }
    }
    return NULL;
}

void mcp_ask_response(struct mcp *m, const struct mcp_message *msg) {
    uint64_t id;
    if (msg->id->type != JSON_NUMBER || json_u64(msg->id, &id) < 0)
        return;
    struct mcp_exec *x = ask_find(m, id);
    if (x != NULL)
        ask_take_action(x, mcp_message_text(msg->result, "action"));
}

/* -- 2026-07-28 -- */

static void ask_on_expired(struct loop_timer *t) {
    struct mcp_run *r = container_of(t, struct mcp_run, park);
    mcp_run_cancel(r);
}

static int ask_put_inputs(const struct mcp_run *r, struct buf *b) {
    bool first = true;
    int x = buf_putz(b, "{\"resultType\":\"input_required\",\"inputRequests\":{");
    list_for_each(n, &r->execs) {
        const struct mcp_exec *e = list_entry(n, struct mcp_exec, node);
        if (x == 0)
            x = buf_putf(b,
                         "%s\"p%" PRIu64
                         "\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\","
                         "\"message\":",
                         first ? "" : ",", e->id);
        if (x == 0)
            x = jsonw_str(b, str_of(e->message));
        if (x == 0)
            x = buf_putz(b, "," ASK_SCHEMA "}}");
        first = false;
    }
    return x < 0 ? x : buf_putf(b, "},\"requestState\":\"%s\"}", r->state);
}

void mcp_ask_park(struct mcp_run *r) {
    uint8_t bytes[16];
    _cleanup_buf_ struct buf b = BUF_INIT(64u << 20);
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(r->state, sizeof r->state, bytes, sizeof bytes);
    struct mcp_request *q = mcp_run_take_request(r);
    if (ask_put_inputs(r, &b) == 0 &&
        loop_timer_set(&r->m->loop, &r->park, MCP_PARK_MS * LOOP_MS) == 0) {
        mcp_send_result(r->m, buf_str(&q->id), true, buf_str(&b));
    } else {
        mcp_send_error(r->m, buf_str(&q->id), ERR_INTERNAL, STR_LIT("out of memory"),
                       (struct str){0});
        mcp_run_cancel(r);
    }
    mcp_send_free(q);
}

static void ask_on_task(struct loop_task *t) {
    struct mcp_run *r = container_of(t, struct mcp_run, ask_task);
    if (r->request != NULL && r->request->modern && !list_empty(&r->execs))
        mcp_ask_park(r);
}

/* Takes the answers of a retry to the questions that they name. */
static void ask_take_responses(struct mcp_run *r, const struct json_node *responses) {
    list_for_each(n, &r->execs) {
        struct mcp_exec *x = list_entry(n, struct mcp_exec, node);
        char key[32];
        snprintf(key, sizeof key, "p%" PRIu64, x->id);
        const struct json_node *answer = mcp_message_object(responses, key);
        if (answer != NULL)
            ask_take_action(x, mcp_message_text(answer, "action"));
    }
}

bool mcp_ask_resume(struct mcp *m, const struct mcp_message *msg, const uint8_t digest[32],
                    struct mcp_request *q, uint64_t ms) {
    struct str state = mcp_message_text(msg->params, "requestState");
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        if (r->state[0] == '\0' || state.n != 32 || sodium_memcmp(r->state, state.p, 32) != 0 ||
            sodium_memcmp(r->digest, digest, sizeof r->digest) != 0)
            continue;
        r->state[0] = '\0';
        loop_timer_del(&m->loop, &r->park);
        ask_take_responses(r, mcp_message_object(msg->params, "inputResponses"));
        mcp_run_resume(r, q, ms);
        return true;
    }
    return false;
}

/* -- both -- */

void mcp_ask_init(struct mcp_run *r) {
    r->ask_task.fn = ask_on_task;
    r->park.fn = ask_on_expired;
}

void mcp_ask(struct mcp_run *r, const struct mcp_engine *engine, void *token, char *message,
             enum decide_action accepted) {
    struct mcp *m = r->m;
    struct mcp_exec *x = r->exec_count < MCP_EXECS_MAX ? calloc(1, sizeof *x) : NULL;
    if (x == NULL || message == NULL) {
        free(x);
        free(message);
        engine->answer(token, DECIDE_DENY, STR_LIT("too many questions are open"));
        return;
    }
    *x = (struct mcp_exec){.run = r,
                           .engine = engine,
                           .token = token,
                           .accepted = accepted,
                           .id = m->next_ask++,
                           .message = message};
    list_append(&r->execs, &x->node);
    r->exec_count++;
    mcp_run_clock(r, 1);
    if (r->modern)
        loop_defer(&m->loop, &r->ask_task);
    else
        ask_send(x);
}

void mcp_ask_withdraw(struct mcp_exec *x) {
    struct mcp_run *r = x->run;
    if (x->sent) {
        char text[96];
        int n = snprintf(text, sizeof text,
                         "{\"requestId\":%" PRIu64 ",\"reason\":\"no longer needed\"}", x->id);
        mcp_send_notification(r->m, "notifications/cancelled", (struct str){text, (size_t)n});
    }
    ask_free(x);
    mcp_run_clock(r, -1);
}

void mcp_ask_withdraw_all(struct mcp_run *r) {
    list_for_each(n, &r->execs) {
        mcp_ask_withdraw(list_entry(n, struct mcp_exec, node));
    }
}
