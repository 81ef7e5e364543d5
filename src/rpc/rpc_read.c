#include "base/utf8.h"
#include "rpc/rpc_internal.h"

#include <errno.h>

/* -- reading -- */

bool rpc_read_is_large(const struct conn_message *m) {
    return conn_message_text_len(m) >= RPC_AHEAD;
}

/* Whether the marked string of a parsed message is the parameter that its method decodes. */
static bool rpc_read_is_usable(const struct rpc_host *h, const struct json_doc *doc,
                               const struct conn_message *m, struct str text) {
    const struct json_node *root = json_root(doc);
    if (root->type != JSON_OBJECT)
        return false;
    const struct json_node *name = json_get(root, "method"), *params = json_get(root, "params");
    if (name == NULL || name->type != JSON_STRING || params == NULL || params->type != JSON_OBJECT)
        return false;
    const struct rpc_method *method = rpc_find(h, json_str(name));
    if (method == NULL || method->base64 == NULL)
        return false;
    const struct json_node *v = json_get(params, method->base64);
    return v != NULL && v->type == JSON_STRING && conn_message_marks(m, text, json_str(v));
}

/* Restores a message whose mark is not usable, before anybody else looks at it. */
int rpc_read_parse(const struct rpc_host *h, struct json_doc *doc, struct conn_message *m,
                   struct envelope *env, struct err *e) {
    if (!m->utf8 && !utf8_valid(m->p, m->n))
        return err_set(e, ERR_INVALID_REQUEST, "invalid UTF-8");
    struct str text;
    int r = conn_message_text(m, &text);
    if (r == 0)
        r = json_parse(doc, text.p, text.n, e);
    if (conn_message_is_marked(m) && (r < 0 || !rpc_read_is_usable(h, doc, m, text))) {
        err_fini(e);
        *e = ERR_INIT;
        if (doc == &h->doc && conn_message_sent(m) >= RPC_AHEAD)
            return RPC_TOO_LARGE;
        r = conn_message_restore(m);
        if (r == 0)
            r = json_parse(doc, m->p, m->n, e);
    }
    if (r == -ENOMEM)
        return err_set(e, ERR_INVALID_REQUEST, "out of memory");
    return r < 0 ? r : envelope_read(json_root(doc), env, e);
}

void rpc_read_params_init(struct rpc_params *p, const struct rpc_host *h,
                          const struct envelope *env) {
    p->method = NULL;
    p->r = 0;
    p->e = ERR_INIT;
    if (env->kind != ENVELOPE_REQUEST)
        return;
    p->method = rpc_find(h, env->method);
    if (p->method != NULL)
        p->r = p->method->decode(env->params, p->space, &p->e);
    else
        p->r = err_about(&p->e, ERR_METHOD_NOT_FOUND, "exec-server stub does not implement `",
                         env->method, "` yet");
}

void rpc_read_params_fini(struct rpc_params *p) {
    if (p->method != NULL && p->method->release != NULL)
        p->method->release(p->space);
    err_fini(&p->e);
}

/* -- messages that wait -- */

struct rpc_waiting *rpc_read_waiting_new(const struct conn_message *m, struct str key) {
    bool large = m->n >= BUFCACHE_MIN && conn_message_owns(m);
    struct rpc_waiting *w = malloc(sizeof *w + (large ? 0 : m->n));
    char *k = key.p != NULL && w != NULL ? malloc(key.n + 1) : NULL;
    if (w == NULL || (key.p != NULL && k == NULL)) {
        free(w);
        return NULL;
    }
    if (k != NULL && key.n > 0)
        memcpy(k, key.p, key.n);
    *w = (struct rpc_waiting){.key = k, .key_len = key.n, .message = *m};
    w->message.memory = &w->memory;
    if (large) {
        w->memory = conn_message_take(m);
    } else {
        w->message.p = memcpy(w->text, m->p, m->n);
    }
    return w;
}

/* Gives queued messages to threads, the first of each connection in turn. */
static void rpc_ahead_pump(struct rpc_host *h) {
    for (struct list *n; h->reading < h->readers && (n = list_first(&h->ahead)) != NULL;) {
        struct rpc_ahead *a = list_entry(n, struct rpc_ahead, node);
        list_remove(n);
        h->reading++;
        a->state = RPC_AHEAD_READING;
        pool_submit(h->pool, &a->job);
    }
}

static void rpc_ahead_over(struct rpc_host *h) {
    h->reading--;
    rpc_ahead_pump(h);
}

static void rpc_ahead_free(struct rpc_ahead *a) {
    if (a == NULL)
        return;
    if (a->state == RPC_AHEAD_READ && a->r == 0)
        rpc_read_params_fini(&a->params);
    list_remove(&a->node);
    err_fini(&a->e);
    json_doc_fini(&a->doc);
    free(a);
}

void rpc_read_waiting_free(struct rpc_peer *p, struct rpc_waiting *w) {
    if (w == NULL)
        return;
    struct rpc_ahead *a = w->ahead;
    if (a != NULL && a->state == RPC_AHEAD_READING) {
        if (!pool_cancel(a->host->pool, &a->job)) {
            a->peer = NULL;
            return;
        }
        rpc_ahead_over(a->host);
    }
    rpc_ahead_free(a);
    bufcache_give(&p->conn->host->bufcache, &w->memory);
    free(w->key);
    free(w);
}

/* -- in a thread -- */

static void rpc_ahead_work(struct pool_job *j) {
    struct rpc_ahead *a = container_of(j, struct rpc_ahead, job);
    a->r = rpc_read_parse(a->host, &a->doc, &a->waiting->message, &a->env, &a->e);
    if (a->r == 0)
        rpc_read_params_init(&a->params, a->host, &a->env);
}

static void rpc_ahead_done(struct pool_job *j) {
    struct rpc_ahead *a = container_of(j, struct rpc_ahead, job);
    rpc_ahead_over(a->host);
    if (j->refused && a->peer != NULL)
        rpc_ahead_work(j); /* all threads hang: the loop reads it */
    a->state = j->refused && a->peer == NULL ? RPC_AHEAD_NEW : RPC_AHEAD_READ;
    if (a->peer != NULL) {
        loop_defer(a->host->loop, &a->peer->pump);
        return;
    }
    struct rpc_waiting *w = a->waiting;
    rpc_ahead_free(a);
    buf_fini(&w->memory);
    free(w->key);
    free(w);
}

int rpc_read_ahead_new(struct rpc_peer *p, struct rpc_waiting *w) {
    struct rpc_ahead *a = calloc(1, sizeof *a);
    if (a == NULL)
        return -ENOMEM;
    *a = (struct rpc_ahead){.host = p->host, .peer = p, .waiting = w, .e = ERR_INIT};
    a->job = (struct pool_job){.work = rpc_ahead_work, .done = rpc_ahead_done};
    list_init(&a->node);
    json_doc_init(&a->doc, CONN_MSG_MAX, p->host->doc.seed);
    w->ahead = a;
    return 0;
}

bool rpc_read_ahead_is_done(struct rpc_ahead *a) {
    if (a->state == RPC_AHEAD_NEW) {
        a->state = RPC_AHEAD_QUEUED;
        list_append(&a->host->ahead, &a->node);
        rpc_ahead_pump(a->host);
    }
    return a->state == RPC_AHEAD_READ;
}
