#include "console/console.h"

#include "base/uri.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "console/console_audit.h"
#include "console/console_http.h"
#include "console/console_methods.h"
#include "json/jsonw.h"
#include "process/attach.h"
#include "process/events.h"
#include "process/session.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

static struct console *console_of(const struct conn *c) {
    return c->host->owner;
}

/* -- connections -- */

static void console_on_open(struct conn *c) {
    c->user = rpc_peer_new(&console_of(c)->rpc, c);
    if (c->user == NULL)
        conn_end(c, 1011, "out of memory");
}

/* The first message is the login. */
static void console_on_message(struct conn *c, const struct conn_message *m) {
    struct rpc_peer *p = c->user;
    bool first = p->life == RPC_NEW;
    rpc_peer_message(p, m);
    if (first && p->life == RPC_NEW)
        conn_end(c, 1008, "the first message must be a login");
}

static void console_on_pressure(struct conn *c, bool high) {
    struct rpc_peer *p = c->user;
    if (p == NULL || high)
        return;
    if (p->user != NULL) {
        attach_resume(p->user);
        console_audit_resume(p->user);
    }
    rpc_peer_resume(p);
}

static void console_on_drained(struct conn *c) {
    if (c->user != NULL)
        rpc_peer_drained(c->user);
}

static void console_on_gone(struct conn *c) {
    const struct rpc_peer *p = c->user;
    if (p != NULL && p->user != NULL)
        events_disconnected(console_of(c)->ops, c);
    if (p != NULL)
        rpc_peer_free(steal_ptr(&c->user));
}

/* Its session ends with it. */
static void console_on_peer_gone(struct rpc_peer *p) {
    struct session *s = p->user;
    struct console *k = console_of(p->conn);
    if (s == NULL)
        return;
    struct console_viewer *v = steal_ptr(&s->watcher);
    ticket_secret_leave(&k->tickets, v->secret);
    free(v);
    session_detach(s);
    sendq_pool_trim(&k->conns.pool);
}

static void console_on_turned_away(struct conn *c, int status, const char *why) {
    ops_turned_away(console_of(c)->ops, METRICS_CAPACITY, c->peer, status, why);
}

static void console_on_refused(struct conn *c, int status, enum http_refusal why,
                               const char *reason) {
    enum metrics_refusal kind = why == HTTP_OTHER_ORIGIN ? METRICS_ORIGIN : METRICS_HOST;
    ops_turned_away(console_of(c)->ops, kind, c->peer, status, reason);
}

static void console_on_nothing(struct conn *c) {
    (void)c;
}

static const struct conn_ops console_conn_ops = {
    .open = console_on_open,
    .message = console_on_message,
    .pressure = console_on_pressure,
    .drained = console_on_drained,
    .input_end = console_on_nothing, /* stdio only */
    .gone = console_on_gone,
    .files = console_http_file,
    .body = console_http_body,
    .writable = console_http_writable,
    .cut = console_http_cut,
    .turned_away = console_on_turned_away,
    .refused = console_on_refused,
    .closed = console_on_nothing,
};

/* -- life -- */

/* What the page shows of this host. 0 or -ENOMEM. */
static int console_look(struct console *k) {
    char name[256] = "", cwd[PATH_MAX];
    _cleanup_buf_ struct buf uri = BUF_INIT(4 * PATH_MAX), json = BUF_INIT(8 * PATH_MAX);
    if (gethostname(name, sizeof name - 1) < 0)
        name[0] = '\0';
    utf8_mend(name, strlen(name));
    k->hostname = strdup(name);
    if (k->hostname == NULL)
        return -ENOMEM;
    if (getcwd(cwd, sizeof cwd) == NULL || cwd[0] != '/')
        return 0;
    int r = uri_from_path(&uri, str_of(cwd));
    if (r == 0)
        r = jsonw_str(&json, buf_str(&uri));
    if (r == 0)
        r = buf_putc(&json, '\0');
    k->cwd = r == 0 ? steal_ptr(&json.p) : NULL;
    return r;
}

static int console_begin(struct console *k, struct pool *pool) {
    int r = conn_host_init(&k->conns, k->loop, &console_conn_ops, &k->auth, k);
    k->conns.max = CONSOLE_CONNS;
    k->conns.route = console_http_route;
    k->conns.proof_ms = CONSOLE_LOGIN_MS;
    k->conns.proof_late = "no login in time";
    k->conns.pages = true;
    rpc_host_init(&k->rpc, pool, console_methods_table, console_methods_count, CONSOLE_LANES,
                  console_on_peer_gone);
    k->rpc.greeting = "console/login";
    k->started_ms = utc_now_ms();
    k->begun = true;
    k->tail = malloc(sizeof *k->tail);
    if (r < 0 || k->tail == NULL)
        return r < 0 ? r : -ENOMEM;
    audit_tail_init(k->tail);
    k->tail->news = console_audit_news;
    k->tail->owner = k;
    return console_look(k);
}

int console_init(struct console *k, const struct console_settings *settings, struct loop *loop,
                 struct pool *pool, struct process_host *processes, struct ops *ops,
                 struct err *e) {
    *k = (struct console){.settings = *settings,
                          .loop = loop,
                          .processes = processes,
                          .ops = ops,
                          .news.fn = console_audit_spread};
    if (!settings->on)
        return 0;
    int r = assets_load(&k->assets, settings->page, e);
    if (r < 0)
        return r;
    r = console_begin(k, pool);
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    ledger_begin(&processes->ledger, (uint64_t)k->started_ms);
    audit_watch(&ops->audit, k->tail);
    return 0;
}

static void console_say_bye(struct conn *c, const char *reason) {
    _cleanup_buf_ struct buf b = BUF_INIT(1024);
    const struct rpc_peer *p = c->user;
    if (p != NULL && p->user != NULL &&
        buf_putf(&b, "{\"method\":\"console/bye\",\"params\":{\"reason\":\"%s\"}}", reason) == 0)
        conn_send(c, buf_str(&b));
}

void console_stop(struct console *k, const char *reason) {
    if (!k->begun)
        return;
    k->session = NULL; /* sessions end with the server */
    list_for_each(n, &k->conns.conns) {
        struct conn *c = list_entry(n, struct conn, node);
        console_say_bye(c, reason);
        conn_end(c, 1001, reason);
    }
}

void console_drop(struct console *k) {
    if (k->begun)
        conn_host_drop(&k->conns);
}

void console_fini(struct console *k) {
    if (k->begun) {
        audit_watch(&k->ops->audit, NULL);
        conn_host_fini(&k->conns);
        rpc_host_fini(&k->rpc);
        loop_task_del(&k->news);
    }
    if (k->tail != NULL)
        audit_tail_fini(k->tail);
    free(steal_ptr(&k->tail));
    k->begun = false;
    assets_fini(&k->assets);
    free(steal_ptr(&k->hostname));
    free(steal_ptr(&k->cwd));
}

void console_link(struct console *k, const char *host, uint16_t port, char out[CONSOLE_LINK_MAX]) {
    char token[TICKET_LEN + 1];
    ticket_issue(&k->tickets, TICKET_FOREVER, token);
    snprintf(out, CONSOLE_LINK_MAX, "http://%s:%u/#%s", host, port, token);
    sodium_memzero(token, sizeof token);
}
