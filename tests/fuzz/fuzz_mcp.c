/*
 * Messages to the MCP server: lines of an input go through the reader of messages, the decoder of
 * arguments and that of sandbox states. An accepted state makes a plan or an error; a refusal has a
 * code and a valid text; an error answer is JSON with the id of its request.
 */
#include "base/utf8.h"
#include "json/json_put.h"
#include "mcp/mcp_message.h"
#include "mcp/mcp_output.h"
#include "mcp/mcp_state.h"
#include "mcp/mcp_tools.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refused(const struct err *e) {
    REQUIRE(e->code != 0 && utf8_valid(err_msg(e), strlen(err_msg(e))));
}

static void read_arguments(const struct mcp_message *m) {
    const struct json_node *arguments = mcp_message_object(m->params, "arguments");
    for (int i = 0; i < 4; i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        struct mcp_tools_args args;
        if (mcp_tools_decode(i % 2 ? MCP_TOOLS_WRITE_STDIN : MCP_TOOLS_SHELL, arguments, i / 2,
                             &args, &e) < 0)
            refused(&e);
        else
            REQUIRE(args.max_output >= 1 && args.max_output <= MCP_OUTPUT_MAX);
    }
}

static void read_state(const struct json_node *v, struct json_doc *scratch) {
    static char *const envp[] = {(char *)"HOME=/root", NULL};
    const struct mcp_state_place where = {"/tmp", envp, NULL};
    _cleanup_err_ struct err e = ERR_INIT, no = ERR_INIT;
    _cleanup_arena_ struct arena a = ARENA_INIT(32u << 20);
    struct mcp_state s = MCP_STATE_INIT;
    struct plan plan;
    bool confined;
    if (mcp_state_take(&s, v, false, scratch, &e) < 0) {
        refused(&e);
        return;
    }
    REQUIRE(s.cwd == NULL || s.cwd[0] == '/');
    if (mcp_state_plan(&s, &where, scratch, &a, &plan, &confined, &no) < 0)
        refused(&no);
    else
        REQUIRE(confined || s.open || s.network);
    mcp_state_fini(&s);
}

/* An answer with the id of a request can be read again. */
static void answer(const struct mcp_message *m, struct json_doc *scratch) {
    _cleanup_buf_ struct buf id = BUF_INIT(1u << 20), b = BUF_INIT(4u << 20);
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_message again;
    REQUIRE(json_put(&id, m->id) == 0);
    REQUIRE(mcp_message_put_error(&b, buf_str(&id), -32601, m->method, (struct str){0}) == 0);
    REQUIRE(json_parse(scratch, b.p, b.len, &e) == 0);
    REQUIRE(mcp_message_read(json_root(scratch), &again, &e) == 0);
    REQUIRE(again.kind == MCP_MESSAGE_RESPONSE);
    REQUIRE(m->id->type != JSON_STRING || str_eq(json_str(m->id), json_str(again.id)));
}

static void read_line(struct json_doc *doc, struct json_doc *scratch, struct str line) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct mcp_message m;
    if (!utf8_valid(line.p, line.n) || json_parse(doc, line.p, line.n, &e) < 0)
        return;
    if (mcp_message_read(json_root(doc), &m, &e) < 0) {
        refused(&e);
        return;
    }
    if (m.kind == MCP_MESSAGE_REQUEST) {
        answer(&m, scratch);
        read_arguments(&m);
    }
    if (m.params != NULL)
        read_state(m.params, scratch);
    read_state(mcp_message_object(m.meta, "codex/sandbox-state"), scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_doc doc, scratch;
    struct str in = {(const char *)data, size};
    _cleanup_buf_ struct buf mended = BUF_INIT(4u << 20);
    json_doc_init(&doc, 1u << 20, 1);
    json_doc_init(&scratch, 4u << 20, 1);
    REQUIRE(mcp_output_mend(&mended, in) == 0 && utf8_valid(mended.p, mended.len));
    while (in.n > 0) {
        const char *end = memchr(in.p, '\n', in.n);
        size_t n = end == NULL ? in.n : (size_t)(end - in.p);
        read_line(&doc, &scratch, (struct str){in.p, n});
        str_take(&in, end == NULL ? n : n + 1);
    }
    json_doc_fini(&doc);
    json_doc_fini(&scratch);
    return 0;
}
