#include "mcp/mcp_internal.h"

#include "base/log.h"
#include "json/jsonw.h"

/* A member of every result of 2026-07-28. */
static const char send_server_info[] = "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
                                       "{\"name\":\"exec-server\",\"version\":"
                                       "\"" EXEC_SERVER_VERSION "\"}}";

static void send_out(struct mcp *m, int r) {
    if (r < 0)
        log_error("an answer is lost: out of memory");
    else
        mcp_lines_send(&m->lines, buf_str(&m->reply));
    if (m->reply.cap > (1u << 20))
        buf_fini(&m->reply);
    m->reply.len = 0;
}

/* The object with the members of 2026-07-28 before its own. */
static int send_modern(struct buf *b, struct str object) {
    static const char other[] = "{\"resultType\"";
    bool complete = object.n < sizeof other || memcmp(object.p, other, sizeof other - 1) != 0;
    int r = buf_putf(b, "{%s%s", complete ? "\"resultType\":\"complete\"," : "", send_server_info);
    str_take(&object, 1);
    if (r == 0 && object.n > 1)
        r = buf_putc(b, ',');
    return r < 0 ? r : buf_put(b, object.p, object.n);
}

void mcp_send_result(struct mcp *m, struct str id, bool modern, struct str object) {
    struct buf *b = &m->reply;
    int r = buf_putf(b, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":", (int)id.n, id.p);
    if (r == 0)
        r = modern ? send_modern(b, object) : buf_put(b, object.p, object.n);
    send_out(m, r < 0 ? r : buf_putc(b, '}'));
}

void mcp_send_error(struct mcp *m, struct str id, int code, struct str message, struct str data) {
    send_out(m, mcp_message_put_error(&m->reply, id, code, message, data));
}

void mcp_send_notification(struct mcp *m, const char *method, struct str params) {
    struct buf *b = &m->reply;
    int r = buf_putf(b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":", method);
    if (r == 0)
        r = buf_put(b, params.p, params.n);
    send_out(m, r < 0 ? r : buf_putc(b, '}'));
}

void mcp_send_tool_text(struct mcp *m, struct str id, bool modern, struct str text, bool error) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    int r = buf_putz(&b, "{\"content\":[{\"type\":\"text\",\"text\":");
    if (r == 0)
        r = jsonw_str(&b, text);
    if (r == 0)
        r = buf_putf(&b, "}],\"isError\":%s}", error ? "true" : "false");
    if (r == 0)
        mcp_send_result(m, id, modern, buf_str(&b));
}

void mcp_send_free(struct mcp_request *q) {
    if (q == NULL)
        return;
    buf_fini(&q->id);
    buf_fini(&q->token);
    free(q);
}
