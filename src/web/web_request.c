#include "web/web_request.h"

#include "json/base64.h"
#include "json/jsonw.h"
#include "net/conn.h"
#include "web/web_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define REQUEST_BODY_FAULT "error decoding response body"
#define REQUEST_HEAD_MAX (2 * HTTP_WIRE_PAYLOAD_MAX)

/* -- life -- */

/* The program need not go on with it. */
static void request_cancel(struct web_request *q) {
    char frame[HTTP_WIRE_HEAD];
    if (!q->open || q->conn->program == NULL)
        return;
    http_wire_put_head(frame, HTTP_WIRE_CANCEL, q->id, 0);
    (void)!web_program_send(q->conn->program, (struct str){frame, sizeof frame});
}

void web_request_free(struct web_request *q) {
    struct web_conn *c = q->conn;
    request_cancel(q);
    loop_timer_del(c->host->loop, &q->timer);
    c->bodies -= q->sent_body;
    c->buffered -= q->body.bytes;
    list_remove(&q->node);
    web_conn_count(c, -1);
    web_body_fini(&q->body);
    buf_fini(&q->before);
    free(q->name);
    free(q->url);
    free(q);
}

/* The connection is gone. */
static void request_cancelled(struct rpc_call *call) {
    struct web_request *q = call->user;
    rpc_forget(call);
    web_request_free(q);
}

/* -- bodyDelta -- */

/* Queues a notification: data, or the last one (`done`), perhaps with an error. */
static void request_tell(struct web_request *q, struct str data, bool done, const char *error) {
    struct conn *conn = q->conn->peer->conn;
    struct str name = str_of(q->name), why = str_of(error);
    char seq[64];
    int seq_n = snprintf(seq, sizeof seq, ",\"seq\":%" PRIu64 ",\"deltaBase64\":\"", ++q->seq);
    struct str head = STR_LIT("{\"method\":\"http/request/bodyDelta\",\"params\":{\"requestId\":");
    struct str mid =
        done ? STR_LIT("\",\"done\":true,\"error\":") : STR_LIT("\",\"done\":false,\"error\":");
    size_t n = head.n + name.n + (size_t)seq_n + base64_encoded_len(data.n) + mid.n +
               (error != NULL ? jsonw_str_len(why) : 4) + 2;
    char *at = conn_reserve(conn, n);
    if (at == NULL)
        return;
    at = mempcpy(at, head.p, head.n);
    at = mempcpy(at, name.p, name.n);
    at = mempcpy(at, seq, (size_t)seq_n);
    at += data.n > 0 ? base64_encode(at, data.p, data.n) : 0;
    at = mempcpy(at, mid.p, mid.n);
    if (error != NULL)
        at += jsonw_str_to(at, why);
    else
        at = mempcpy(at, "null", 4);
    memcpy(at, "}}", 2);
    conn_commit(conn, n);
}

/* -- answers -- */

void web_request_fail(struct web_request *q, const char *why) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct rpc_call *call = steal_ptr(&q->call);
    if (call == NULL && !q->ended)
        request_tell(q, (struct str){NULL, 0}, true, why);
    err_set(&e, ERR_INTERNAL, "%s: %s",
            q->headed ? "failed to read http/request response body" : "http/request failed", why);
    web_request_free(q);
    if (call != NULL)
        rpc_fail(call, &e);
}

static void request_on_timer(struct loop_timer *t) {
    struct web_request *q = container_of(t, struct web_request, timer);
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "error sending request for url (%s)", q->url);
    web_request_fail(q, q->headed ? REQUEST_BODY_FAULT : err_msg(&e));
}

/* Answers with everything in one message, or piece by piece. False: another answer of the
 * connection is under way; `room` follows. */
static bool request_answer(struct web_request *q) {
    struct rpc_call *call = q->call;
    if (q->body.encoded <= WEB_PIECE) {
        struct buf *b = rpc_result_begin(call);
        int r = buf_put(b, q->before.p, q->before.len);
        rpc_result_blob(call, web_body_take(&q->body, SIZE_MAX));
        if (r == 0)
            r = buf_putz(b, "\"}");
        (void)r; /* the buffer has that much room, or the answer fails as too large */
        q->call = NULL;
        rpc_result_send(call);
        return true;
    }
    if (!rpc_stream_begin(call, buf_str(&q->before), NULL))
        return false;
    for (struct sendq_seg *s; (s = web_body_take(&q->body, WEB_PIECE)) != NULL;)
        rpc_stream_put(call, s);
    q->call = NULL;
    rpc_stream_end(call, NULL, "\"}");
    return true;
}

static void request_on_room(struct rpc_call *call) {
    struct web_request *q = call->user;
    if (q->ended && request_answer(q))
        web_request_free(q);
}

/* -- frames of the program -- */

static int request_put_headers(struct buf *b, const struct http_wire_headers *h) {
    int r = buf_putf(b, "{\"status\":%u,\"headers\":[", h->status);
    for (size_t i = 0; r == 0 && i < h->field_count; i++) {
        r = buf_putz(b, i > 0 ? ",{\"name\":" : "{\"name\":");
        if (r == 0)
            r = jsonw_str(b, h->fields[i].name);
        if (r == 0)
            r = buf_putz(b, ",\"value\":");
        if (r == 0)
            r = jsonw_str(b, h->fields[i].value);
        if (r == 0)
            r = buf_putc(b, '}');
    }
    return r < 0 ? r : buf_putz(b, "],\"bodyBase64\":\"");
}

int web_request_headers(struct web_request *q, struct str payload) {
    _cleanup_arena_ struct arena a = ARENA_INIT(HTTP_WIRE_ARENA_MAX);
    struct http_wire_headers h;
    if (q->headed || http_wire_get_headers(payload, &a, &h) < 0)
        return -EPROTO;
    q->headed = true;
    if (request_put_headers(&q->before, &h) < 0) {
        web_request_fail(q, "out of memory");
        return 0;
    }
    if (!q->stream)
        return 0;
    struct rpc_call *call = steal_ptr(&q->call);
    struct buf *b = rpc_result_begin(call);
    int r = buf_put(b, q->before.p, q->before.len);
    if (r == 0)
        r = buf_putz(b, "\"}");
    (void)r; /* the buffer has that much room */
    buf_fini(&q->before);
    rpc_result_send(call);
    return 0;
}

static int request_collect(struct web_request *q, struct str data) {
    struct web_conn *c = q->conn;
    char why[96];
    if (q->body.bytes + data.n > WEB_BODY_MAX || c->buffered + data.n > WEB_BUFFERED_MAX) {
        snprintf(why, sizeof why, "it is too large: limit is %u bytes, of all together %u",
                 WEB_BODY_MAX, WEB_BUFFERED_MAX);
        web_request_fail(q, why);
        return 0;
    }
    c->buffered += data.n;
    if (web_body_put(&q->body, data) < 0)
        web_request_fail(q, "out of memory");
    else
        rpc_charge(q->call, q->sent_body + q->body.encoded);
    return 0;
}

int web_request_data(struct web_request *q, struct str payload) {
    if (!q->headed || q->ended || payload.n == 0 || payload.n > HTTP_WIRE_DATA_MAX)
        return -EPROTO;
    if (!q->stream)
        return request_collect(q, payload);
    request_tell(q, payload, false, NULL);
    return 0;
}

int web_request_end(struct web_request *q, struct str payload) {
    struct http_wire_end end;
    if (q->ended || http_wire_get_end(payload, &end) < 0 || (!end.failed && !q->headed))
        return -EPROTO;
    q->open = false;
    if (end.failed) {
        char *why = str_dup(end.reason);
        web_request_fail(q, why != NULL ? why : "out of memory");
        free(why);
        return 0;
    }
    loop_timer_del(q->conn->host->loop, &q->timer);
    if (q->stream) {
        request_tell(q, (struct str){NULL, 0}, true, NULL);
        web_request_free(q);
        return 0;
    }
    if (web_body_finish(&q->body) < 0) {
        web_request_fail(q, "out of memory");
        return 0;
    }
    q->ended = true;
    if (request_answer(q))
        web_request_free(q);
    return 0;
}

/* -- http/request -- */

static bool request_is_active(const struct web_conn *c, const char *name) {
    list_for_each(n, &c->requests) {
        const struct web_request *q = list_entry(n, struct web_request, node);
        if (q->stream && strcmp(q->name, name) == 0)
            return true;
    }
    return false;
}

/* Whether one more fits. 0, or -EINVAL with e set. */
static int request_check_room(const struct web_conn *c, const struct web_params *p, struct err *e) {
    if (c->count >= WEB_REQUESTS_MAX)
        return err_set(e, ERR_INTERNAL,
                       "http/request failed: at most %d requests may be active on a connection",
                       WEB_REQUESTS_MAX);
    if (p->body.n > WEB_BODIES_MAX - c->bodies)
        return err_set(e, ERR_INTERNAL,
                       "http/request failed: the bodies of the active requests have more than %u "
                       "bytes",
                       WEB_BODIES_MAX);
    return 0;
}

/* A request that is not in the list yet; NULL with e set. */
static struct web_request *request_new(struct web_conn *c, const struct web_params *p,
                                       const struct web_message *m, struct err *e) {
    _cleanup_buf_ struct buf name = BUF_INIT(6 * (size_t)CONN_MSG_MAX);
    struct web_request *q = calloc(1, sizeof *q);
    if (q == NULL || jsonw_str(&name, p->request_id) < 0 || buf_putc(&name, '\0') < 0) {
        free(q);
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    *q = (struct web_request){.conn = c, .stream = p->stream};
    list_init(&q->node);
    q->name = steal_ptr(&name.p);
    q->url = str_dup(m->wire.url);
    q->before = BUF_INIT(WEB_HEADERS_MAX);
    q->timer.fn = request_on_timer;
    web_body_init(&q->body, &c->peer->conn->host->pool);
    if (q->url != NULL && !(p->stream && request_is_active(c, q->name)))
        return q;
    if (q->url == NULL)
        err_os(e, ERR_INTERNAL, ENOMEM);
    else
        err_about(e, ERR_INVALID_PARAMS, "http/request streamResponse requestId `", p->request_id,
                  "` is already active");
    free(q->name);
    free(q->url);
    free(q);
    return NULL;
}

/* Hands it to the program. 0 or -errno. */
static int request_send(struct web_request *q, const struct web_params *p,
                        const struct web_message *m) {
    _cleanup_buf_ struct buf head = BUF_INIT(REQUEST_HEAD_MAX);
    struct web_program *program = q->conn->program;
    int r = http_wire_put_request(&head, q->id, &m->wire);
    if (r == 0)
        r = web_program_send(program, buf_str(&head));
    q->open = r == 0;
    if (r == 0 && p->body.n > 0)
        r = web_program_send_body(program, q->id, p->body);
    return r;
}

static void request_begin(struct web_request *q, const struct web_params *p,
                          const struct web_message *m) {
    struct web_conn *c = q->conn;
    q->id = ++c->last_id;
    q->sent_body = p->body.n;
    c->bodies += p->body.n;
    list_append(&c->requests, &q->node);
    web_conn_count(c, 1);
    rpc_charge(q->call, q->sent_body);
    int r = request_send(q, p, m);
    if (r == 0 && p->has_timeout)
        r = loop_timer_set(c->host->loop, &q->timer, loop_ms(p->timeout_ms));
    if (r == -ENOBUFS) {
        web_request_fail(q, "the header fields are too large");
    } else if (r < 0) { /* half a request would never end */
        web_program_end(c->program);
        web_conn_lost(c, "out of memory");
    }
}

enum rpc_outcome web_request_run(struct rpc_call *call, void *params, struct buf *result,
                                 struct err *e) {
    (void)result;
    const struct web_params *p = params;
    _cleanup_web_message_ struct web_message m;
    if (web_params_message(p, getenv, &m, e) < 0)
        return RPC_ERROR;
    if (p->has_timeout && p->timeout_ms == 0) {
        err_set(e, ERR_INTERNAL, "http/request failed: route-aware request timed out");
        return RPC_ERROR;
    }
    struct web_conn *c = web_conn_get(call, e);
    if (c == NULL || request_check_room(c, p, e) < 0)
        return RPC_ERROR;
    struct web_request *q = request_new(c, p, &m, e);
    if (q == NULL)
        return RPC_ERROR;
    q->call = web_conn_program(c, e) != NULL ? rpc_defer(call, e) : NULL;
    if (q->call == NULL) {
        if (c->program != NULL && c->count == 0)
            web_program_idle(c->program, true);
        free(q->name);
        free(q->url);
        free(q);
        return RPC_ERROR;
    }
    q->call->user = q;
    q->call->cancelled = request_cancelled;
    q->call->room = request_on_room;
    request_begin(q, p, &m);
    return RPC_LATER;
}
