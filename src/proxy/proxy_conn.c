#include "proxy/proxy_conn.h"

#include "base/log.h"
#include "proxy/proxy_reply.h"
#include "proxy/proxy_socks.h"

#include <errno.h>
#include <stdio.h>

#define CONN_BUFFER_MAX (PROXY_LANE_MAX + PROXY_HEAD_MAX + PROXY_RELAY)

static void conn_pump(struct proxy_conn *c);
static void conn_on_client(struct loop_io *io, uint32_t events);
static void conn_on_server(struct loop_io *io, uint32_t events);
static void conn_on_timer(struct loop_timer *t);
static void conn_on_free(struct loop_task *t);
static void conn_on_dialled(struct dial *d);
static bool conn_on_address(struct dial *d, const struct sock_addr *a);
static bool conn_on_alias(struct resolve_request *q, struct str name);

/* -- life -- */

void proxy_conn_new(struct proxy *p, int fd, const struct sock_addr *from, bool socks) {
    struct proxy_conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    c->proxy = p;
    c->host = p->host;
    c->socks = socks;
    c->state = socks ? PROXY_CONN_GREETING : PROXY_CONN_REQUEST;
    c->protocol = socks ? PROXY_SOCKS_TCP : PROXY_HTTP;
    c->client = (struct loop_io){.fd = fd, .fn = conn_on_client};
    c->server = (struct loop_io){.fd = -1, .fn = conn_on_server};
    c->timer.fn = conn_on_timer;
    c->free_task.fn = conn_on_free;
    c->dial.done = conn_on_dialled;
    c->dial.allow = conn_on_address;
    c->dial.request.alias = conn_on_alias;
    c->dial.fd = -1;
    c->in = c->up = c->from = c->down = BUF_INIT(CONN_BUFFER_MAX);
    sock_tune_tcp(fd);
    sock_peer_name(&from->u.sa, c->peer);
    list_append(&p->conns, &c->node);
    p->count++;
    p->host->conns++;
    if (loop_timer_set(p->host->loop, &c->timer, loop_ms(PROXY_HEAD_MS)) < 0 ||
        loop_io_add(p->host->loop, &c->client, EPOLLIN) < 0)
        proxy_conn_drop(&c->node);
}

void proxy_conn_drop(struct list *node) {
    struct proxy_conn *c = list_entry(node, struct proxy_conn, node);
    struct proxy_host *h = c->host;
    if (c->state == PROXY_CONN_ENDED)
        return;
    if (c->state == PROXY_CONN_ASKING)
        h->ops->withdraw(c->proxy, &c->question);
    c->state = PROXY_CONN_ENDED;
    dial_fini(&c->dial);
    loop_timer_del(h->loop, &c->timer);
    loop_io_del(h->loop, &c->client);
    loop_io_del(h->loop, &c->server);
    util_close_fd(&c->client.fd);
    util_close_fd(&c->server.fd);
    list_remove(&c->node);
    list_append(&h->ended, &c->node);
    c->proxy->count--;
    h->conns--;
    proxy_conn_changed(c->proxy);
    c->proxy = NULL;
    loop_defer(h->loop, &c->free_task);
}

static void conn_free(struct proxy_conn *c) {
    loop_task_del(&c->free_task);
    list_remove(&c->node);
    buf_fini(&c->in);
    buf_fini(&c->up);
    buf_fini(&c->from);
    buf_fini(&c->down);
    free(c);
}

static void conn_on_free(struct loop_task *t) {
    conn_free(container_of(t, struct proxy_conn, free_task));
}

void proxy_conn_free_ended(struct proxy_host *h) {
    list_for_each(n, &h->ended) conn_free(list_entry(n, struct proxy_conn, node));
}

static void conn_end(struct proxy_conn *c) {
    proxy_conn_drop(&c->node);
}

static void conn_timer(struct proxy_conn *c, uint64_t ms) {
    if (loop_timer_set(c->host->loop, &c->timer, loop_ms(ms)) < 0)
        conn_end(c);
}

/* -- answers of ours -- */

/* Sends what `down` holds, then ends. */
static void conn_answer(struct proxy_conn *c) {
    c->state = PROXY_CONN_ANSWERING;
    c->in.len = 0;
    loop_io_del(c->host->loop, &c->server);
    util_close_fd(&c->server.fd);
    conn_timer(c, PROXY_LINGER_MS);
    if (c->state == PROXY_CONN_ANSWERING)
        conn_pump(c);
}

/* Answers with a status and a text, or the code of SOCKS5. */
static void conn_fail(struct proxy_conn *c, int status, const char *text,
                      enum proxy_socks_code code) {
    int r = c->socks ? proxy_reply_socks(&c->down, code) : proxy_reply_text(&c->down, status, text);
    if (r < 0)
        conn_end(c);
    else
        conn_answer(c);
}

/* -- decisions -- */

static struct proxy_decision conn_decision(const struct proxy_conn *c, struct proxy_verdict v) {
    return (struct proxy_decision){
        .protocol = c->protocol,
        .answer = v.answer,
        .domain = true,
        .override = v.answer == PROXY_ALLOWED && c->override,
        .source = v.source,
        .reason = v.reason,
        .host = c->name.text,
        .port = c->port,
        .method = str_of(c->method),
        .client = c->peer,
    };
}

static void conn_tell(const struct proxy_conn *c, const struct proxy_decision *d) {
    if (c->host->ops->decided != NULL)
        c->host->ops->decided(c->proxy, d);
}

/* Tells the client's owner and answers the refusal. */
static void conn_refuse(struct proxy_conn *c, const struct proxy_decision *d) {
    conn_tell(c, d);
    int r = c->socks                       ? proxy_reply_socks(&c->down, PROXY_SOCKS_DENIED)
            : c->protocol == PROXY_CONNECT ? proxy_reply_blocked_tunnel(&c->down, d)
                                           : proxy_reply_blocked(&c->down, d);
    if (r < 0)
        conn_end(c);
    else
        conn_answer(c);
}

static void conn_dial(struct proxy_conn *c) {
    c->state = PROXY_CONN_DIALING;
    loop_timer_del(c->host->loop, &c->timer);
    /* A final dot keeps domains of a search list away: they would make it another name. */
    char host[PROXY_NAME_MAX + 2];
    snprintf(host, sizeof host, "%s%s", c->name.text, c->name.is_address ? "" : ".");
    int r = dial_host(&c->dial, &c->proxy->resolve, str_of(host), c->port, PROXY_DIAL_MS);
    if (r < 0)
        conn_fail(c, 503, "too many names are being looked up", PROXY_SOCKS_FAILED);
}

static void conn_verdict(struct proxy_conn *c, struct proxy_verdict v) {
    struct proxy_decision d = conn_decision(c, v);
    if (v.answer != PROXY_ALLOWED) {
        conn_refuse(c, &d);
        return;
    }
    const char *mode = proxy_judge_mode(&c->proxy->config, c->protocol, str_of(c->method));
    if (mode == NULL) {
        conn_dial(c);
        return;
    }
    conn_tell(c, &d);
    d = conn_decision(c, (struct proxy_verdict){PROXY_DENIED, "mode_guard", mode});
    d.domain = false;
    conn_refuse(c, &d);
}

/* The request is known: decides. */
static void conn_judge(struct proxy_conn *c) {
    const struct proxy_config *config = &c->proxy->config;
    struct proxy_verdict v = proxy_judge_host(config, &c->name);
    const char *mode = c->socks ? proxy_judge_mode(config, c->protocol, str_of("")) : NULL;
    if (mode != NULL) {
        struct proxy_decision d =
            conn_decision(c, (struct proxy_verdict){PROXY_DENIED, "mode_guard", mode});
        d.domain = false;
        conn_refuse(c, &d);
        return;
    }
    if (v.answer != PROXY_ASK) {
        conn_verdict(c, v);
        return;
    }
    c->question = (struct proxy_question){
        .proxy = c->proxy, .protocol = c->protocol, .host = c->name.text, .port = c->port};
    c->asked = true;
    loop_timer_del(c->host->loop, &c->timer);
    c->state = PROXY_CONN_ASKING;
    if (c->host->ops->ask(c->proxy, &c->question)) {
        loop_io_want(c->host->loop, &c->client, 0);
        return;
    }
    c->state = PROXY_CONN_REQUEST;
    conn_verdict(c, (struct proxy_verdict){PROXY_DENIED, "decider", "not_allowed"});
}

void proxy_conn_answer(struct proxy_question *q, enum proxy_answer answer, const char *reason) {
    struct proxy_conn *c = container_of(q, struct proxy_conn, question);
    c->state = PROXY_CONN_REQUEST;
    c->override = answer == PROXY_ALLOWED;
    conn_verdict(c,
                 (struct proxy_verdict){answer, "decider", c->override ? "not_allowed" : reason});
}

/* -- the way to the host -- */

/* Every address of the host must be allowed: one alone could be picked by whoever answers. */
static bool conn_on_address(struct dial *d, const struct sock_addr *a) {
    struct proxy_conn *c = container_of(d, struct proxy_conn, dial);
    const struct resolve_request *q = &d->request;
    const struct proxy_config *config = &c->proxy->config;
    struct proxy_name host;
    (void)a;
    for (size_t i = 0; i < q->n && !c->local && !c->aliased; i++) {
        proxy_name_of(&q->addr[i], &host);
        c->local = proxy_host_guards(c->host, &q->addr[i]) ||
                   !proxy_judge_address(config, &c->name, &q->addr[i]);
        c->aliased = !c->name.is_address && proxy_rules_match(&config->rules, PROXY_DENY, &host);
    }
    return !c->local && !c->aliased;
}

static void conn_begin_relay(struct proxy_conn *c) {
    int r = 0;
    if (c->socks)
        r = proxy_reply_socks(&c->down, PROXY_SOCKS_OK);
    else if (c->protocol == PROXY_CONNECT)
        r = proxy_reply_tunnel(&c->down);
    if (r < 0) {
        conn_end(c);
        return;
    }
    c->state = PROXY_CONN_RELAYING;
    conn_pump(c);
}

/* A name that is an alias of a denied one is denied. */
static bool conn_on_alias(struct resolve_request *q, struct str name) {
    struct dial *d = container_of(q, struct dial, request);
    struct proxy_conn *c = container_of(d, struct proxy_conn, dial);
    struct proxy_name alias;
    c->aliased |= proxy_name_parse(name, &alias) < 0 ||
                  proxy_rules_match(&c->proxy->config.rules, PROXY_DENY, &alias);
    return !c->aliased;
}

/* Whether a connection leads back to the server, by any address of this host. */
static bool conn_is_own(const struct proxy_conn *c, int fd) {
    struct sock_addr a, b;
    socklen_t an = sizeof a, bn = sizeof b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    const uint16_t *own = c->host->own_ports;
    if (fd < 0 || (c->port != own[0] && c->port != own[1]) || getsockname(fd, &a.u.sa, &an) < 0 ||
        getpeername(fd, &b.u.sa, &bn) < 0)
        return false;
    a.u.in.sin_port = b.u.in.sin_port; /* it lies at the same place for IPv6 */
    return sock_addr_eq(&a, &b);
}

static void conn_on_dialled(struct dial *d) {
    struct proxy_conn *c = container_of(d, struct proxy_conn, dial);
    c->local |= conn_is_own(c, d->fd);
    if (c->local || c->aliased) {
        util_close_fd(&d->fd);
        struct proxy_decision no =
            conn_decision(c, (struct proxy_verdict){PROXY_DENIED, "baseline_policy",
                                                    c->local ? "not_allowed_local" : "denied"});
        conn_refuse(c, &no);
        return;
    }
    struct proxy_verdict v = {PROXY_ALLOWED, c->asked ? "decider" : "baseline_policy",
                              c->asked ? "not_allowed" : "allow"};
    struct proxy_decision yes = conn_decision(c, v);
    conn_tell(c, &yes);
    if (d->fd < 0) {
        log_debug("proxy: %s", err_msg(&d->err));
        conn_fail(c, 502, "upstream failure", PROXY_SOCKS_REFUSED);
        return;
    }
    c->server.fd = steal_fd(&d->fd);
    conn_begin_relay(c);
}

/* -- requests -- */

static void conn_take_head(struct proxy_conn *c) {
    struct proxy_head h;
    const char *why;
    int n = proxy_head_parse(buf_str(&c->in), &h, &why);
    if (n < 0) {
        conn_fail(c, -n, why, PROXY_SOCKS_FAILED);
        return;
    }
    if (n == 0)
        return;
    c->protocol = h.connect ? PROXY_CONNECT : PROXY_HTTP;
    c->name = h.host;
    c->port = h.port;
    memcpy(c->method, h.request.method.p, h.request.method.n);
    c->lane = (struct proxy_lane){.kind = h.connect     ? PROXY_LANE_SNIFF
                                          : h.body.done ? PROXY_LANE_SHUT
                                                        : PROXY_LANE_BODY,
                                  .body = h.body};
    if (!h.connect && proxy_head_forward(&h, &c->up) < 0) {
        conn_fail(c, 431, "the head is too long", PROXY_SOCKS_FAILED);
        return;
    }
    buf_consume(&c->in, (size_t)n);
    conn_judge(c);
}

static void conn_take_greeting(struct proxy_conn *c) {
    bool plain = false;
    int n = proxy_socks_greeting(buf_str(&c->in), &plain);
    if (n == 0)
        return;
    if (n < 0 || buf_put(&c->down, plain ? "\x05\x00" : "\x05\xff", 2) < 0) {
        conn_end(c);
        return;
    }
    buf_consume(&c->in, (size_t)n);
    if (plain)
        c->state = PROXY_CONN_REQUEST;
    else
        conn_answer(c);
}

static void conn_take_socks(struct proxy_conn *c) {
    enum proxy_socks_code code = PROXY_SOCKS_FAILED;
    int n = proxy_socks_request(buf_str(&c->in), &c->name, &c->port, &code);
    if (n == 0)
        return;
    if (n < 0 || code != PROXY_SOCKS_OK) {
        conn_fail(c, 0, "", code);
        return;
    }
    buf_consume(&c->in, (size_t)n);
    c->lane = (struct proxy_lane){.kind = PROXY_LANE_SNIFF};
    conn_judge(c);
}

/* Looks at what has arrived before the relay. */
static void conn_take(struct proxy_conn *c) {
    if (c->state == PROXY_CONN_GREETING)
        conn_take_greeting(c);
    if (c->state == PROXY_CONN_REQUEST && c->socks)
        conn_take_socks(c);
    else if (c->state == PROXY_CONN_REQUEST)
        conn_take_head(c);
}

/* -- bytes -- */

/* Reads once. False: the connection broke. */
static bool conn_read(int fd, struct buf *b, bool *ended) {
    if (*ended || fd < 0)
        return true;
    if (buf_reserve(b, PROXY_RELAY) < 0)
        return false;
    ssize_t n = recv(fd, b->p + b->len, PROXY_RELAY, 0);
    if (n > 0)
        b->len += (size_t)n;
    *ended = n == 0;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Sends what it can. False: the connection broke. */
static bool conn_send(int fd, struct buf *b) {
    while (b->len > 0) {
        ssize_t n = send(fd, b->p, b->len, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        buf_consume(b, (size_t)n);
    }
    if (b->cap > PROXY_LANE_MAX)
        buf_fini(b);
    return true;
}

/* The bytes of `down` behind `at` are new: the answer may end with them. */
static void conn_measure(struct proxy_conn *c, size_t at) {
    if (c->protocol != PROXY_HTTP || !c->answered || !c->answer.measured)
        return;
    struct str bytes = {c->down.p + at, c->down.len - at};
    ssize_t n = proxy_body_feed(&c->answer.body, bytes);
    if (n < 0) /* not as announced: it ends with the connection */
        c->answer.measured = false;
    else
        c->down.len = at + (size_t)n;
    c->server_ended |= c->answer.measured && c->answer.body.done;
}

/* Moves the answer's head from `from` to `down`. False: it is none. */
static bool conn_take_answer(struct proxy_conn *c) {
    bool no_body = strcmp(c->method, "HEAD") == 0;
    c->answer.interim = true;
    while (c->from.len > 0 && c->answer.interim) {
        int n = proxy_head_answer(buf_str(&c->from), no_body, &c->down, &c->answer);
        if (n <= 0)
            return n == 0;
        buf_consume(&c->from, (size_t)n);
    }
    if (c->answer.interim)
        return true;
    c->answered = true;
    bool ok = buf_put(&c->down, c->from.p, c->from.len) == 0;
    if (ok)
        conn_measure(c, c->down.len - c->from.len);
    c->from.len = 0;
    return ok;
}

static bool conn_read_server(struct proxy_conn *c) {
    bool head = c->protocol == PROXY_HTTP && !c->answered;
    struct buf *b = head ? &c->from : &c->down;
    size_t before = b->len;
    bool ok = conn_read(c->server.fd, b, &c->server_ended);
    if (b->len > before)
        proxy_lane_heard(&c->lane, (struct str){b->p + before, b->len - before});
    if (!head && b->len > before)
        conn_measure(c, before);
    return ok;
}

/* Passes an end on when everything before it is sent. A server that still answers a request does
 * not hear of the client's end. */
static void conn_pass_ends(struct proxy_conn *c) {
    bool no_more = c->client_ended && c->in.len == 0 && c->protocol != PROXY_HTTP;
    if (no_more && c->up.len == 0 && !c->server_told) {
        c->server_told = true;
        shutdown(c->server.fd, SHUT_WR);
    }
    if (c->server_ended && c->from.len == 0 && c->down.len == 0 && !c->client_told) {
        c->client_told = true;
        shutdown(c->client.fd, SHUT_WR);
    }
}

static void conn_watch(struct proxy_conn *c) {
    bool relaying = c->state == PROXY_CONN_RELAYING;
    bool reads = relaying ? !c->client_ended && c->in.len < PROXY_LANE_MAX && c->up.len == 0
                          : c->state != PROXY_CONN_DIALING && c->state != PROXY_CONN_ASKING &&
                                !c->client_ended;
    bool hears = relaying && !c->server_ended && c->down.len == 0;
    loop_io_want(c->host->loop, &c->client,
                 (reads ? EPOLLIN : 0u) | (c->down.len > 0 ? EPOLLOUT : 0u));
    uint32_t server = (hears ? EPOLLIN : 0u) | (relaying && c->up.len > 0 ? EPOLLOUT : 0u);
    if (server == 0) /* else its end would be reported again and again */
        loop_io_del(c->host->loop, &c->server);
    else if (c->server.added)
        loop_io_want(c->host->loop, &c->server, server);
    else if (loop_io_add(c->host->loop, &c->server, server) < 0)
        conn_end(c);
}

/* A tunnel asked for a host that is not allowed. */
static void conn_betrayed(struct proxy_conn *c) {
    struct proxy_verdict v = proxy_judge_host(&c->proxy->config, &c->lane.other);
    struct proxy_decision d =
        conn_decision(c, (struct proxy_verdict){PROXY_DENIED, "baseline_policy", v.reason});
    d.host = c->lane.other.text;
    conn_tell(c, &d);
    conn_end(c);
}

/* Whether the client has ended within its body, or within what has to be looked at as a whole. */
static bool conn_is_cut(const struct proxy_conn *c) {
    bool looked = c->in.len == 0 || c->up.len > 0 || !proxy_lane_wants_more(&c->lane);
    return c->client_ended && (c->lane.kind == PROXY_LANE_BODY || !looked);
}

static void conn_relay(struct proxy_conn *c) {
    int r = proxy_lane_move(&c->lane, &c->proxy->config, &c->name, &c->in, &c->up);
    if (r == -EPERM) {
        conn_betrayed(c);
        return;
    }
    bool ok = r == 0 && !conn_is_cut(c) && conn_send(c->server.fd, &c->up);
    if (ok && c->protocol == PROXY_HTTP && !c->answered && c->from.len > 0 &&
        !conn_take_answer(c)) {
        conn_fail(c, 502, "upstream failure", PROXY_SOCKS_FAILED);
        return;
    }
    bool silent = c->protocol == PROXY_HTTP && c->server_ended && !c->answered;
    if (ok && silent && c->down.len == 0) {
        conn_fail(c, 502, "upstream failure", PROXY_SOCKS_FAILED);
        return;
    }
    ok = ok && conn_send(c->client.fd, &c->down);
    if (ok)
        conn_pass_ends(c);
    bool answered = c->protocol == PROXY_HTTP && c->client_told;
    if (!ok || (c->client_told && c->server_told))
        conn_end(c);
    else if (answered)
        conn_answer(c);
    else
        conn_watch(c);
}

static void conn_pump(struct proxy_conn *c) {
    if (c->state == PROXY_CONN_RELAYING) {
        conn_relay(c);
        return;
    }
    if (!conn_send(c->client.fd, &c->down)) {
        conn_end(c);
        return;
    }
    if (c->state == PROXY_CONN_ANSWERING && c->down.len == 0) {
        c->state = PROXY_CONN_LINGERING;
        shutdown(c->client.fd, SHUT_WR);
    }
    bool over = c->client_ended && c->state != PROXY_CONN_DIALING;
    if (over && (c->state != PROXY_CONN_ANSWERING || c->down.len == 0))
        conn_end(c);
    else
        conn_watch(c);
}

static void conn_on_client(struct loop_io *io, uint32_t events) {
    struct proxy_conn *c = container_of(io, struct proxy_conn, client);
    bool relaying = c->state == PROXY_CONN_RELAYING, ok = true;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && (c->client.events & EPOLLIN) == 0) {
        conn_end(c); /* nobody is there to take an answer */
        return;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && (c->client.events & EPOLLIN) != 0)
        ok = conn_read(c->client.fd, &c->in, &c->client_ended);
    if (!ok) {
        conn_end(c);
        return;
    }
    if (c->state >= PROXY_CONN_ANSWERING)
        c->in.len = 0;
    if (!relaying)
        conn_take(c);
    if (c->state != PROXY_CONN_ENDED)
        conn_pump(c);
}

static void conn_on_server(struct loop_io *io, uint32_t events) {
    struct proxy_conn *c = container_of(io, struct proxy_conn, server);
    if (c->state != PROXY_CONN_RELAYING) { /* the answer is ours already */
        loop_io_del(c->host->loop, &c->server);
        util_close_fd(&c->server.fd);
        return;
    }
    bool ok = true;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && c->down.len == 0)
        ok = conn_read_server(c);
    if (!ok && c->down.len == 0 && c->from.len == 0)
        conn_end(c);
    else
        conn_pump(c);
}

static void conn_on_timer(struct loop_timer *t) {
    conn_end(container_of(t, struct proxy_conn, timer));
}
