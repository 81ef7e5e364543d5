#include "process/network.h"

#include "base/fdpass.h"
#include "base/log.h"
#include "base/utc.h"
#include "json/jsonw.h"
#include "process/events.h"
#include "process/notify.h"
#include "process/process.h"
#include "rpc/rpc_ask.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* A question under way. */
struct network_ask {
    struct list node;
    struct rpc_ask ask;
    struct loop_timer timer;
    struct proxy_question *question; /* borrowed */
    struct network *network;
};

/* -- the way to the listeners -- */

static void network_on_listener(struct loop_io *io, uint32_t events) {
    struct network *n = container_of(io, struct network, listeners);
    uint16_t port;
    int fd;
    (void)events;
    ssize_t got = fdpass_receive(io->fd, &port, sizeof port, MSG_DONTWAIT, &fd);
    if (got == -EAGAIN)
        return;
    if (got == (ssize_t)sizeof port && fd >= 0) {
        int r = proxy_take(&n->proxy, port, fd);
        if (r < 0 && r != -EINVAL) /* a second listener for IPv6 is not needed */
            log_warn("no proxy for a process: %s", err_os_text(-r));
        return;
    }
    util_close_fd(&fd);
    loop_io_del(n->loop, io);
    util_close_fd(&io->fd);
}

struct network *network_new(struct process_host *h, struct proxy_config *c) {
    struct network *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->loop = h->loop;
    n->listeners = (struct loop_io){.fd = -1, .fn = network_on_listener};
    list_init(&n->asks);
    proxy_init(&n->proxy, &h->proxies, c);
    n->proxy.user = n;
    return n;
}

int network_adopt(struct network *n, struct process *p, int channel) {
    n->process = p;
    n->listeners.fd = channel;
    return channel < 0 ? 0 : loop_io_add(n->loop, &n->listeners, EPOLLIN);
}

static void network_ask_free(struct network_ask *a) {
    rpc_ask_cancel(&a->ask);
    loop_timer_del(a->network->loop, &a->timer);
    list_remove(&a->node);
    free(a);
}

void network_free(struct network *n) {
    if (n == NULL)
        return;
    proxy_fini(&n->proxy); /* withdraws what is asked */
    loop_io_del(n->loop, &n->listeners);
    util_close_fd(&n->listeners.fd);
    free(n);
}

/* -- variables -- */

int network_environment(const struct network *n, struct arena *a,
                        struct env_variable out[NETWORK_VARIABLES]) {
    static const char *const http[] = {"HTTP_PROXY",
                                       "HTTPS_PROXY",
                                       "http_proxy",
                                       "https_proxy",
                                       "WS_PROXY",
                                       "WSS_PROXY",
                                       "ws_proxy",
                                       "wss_proxy",
                                       "PIP_PROXY",
                                       "NPM_CONFIG_PROXY",
                                       "NPM_CONFIG_HTTP_PROXY",
                                       "NPM_CONFIG_HTTPS_PROXY",
                                       "npm_config_proxy",
                                       "npm_config_http_proxy",
                                       "npm_config_https_proxy",
                                       "YARN_HTTP_PROXY",
                                       "YARN_HTTPS_PROXY",
                                       "BUNDLE_HTTP_PROXY",
                                       "BUNDLE_HTTPS_PROXY",
                                       "DOCKER_HTTP_PROXY",
                                       "DOCKER_HTTPS_PROXY"};
    static const char *const socks[] = {"ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"};
    static const char *const none[] = {"NO_PROXY", "no_proxy", "NPM_CONFIG_NOPROXY",
                                       "npm_config_noproxy", "BUNDLE_NO_PROXY"};
    _Static_assert(ARRAY_LEN(http) + ARRAY_LEN(socks) + ARRAY_LEN(none) + 4 <= NETWORK_VARIABLES,
                   "room");
    bool local = n->proxy.config.local;
    char text[64];
    size_t k = 0;
    snprintf(text, sizeof text, "http://127.0.0.1:%u", proxy_port(&n->proxy, PROXY_LISTEN_HTTP));
    const char *plain = arena_strdup(a, str_of(text)), *other = plain;
    uint16_t port = proxy_port(&n->proxy, PROXY_LISTEN_SOCKS);
    snprintf(text, sizeof text, "socks5h://127.0.0.1:%u", port);
    if (port != 0)
        other = arena_strdup(a, str_of(text));
    if (plain == NULL || other == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_LEN(http); i++)
        out[k++] = (struct env_variable){http[i], plain};
    for (size_t i = 0; i < ARRAY_LEN(socks); i++)
        out[k++] = (struct env_variable){socks[i], other};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        out[k++] = (struct env_variable){
            none[i],
            local ? "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16" : ""};
    out[k++] = (struct env_variable){"CODEX_NETWORK_PROXY_ACTIVE", "1"};
    out[k++] = (struct env_variable){"CODEX_NETWORK_ALLOW_LOCAL_BINDING", local ? "1" : "0"};
    out[k++] = (struct env_variable){"NODE_USE_ENV_PROXY", "1"};
    out[k++] = (struct env_variable){"ELECTRON_GET_USE_PROXY", "true"};
    return (int)k;
}

/* -- decisions of the client -- */

/* The reason of a refusal: at most PROXY_REASON_MAX bytes without control characters. */
static bool network_reason(const struct json_node *v, char out[PROXY_REASON_MAX + 1]) {
    if (v == NULL || v->type != JSON_STRING || v->n > PROXY_REASON_MAX)
        return false;
    struct str s = json_str(v);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool c1 = c == 0xC2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xA0;
        if (c < ' ' || c == 0x7F || c1)
            return false;
    }
    if (s.n == 0)
        s = STR_LIT("policy_denied");
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

/* Reads {"decision":{"type":"allow"|"deny"|"ask","reason":…}}; whatever else it is denies. */
static enum proxy_answer network_read(const struct json_node *result,
                                      char reason[PROXY_REASON_MAX + 1]) {
    const struct json_node *d = NULL, *type = NULL;
    strcpy(reason, "not_allowed");
    if (result != NULL && result->type == JSON_OBJECT)
        d = json_get(result, "decision");
    if (d != NULL && d->type == JSON_OBJECT)
        type = json_get(d, "type");
    if (type == NULL || type->type != JSON_STRING)
        return PROXY_DENIED;
    if (str_eqz(json_str(type), "allow"))
        return PROXY_ALLOWED;
    bool ask = str_eqz(json_str(type), "ask");
    if (!ask && !str_eqz(json_str(type), "deny"))
        return PROXY_DENIED;
    return network_reason(json_get(d, "reason"), reason) && ask ? PROXY_ASK : PROXY_DENIED;
}

static void network_on_answer(struct rpc_ask *ask, const struct json_node *result) {
    struct network_ask *a = container_of(ask, struct network_ask, ask);
    struct proxy_question *q = a->question;
    char reason[PROXY_REASON_MAX + 1];
    enum proxy_answer answer = network_read(result, reason);
    network_ask_free(a);
    proxy_conn_answer(q, answer, reason);
}

static void network_on_timeout(struct loop_timer *t) {
    struct network_ask *a = container_of(t, struct network_ask, timer);
    struct proxy_question *q = a->question;
    network_ask_free(a);
    proxy_conn_answer(q, PROXY_DENIED, "not_allowed");
}

static bool network_ask(struct proxy *p, struct proxy_question *q) {
    struct network *n = p->user;
    struct process *owner = n->process;
    struct rpc_peer *peer = owner != NULL && owner->session != NULL ? owner->session->peer : NULL;
    _cleanup_buf_ struct buf b = BUF_INIT(owner != NULL ? owner->id_json.n + 512 : 0);
    struct network_ask *a = peer != NULL ? calloc(1, sizeof *a) : NULL;
    if (a == NULL)
        return false;
    *a = (struct network_ask){.ask.answered = network_on_answer,
                              .timer.fn = network_on_timeout,
                              .question = q,
                              .network = n};
    list_append(&n->asks, &a->node);
    q->user = a;
    uint64_t ms = p->config.ask_ms;
    ms = ms > UINT64_MAX - NETWORK_GRACE_MS ? UINT64_MAX : ms + NETWORK_GRACE_MS;
    int r = buf_putz(&b, "{\"processId\":");
    if (r == 0)
        r = buf_put(&b, owner->id_json.p, owner->id_json.n);
    if (r == 0)
        r = buf_putf(&b, ",\"request\":{\"protocol\":\"%s\",\"host\":\"%s\",\"port\":%u}}",
                     proxy_judge_protocol(q->protocol), q->host, q->port);
    if (r == 0)
        r = loop_timer_set(n->loop, &a->timer, loop_ms(ms));
    if (r == 0)
        r = rpc_ask_send(peer, &a->ask, "network/policyRequest", buf_str(&b));
    if (r < 0)
        network_ask_free(a);
    return r == 0;
}

static void network_withdraw(struct proxy *p, struct proxy_question *q) {
    (void)p;
    network_ask_free(q->user);
}

/* -- news -- */

static int network_put_decision(struct buf *b, const struct proxy_decision *d) {
    struct timespec now;
    char stamp[UTC_TEXT_LEN + 1];
    clock_gettime(CLOCK_REALTIME, &now);
    utc_text(stamp, &now);
    int r = buf_putf(b,
                     ",\"timestamp\":\"%s\",\"scope\":\"%s\",\"decision\":\"%s\","
                     "\"source\":\"%s\",\"reason\":",
                     stamp, d->domain ? "domain" : "non_domain", proxy_judge_answer(d->answer),
                     d->source);
    if (r == 0)
        r = jsonw_str(b, str_of(d->reason));
    if (r == 0)
        r = buf_putf(b, ",\"protocol\":\"%s\",\"host\":\"%s\",\"port\":%u",
                     proxy_judge_protocol(d->protocol), d->host, d->port);
    if (r == 0 && d->method.n > 0)
        r = buf_putz(b, ",\"method\":");
    if (r == 0 && d->method.n > 0)
        r = jsonw_str(b, d->method);
    return r < 0 ? r
                 : buf_putf(b, ",\"client\":\"%s\",\"policyOverride\":%s", d->client,
                            d->override ? "true" : "false");
}

static void network_decided(struct proxy *p, const struct proxy_decision *d) {
    const struct network *n = p->user;
    struct process *owner = n->process;
    if (owner == NULL)
        return;
    events_network(owner, d);
    struct notify_to to = {NULL, 0};
    if (owner->session != NULL)
        to = notify_owner(owner);
    _cleanup_buf_ struct buf b = BUF_INIT(PROXY_REASON_MAX * 6 + 2048);
    /* The news is for information: it never makes a slow client's queue longer. */
    if (to.conn != NULL && !conn_is_full(to.conn) && network_put_decision(&b, d) == 0)
        notify_event(to, owner, "network/policyDecision", buf_str(&b));
}

const struct proxy_ops network_ops = {
    .ask = network_ask,
    .withdraw = network_withdraw,
    .decided = network_decided,
};
