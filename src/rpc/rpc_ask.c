#include "rpc/rpc_ask.h"

#include <errno.h>
#include <inttypes.h>

int rpc_ask_send(struct rpc_peer *p, struct rpc_ask *a, const char *method, struct str params) {
    _cleanup_buf_ struct buf b = BUF_INIT(params.n + 256);
    if (p->ask_count >= RPC_ASKS_MAX || !conn_is_open(p->conn) || conn_is_full(p->conn))
        return -EAGAIN;
    int r =
        buf_putf(&b, "{\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":", p->last_ask + 1, method);
    if (r == 0)
        r = buf_put(&b, params.p, params.n);
    if (r == 0)
        r = buf_putc(&b, '}');
    if (r < 0)
        return -ENOMEM;
    a->id = ++p->last_ask;
    a->peer = p;
    list_append(&p->asks, &a->node);
    p->ask_count++;
    conn_send(p->conn, buf_str(&b));
    return 0;
}

void rpc_ask_cancel(struct rpc_ask *a) {
    if (a->peer == NULL)
        return;
    a->peer->ask_count--;
    a->peer = NULL;
    list_remove(&a->node);
}

bool rpc_ask_is_ours(const struct rpc_peer *p, const struct envelope *env) {
    uint64_t id;
    bool answer = env->kind == ENVELOPE_RESPONSE || env->kind == ENVELOPE_ERROR;
    return answer && env->id->type == JSON_NUMBER && json_u64(env->id, &id) == 0 && id > 0 &&
           id <= p->last_ask;
}

void rpc_ask_hear(struct rpc_peer *p, const struct envelope *env) {
    uint64_t id = 0;
    if (json_u64(env->id, &id) < 0)
        return;
    list_for_each(n, &p->asks) {
        struct rpc_ask *a = list_entry(n, struct rpc_ask, node);
        if (a->id == id) {
            rpc_ask_cancel(a);
            a->answered(a, env->result);
            return;
        }
    }
}

void rpc_ask_drop(struct rpc_peer *p) {
    for (struct list *n; (n = list_first(&p->asks)) != NULL;) {
        struct rpc_ask *a = list_entry(n, struct rpc_ask, node);
        rpc_ask_cancel(a);
        a->answered(a, NULL);
    }
}
