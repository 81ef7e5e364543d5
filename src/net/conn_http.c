#include "base/log.h"
#include "net/conn_internal.h"

#include <errno.h>
#include <time.h>

/* Queues raw bytes. 0 or -ENOMEM. */
static int conn_put(struct conn *c, struct str bytes) {
    char *p = sendq_reserve(&c->sendq, bytes.n);
    if (p == NULL)
        return -ENOMEM;
    memcpy(p, bytes.p, bytes.n);
    sendq_commit(&c->sendq, bytes.n);
    return 0;
}

static void conn_reply(struct conn *c, const struct http_answer *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(4096 + CONN_METRICS_MAX);
    if (http_write_reply(&b, a, (long long)time(NULL)) < 0 || conn_put(c, buf_str(&b)) < 0) {
        conn_drop(c);
        return;
    }
    conn_queued(c);
    if (a->close)
        conn_begin_flush(c);
    else
        conn_proof_await_head(c);
}

static void conn_reply_status(struct conn *c, int status, const char *body, bool close) {
    conn_reply(c, &(struct http_answer){
                      .action = HTTP_REPLY, .status = status, .body = body, .close = close});
}

static void conn_upgrade(struct conn *c, struct str key) {
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    if (http_write_upgrade(&b, key, (long long)time(NULL)) < 0 || conn_put(c, buf_str(&b)) < 0) {
        conn_drop(c);
        return;
    }
    conn_proof_serve(c);
    c->state = CONN_OPEN;
    log_debug("websocket client connected: %s", c->peer);
    conn_proof_served(c);
    c->host->ops->open(c);
    conn_queued(c); /* after open: it may report pressure */
}

static void conn_metrics(struct conn *c, struct http_answer *a) {
    _cleanup_buf_ struct buf text = BUF_INIT(CONN_METRICS_MAX);
    if (c->host->metrics(c->host->owner, &text) < 0 || buf_putc(&text, '\0') < 0) {
        conn_reply_status(c, 500, "", true);
        return;
    }
    a->action = HTTP_REPLY;
    a->body = text.p;
    conn_reply(c, a);
}

/* -- transfers -- */

void conn_http_begin(struct conn *c) {
    c->state = CONN_BODY;
    c->paused = true;
    c->want_out = false;
    conn_http_progress(c);
}

void conn_http_progress(struct conn *c) {
    /* The timer runs already, and moving it takes no memory. */
    (void)!loop_timer_set(c->host->loop, &c->timer, CONN_BODY_MS * LOOP_MS);
}

void conn_http_put(struct conn *c, struct str bytes) {
    if (conn_put(c, bytes) < 0)
        conn_break(c);
    else
        conn_queued(c);
}

void conn_http_want_out(struct conn *c) {
    c->want_out = true;
    conn_update_watch(c);
}

void conn_http_end(struct conn *c, bool close) {
    c->state = CONN_HTTP;
    c->paused = false;
    if (close)
        conn_begin_flush(c);
    else
        conn_proof_await_head(c);
    loop_defer(c->host->loop, &c->flush_task); /* the next request may have come */
}

void conn_http_abort(struct conn *c) {
    c->state = CONN_HTTP;
    conn_drop(c);
}

/* -- requests -- */

static void conn_answer(struct conn *c, const struct http_request *r) {
    static const char *const reasons[] = {[HTTP_FROM_PAGE] = "the request has an Origin header",
                                          [HTTP_BAD_HOST] = "/metrics or /v1/files from a browser "
                                                            "or by an unknown name",
                                          [HTTP_OTHER_HOST] = "Host is not that of the console",
                                          [HTTP_OTHER_ORIGIN] =
                                              "Origin is not that of the console"};
    struct conn_host *h = c->host;
    struct http_answer a = {0};
    if (c->proxy.u.sa.sa_family != AF_UNSPEC)
        forwarded_peer(h->trusted, r, &c->proxy, c->peer);
    if (h->route != NULL)
        h->route(c, r, &a);
    else if (h->metrics != NULL && str_eqz(r->path, "/metrics"))
        http_route_metrics(r, h->http_hosts, h->http_host_count, &a);
    else if (h->files && str_eqz(r->path, "/v1/files"))
        http_route_files(r, h->http_hosts, h->http_host_count, &a);
    else
        http_route(r, &a);
    if (a.refusal != HTTP_ADMITTED)
        h->ops->refused(c, a.status, a.refusal, reasons[a.refusal]);
    a.close |= conn_proof_is_short(c);
    if (a.action == HTTP_REPLY) {
        conn_reply(c, &a);
        return;
    }
    struct str header = http_header_get(r, "authorization");
    const char *refusal = auth_check(h->auth, header, (int64_t)time(NULL));
    free(steal_ptr(&c->subject)); /* of an earlier request */
    if (refusal == NULL)
        c->subject = auth_subject(h->auth, header);
    if (refusal != NULL) {
        h->ops->refused(c, 401, HTTP_ADMITTED, refusal);
        a.status = 401;
        a.body = refusal;
        a.type = NULL;
        a.close |= http_body_len(r) != 0;
        conn_reply(c, &a);
    } else if (!conn_proof_admit(c)) {
        h->ops->turned_away(c, 503, "too many connections");
        conn_reply_status(c, 503, "too many connections", true);
    } else if (a.action == HTTP_UPGRADE) {
        conn_upgrade(c, a.key);
    } else {
        conn_proof_serve(c);
        if (a.action == HTTP_METRICS)
            conn_metrics(c, &a);
        else
            h->ops->files(c, r, &a);
    }
}

void conn_http(struct conn *c) {
    while (c->state == CONN_HTTP && c->in.len > 0 && !conn_is_full(c)) {
        struct http_request r;
        int n = http_parse(c->in.p, c->in.len, &r);
        if (n == 0)
            return;
        if (n < 0) {
            conn_reply_status(c, -n, "", true);
            return;
        }
        conn_answer(c, &r);
        buf_consume(&c->in, (size_t)n);
    }
    if (c->in.len == 0)
        buf_fini(&c->in);
    if (c->state == CONN_OPEN) {
        struct buf rest = c->in;
        c->in = BUF_INIT(rest.max);
        conn_process(c, rest.p, rest.len);
        buf_fini(&rest);
    }
}
