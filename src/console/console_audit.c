#include "console/console_audit.h"

#include "console/console_methods.h"
#include "process/params.h"
#include "process/session.h"

#include <inttypes.h>
#include <stdio.h>

struct audit_params {
    uint64_t after;
};

static const struct jsondec_field audit_fields[] = {
    PARAM_OPT(audit_params, after, "after", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct audit_struct = PARAM_STRUCT("AuditParams", audit_fields);

int console_audit_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct audit_params *)out = (struct audit_params){0};
    return params == NULL ? 0 : jsondec(&audit_struct, params, out, e);
}

/* A line is an object: its members follow those of ours. */
static int audit_put_line(uint64_t n, struct str line, struct buf *b) {
    int r = buf_putf(b, "{\"n\":%" PRIu64 ",", n);
    return r < 0 ? r : buf_put(b, line.p + 1, line.n - 1);
}

enum rpc_outcome console_audit_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)e;
    const struct audit_params *p = params;
    struct session *s = c->peer->user;
    const struct audit_tail *t = console_of_call(c)->tail;
    uint64_t from = p->after < t->next ? p->after + 1 : t->next, n = MAX(from, t->first);
    uint64_t lost = n - from;
    bool first = true;
    int r = buf_putz(result, "{\"lines\":[");
    for (; r == 0 && n < t->next && result->len < CONSOLE_AUDIT_MAX; n++) {
        struct str line = audit_tail_get(t, n);
        if (line.n < 2) { /* there was no memory for it */
            lost++;
            continue;
        }
        if (!first)
            r = buf_putc(result, ',');
        if (r == 0)
            r = audit_put_line(n, line, result);
        first = false;
    }
    s->watcher->follows = true;
    s->watcher->audit = n;
    return rpc_done(
        result,
        r < 0 ? r : buf_putf(result, "],\"next\":%" PRIu64 ",\"lost\":%" PRIu64 "}", n - 1, lost));
}

/* -- console/auditLine -- */

static void audit_send(struct conn *c, uint64_t n, uint64_t lost, struct str line) {
    char head[128];
    int len = snprintf(head, sizeof head,
                       "{\"method\":\"console/auditLine\",\"params\":{\"n\":%" PRIu64
                       ",\"lost\":%" PRIu64 ",\"line\":",
                       n, lost);
    char *at = conn_reserve(c, (size_t)len + line.n + 2);
    if (at == NULL)
        return;
    at = mempcpy(at, head, (size_t)len);
    at = mempcpy(at, line.p, line.n);
    memcpy(at, "}}", 2);
    conn_commit(c, (size_t)len + line.n + 2);
}

void console_audit_resume(struct session *s) {
    struct console_viewer *v = s->watcher;
    struct conn *c = s->peer->conn;
    const struct audit_tail *t = ((struct console *)c->host->owner)->tail;
    uint64_t lost = 0;
    if (!v->follows)
        return;
    while (v->audit < t->next && conn_is_open(c) && !c->high) {
        uint64_t n = MAX(v->audit, t->first);
        struct str line = audit_tail_get(t, n);
        lost += n - v->audit;
        v->audit = n + 1;
        if (line.n < 2) {
            lost++;
            continue;
        }
        audit_send(c, n, lost, line);
        lost = 0;
    }
}

void console_audit_spread(struct loop_task *t) {
    struct console *k = container_of(t, struct console, news);
    list_for_each(n, &k->conns.conns) {
        const struct rpc_peer *p = list_entry(n, struct conn, node)->user;
        if (p != NULL && p->user != NULL)
            console_audit_resume(p->user);
    }
}

void console_audit_news(void *console) {
    struct console *k = console;
    loop_defer(k->loop, &k->news);
}
