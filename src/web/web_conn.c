#include "web/web_conn.h"

#include "net/conn.h"
#include "web/web_program.h"
#include "web/web_request.h"

#include <errno.h>

struct web_conn *web_conn_get(struct rpc_call *c, struct err *e) {
    struct session *s = c->peer->user;
    if (s->web != NULL)
        return s->web;
    struct web_conn *w = calloc(1, sizeof *w);
    if (w == NULL) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    w->host = s->host->web;
    w->peer = c->peer;
    list_init(&w->requests);
    s->web = w;
    return w;
}

void web_conn_free(struct web_conn *c) {
    if (c == NULL)
        return;
    web_program_end(steal_ptr(&c->program));
    for (struct list *n; (n = list_first(&c->requests)) != NULL;)
        web_request_free(list_entry(n, struct web_request, node));
    free(c);
}

void web_conn_detached(struct session *s) {
    web_conn_free(steal_ptr(&s->web));
}

struct web_program *web_conn_program(struct web_conn *c, struct err *e) {
    if (c->program == NULL)
        c->program = web_program_new(c, e);
    return c->program;
}

void web_conn_count(struct web_conn *c, int change) {
    bool was_idle = c->count == 0;
    c->count += (size_t)change;
    bool idle = c->count == 0;
    if (c->program != NULL && was_idle != idle)
        web_program_idle(c->program, idle);
}

bool web_conn_is_held(const struct web_conn *c) {
    return conn_backlog(c->peer->conn) >= CONN_OUT_HIGH;
}

void web_conn_resume(struct web_conn *c) {
    if (c != NULL && c->program != NULL)
        web_program_resume(c->program);
}

static struct web_request *web_find(const struct web_conn *c, uint32_t id) {
    list_for_each(n, &c->requests) {
        struct web_request *q = list_entry(n, struct web_request, node);
        if (q->id == id)
            return q;
    }
    return NULL;
}

int web_conn_frame(struct web_conn *c, const struct http_wire_frame *f) {
    struct web_request *q = web_find(c, f->id);
    if (q == NULL) /* it was cancelled, unless its id was never given */
        return f->id <= c->last_id ? 0 : -EPROTO;
    switch (f->type) {
    case HTTP_WIRE_HEADERS: return web_request_headers(q, f->payload);
    case HTTP_WIRE_DATA: return web_request_data(q, f->payload);
    case HTTP_WIRE_END: return web_request_end(q, f->payload);
    case HTTP_WIRE_HELLO:
    case HTTP_WIRE_REQUEST:
    case HTTP_WIRE_BODY:
    case HTTP_WIRE_CANCEL:
    case HTTP_WIRE_SLOT:
    case HTTP_WIRE_TAKEN: break;
    }
    return -EPROTO;
}

void web_conn_forget(struct web_conn *c) {
    c->program = NULL;
}

void web_conn_lost(struct web_conn *c, const char *why) {
    c->program = NULL;
    list_for_each(n, &c->requests) {
        struct web_request *q = list_entry(n, struct web_request, node);
        if (!q->ended) /* else its answer waits for room */
            web_request_fail(q, why);
    }
}
