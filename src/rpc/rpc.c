#include "rpc/rpc.h"

#include "base/log.h"
#include "base/utf8.h"
#include "json/jsonw.h"
#include "rpc/rpc_ask.h"
#include "rpc/rpc_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <time.h>

#define RPC_RESULT_KEEP (256 * 1024) /* a larger result buffer is freed */

void rpc_host_init(struct rpc_host *h, struct pool *pool, const struct rpc_method *methods,
                   size_t count, size_t lanes, void (*peer_gone)(struct rpc_peer *p)) {
    *h = (struct rpc_host){
        .loop = pool->loop, .pool = pool, .methods = methods, .method_count = count};
    h->lanes = lanes;
    h->greeting = "initialize";
    list_init(&h->ahead);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    h->readers = cpus < 4 ? 1 : MIN((size_t)cpus / 2, (size_t)RPC_READERS_MAX);
    h->peer_gone = peer_gone;
    h->result = BUF_INIT(RPC_RESULT_MAX);
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    json_doc_init(&h->doc, CONN_MSG_MAX, seed);
}

void rpc_host_fini(struct rpc_host *h) {
    json_doc_fini(&h->doc);
    buf_fini(&h->result);
}

const struct rpc_method *rpc_find(const struct rpc_host *h, struct str name) {
    for (size_t i = 0; i < h->method_count; i++) {
        if (str_eqz(name, h->methods[i].name))
            return &h->methods[i];
    }
    return NULL;
}

/* -- answers -- */

/* Sends the parts as one message. It is built in the queue, unless it must leave in fragments. */
static void rpc_send(struct rpc_peer *p, const struct str *parts, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].n;
    _cleanup_free_ char *large = n > CONN_FRAME_OUT_MAX ? malloc(n) : NULL;
    char *dst = n > CONN_FRAME_OUT_MAX ? large : conn_reserve(p->conn, n);
    if (dst == NULL) {
        conn_end(p->conn, 1011, "out of memory"); /* or it has ended already */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (parts[i].n > 0)
            dst = mempcpy(dst, parts[i].p, parts[i].n);
    }
    if (large != NULL)
        conn_send(p->conn, (struct str){large, n});
    else
        conn_commit(p->conn, n);
}

static void rpc_too_large(struct rpc_peer *p) {
    log_error("an answer is too large: ending %s", p->conn->peer);
    conn_end(p->conn, 1011, "an answer is too large");
}

/* Sends a result that has segments in it. */
static void rpc_send_blob(struct rpc_peer *p, struct str id) {
    struct rpc_host *h = p->host;
    struct buf *b = &h->result;
    if (buf_putc(b, '}') < 0) {
        sendq_seg_free(&p->conn->host->pool, steal_ptr(&h->blob));
        rpc_too_large(p);
        return;
    }
    const struct str before[] = {
        STR_LIT("{\"id\":"), id, STR_LIT(",\"result\":"), {b->p, h->blob_at}};
    struct conn_parts parts = {
        before, ARRAY_LEN(before), steal_ptr(&h->blob), {b->p + h->blob_at, b->len - h->blob_at}};
    conn_send_parts(p->conn, &parts);
}

static void rpc_send_result(struct rpc_peer *p, struct str id) {
    struct buf *b = &p->host->result;
    const struct str parts[] = {STR_LIT("{\"id\":"), id, STR_LIT(",\"result\":"), buf_str(b),
                                STR_LIT("}")};
    if (p->host->blob != NULL) {
        rpc_send_blob(p, id);
    } else if (b->len > 0) {
        rpc_send(p, parts, ARRAY_LEN(parts));
    } else { /* every result has text: it did not fit */
        rpc_too_large(p);
    }
    if (b->cap > RPC_RESULT_KEEP)
        buf_fini(b);
}

static void rpc_send_error(struct rpc_peer *p, struct str id, const struct err *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(ERR_MSG_MAX * 6 + 256);
    int r = buf_putf(&b, "{\"error\":{\"code\":%d,\"message\":", e->code);
    if (r == 0)
        r = jsonw_str(&b, err_str(e));
    const struct str parts[] = {buf_str(&b), STR_LIT("},\"id\":"), id, STR_LIT("}")};
    if (r == 0)
        rpc_send(p, parts, ARRAY_LEN(parts));
    else
        conn_end(p->conn, 1011, "out of memory");
}

/* -- deferred calls -- */

static struct rpc_call *rpc_defer_as(struct rpc_call *c, bool yielded, struct err *e) {
    if (c->id_len > RPC_DEFERRED_ID_BYTES - c->peer->id_bytes) {
        err_set(e, ERR_INVALID_REQUEST, "the ids of the waiting requests are too long");
        return NULL;
    }
    struct rpc_call *k = calloc(1, sizeof *k);
    char *id = malloc(c->id_len + 1);
    if (k == NULL || id == NULL) {
        free(k);
        free(id);
        err_os(e, ERR_INTERNAL, ENOMEM);
        return NULL;
    }
    memcpy(id, c->id, c->id_len);
    *k = (struct rpc_call){
        .peer = c->peer, .id = id, .id_len = c->id_len, .method = c->method, .begun = c->begun};
    k->yielded = yielded;
    c->peer->id_bytes += c->id_len;
    list_append(&c->peer->calls, &k->node);
    if (yielded)
        c->peer->yielded++;
    else
        c->peer->running++;
    return k;
}

struct rpc_call *rpc_defer(struct rpc_call *c, struct err *e) {
    return rpc_defer_as(c, false, e);
}

struct rpc_call *rpc_yield(struct rpc_call *c, struct err *e) {
    if (c->peer->yielded >= RPC_YIELDED_MAX) {
        err_set(e, ERR_INVALID_REQUEST, "too many waiting requests on this connection (limit %d)",
                RPC_YIELDED_MAX);
        return NULL;
    }
    if (c->peer->ending)
        loop_defer(c->peer->host->loop, &c->peer->pump); /* to expire it */
    return rpc_defer_as(c, true, e);
}

/* Detaches a call from its peer first: sending may free the peer, and its calls. */
static struct rpc_peer *rpc_unlink(struct rpc_call *c) {
    struct rpc_peer *p = steal_ptr(&c->peer);
    if (p == NULL)
        return NULL;
    p->id_bytes -= c->id_len;
    p->charged_bytes -= c->charged;
    if (c->yielded)
        p->yielded--;
    else
        p->running--;
    list_remove(&c->node);
    loop_defer(p->host->loop, &p->pump);
    return p;
}

static void rpc_call_free(struct rpc_call *c) {
    free(c->id);
    free(c);
}

void rpc_forget(struct rpc_call *c) {
    rpc_unlink(c);
    rpc_call_free(c);
}

void rpc_charge(struct rpc_call *c, size_t bytes) {
    struct rpc_peer *p = c->peer;
    if (bytes < c->charged)
        loop_defer(p->host->loop, &p->pump);
    p->charged_bytes += bytes;
    p->charged_bytes -= c->charged;
    c->charged = bytes;
}

bool rpc_may_charge(const struct rpc_call *c, size_t bytes) {
    struct rpc_peer *p = c->peer;
    /* A call that has begun must be able to end. */
    bool may =
        c->charged > 0 || p->charged_bytes == 0 || p->charged_bytes + bytes <= RPC_CHARGED_MAX;
    p->room_wanted |= !may;
    return may;
}

/* -- time -- */

const uint64_t rpc_bucket_ns[RPC_BUCKETS] = {
    LOOP_MS / 10, LOOP_MS / 2,  LOOP_MS,       LOOP_MS * 5 / 2, LOOP_MS * 5, LOOP_MS * 10,
    LOOP_MS * 25, LOOP_MS * 50, LOOP_MS * 100, LOOP_MS * 500,   LOOP_SEC,    LOOP_SEC * 10,
};

static uint64_t rpc_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The call is about to be answered. */
static void rpc_time(struct rpc_host *h, const struct rpc_call *c) {
    size_t i = 0;
    if (c->begun == 0)
        return;
    struct rpc_latency *l = &h->latency[h->timing[c->method]];
    uint64_t ns = rpc_now() - c->begun;
    while (i < RPC_BUCKETS && ns > rpc_bucket_ns[i])
        i++;
    l->buckets[i]++;
    l->sum += ns;
}

struct buf *rpc_result_begin(struct rpc_call *c) {
    c->peer->host->result.len = 0;
    return &c->peer->host->result;
}

void rpc_result_blob(struct rpc_call *c, struct sendq_seg *chain) {
    struct rpc_host *h = c->peer->host;
    h->blob = chain;
    h->blob_at = h->result.len;
}

void rpc_result_send(struct rpc_call *c) {
    struct rpc_peer *p = rpc_unlink(c);
    p->host->tallies[c->method].results++;
    rpc_time(p->host, c);
    /* planted: late-twice */
    rpc_send_result(p, (struct str){c->id, c->id_len});
    rpc_call_free(c);
}

void rpc_fail(struct rpc_call *c, const struct err *e) {
    struct rpc_peer *p = rpc_unlink(c);
    if (p != NULL) {
        p->host->tallies[c->method].errors++;
        rpc_time(p->host, c);
    }
    if (p != NULL)
        rpc_send_error(p, (struct str){c->id, c->id_len}, e);
    rpc_call_free(c);
}

/* -- answers in pieces -- */

bool rpc_stream_begin(struct rpc_call *c, struct str before, struct sendq_seg *chain) {
    struct rpc_peer *p = c->peer;
    if (p->stream != NULL) {
        p->room_wanted = true;
        return false;
    }
    p->stream = c;
    const struct str parts[] = {
        STR_LIT("{\"id\":"), {c->id, c->id_len}, STR_LIT(",\"result\":"), before};
    conn_stream(p->conn, &(struct conn_parts){parts, ARRAY_LEN(parts), chain, {NULL, 0}}, false);
    return true;
}

void rpc_stream_put(struct rpc_call *c, struct sendq_seg *chain) {
    conn_stream(c->peer->conn, &(struct conn_parts){NULL, 0, chain, {NULL, 0}}, false);
}

void rpc_stream_end(struct rpc_call *c, struct sendq_seg *chain, const char *after) {
    struct rpc_peer *p = rpc_unlink(c);
    p->stream = NULL;
    p->host->tallies[c->method].results++;
    rpc_time(p->host, c);
    char tail[RPC_STREAM_TAIL_MAX + 2];
    int n = snprintf(tail, sizeof tail, "%s}", after);
    conn_stream(p->conn, &(struct conn_parts){NULL, 0, chain, {tail, (size_t)n}}, true);
    rpc_call_free(c);
}

void rpc_stream_fail(struct rpc_call *c, const char *cut, const struct err *e) {
    struct rpc_peer *p = rpc_unlink(c);
    p->stream = NULL;
    p->host->tallies[c->method].errors++;
    rpc_time(p->host, c);
    _cleanup_buf_ struct buf b = BUF_INIT(ERR_MSG_MAX * 6 + 256);
    int r = buf_putf(&b, "%s,\"error\":{\"code\":%d,\"message\":", cut, e->code);
    if (r == 0)
        r = jsonw_str(&b, err_str(e));
    if (r == 0)
        r = buf_putz(&b, "}}");
    if (r == 0)
        conn_stream(p->conn, &(struct conn_parts){NULL, 0, NULL, buf_str(&b)}, true);
    else
        conn_end(p->conn, 1011, "out of memory");
    rpc_call_free(c);
}

/* -- running one message -- */

static const struct str rpc_no_id = {"-1", 2};

static void rpc_malformed(struct rpc_peer *p, const char *reason) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (p->conn->stdio)
        err_set(&e, ERR_INVALID_REQUEST,
                "failed to parse JSON-RPC message from exec-server stdio: %s", reason);
    else
        err_set(&e, ERR_INVALID_REQUEST,
                "failed to parse websocket JSON-RPC message from exec-server websocket %s: %s",
                p->conn->peer, reason);
    log_warn("malformed message from %s: %s", p->conn->peer, reason);
    p->host->malformed++;
    rpc_send_error(p, rpc_no_id, &e);
}

static void rpc_unexpected(struct rpc_peer *p, const char *what, struct str name) {
    _cleanup_err_ struct err e = ERR_INIT;
    err_about(&e, ERR_INVALID_REQUEST, what, name, "");
    rpc_send_error(p, rpc_no_id, &e);
}

/* The JSON text of an id in an answer: integers in canonical form. */
static int rpc_id_text(const struct json_node *id, struct buf *b) {
    int64_t v;
    if (id->type == JSON_STRING)
        return jsonw_str(b, json_str(id));
    return json_i64(id, &v) < 0 ? -EINVAL : buf_putf(b, "%" PRId64, v);
}

static int rpc_check_life(const struct rpc_peer *p, const struct rpc_method *m, struct err *e) {
    if (m->family == NULL || p->life == RPC_READY)
        return 0;
    return err_set(e, ERR_INVALID_REQUEST, "client must %s%s before using %s methods",
                   p->life == RPC_NEW ? "call " : "send initialized",
                   p->life == RPC_NEW ? p->host->greeting : "", m->family);
}

static enum rpc_outcome rpc_execute(struct rpc_call *c, struct rpc_params *params,
                                    struct buf *result, struct err *e) {
    const struct rpc_host *h = c->peer->host;
    const struct rpc_method *m = params->method;
    c->method = m != NULL ? (size_t)(m - h->methods) : h->method_count;
    c->begun = m != NULL && h->timing[c->method] != RPC_UNTIMED ? rpc_now() : 0;
    if (params->r < 0 || m == NULL) {
        *e = params->e;
        params->e = ERR_INIT;
        return RPC_ERROR;
    }
    return rpc_check_life(c->peer, m, e) < 0 ? RPC_ERROR : m->run(c, params->space, result, e);
}

static void rpc_request(struct rpc_peer *p, const struct envelope *env, struct rpc_params *params,
                        const struct conn_message *m) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf id = BUF_INIT(RPC_ID_MAX * 6 + 2);
    if (env->id->n > RPC_ID_MAX) {
        rpc_unexpected(p, "the id of a request has more than 1048576 bytes", (struct str){NULL, 0});
        return;
    }
    if (rpc_id_text(env->id, &id) < 0) {
        conn_end(p->conn, 1011, "out of memory");
        return;
    }
    struct rpc_call c = {.peer = p, .id = id.p, .id_len = id.len, .message = m};
    enum rpc_outcome out = rpc_execute(&c, params, rpc_result_begin(&c), &e);
    struct rpc_tally *tally = &p->host->tallies[c.method];
    if (out != RPC_LATER)
        rpc_time(p->host, &c);
    if (out == RPC_DONE) {
        tally->results++;
        /* planted: answered-twice */
        rpc_send_result(p, buf_str(&id));
    } else if (out == RPC_ERROR) {
        tally->errors++;
        rpc_send_error(p, buf_str(&id), &e);
    }
}

static void rpc_notification(struct rpc_peer *p, const struct envelope *env) {
    if (!str_eqz(env->method, "initialized")) {
        rpc_unexpected(p, "unexpected notification: ", env->method);
    } else if (p->life == RPC_NEW) {
        rpc_unexpected(p, "unexpected notification before initialize: ", env->method);
    } else {
        p->life = RPC_READY;
    }
}

/* Acts on a message. The caller frees the params. */
static void rpc_dispatch(struct rpc_peer *p, const struct envelope *env, struct rpc_params *params,
                         const struct conn_message *m) {
    switch (env->kind) {
    case ENVELOPE_REQUEST: rpc_request(p, env, params, m); break;
    case ENVELOPE_NOTIFICATION: rpc_notification(p, env); break;
    case ENVELOPE_RESPONSE:
    case ENVELOPE_ERROR:
        if (rpc_ask_is_ours(p, env))
            rpc_ask_hear(p, env);
        else
            rpc_unexpected(p, "unexpected response", (struct str){NULL, 0});
        break;
    }
}

/* -- order -- */

static bool rpc_lane_free(const struct rpc_peer *p) {
    return p->running < p->host->lanes && (p->running == 0 || p->charged_bytes < RPC_CHARGED_MAX);
}

/* The member `key` of the params, or of an object they wrap; NULL when there is none. */
static const struct json_node *rpc_find_key(const struct json_node *params, const char *key) {
    const struct json_node *v = json_get(params, key);
    if (v != NULL)
        return v;
    json_for_each_member(k, params) {
        if (v == NULL && k[1].type == JSON_OBJECT)
            v = json_get(k + 1, key);
    }
    return v;
}

/* The name of the process or handle that a request acts on; p is NULL when it names none. */
static struct str rpc_key_of(const struct rpc_method *m, const struct envelope *env) {
    const struct json_node *v = NULL;
    if (m != NULL && m->key != NULL && env->params != NULL && env->params->type == JSON_OBJECT)
        v = rpc_find_key(env->params, m->key);
    /* No process and no handle has a longer name. */
    bool usable = v != NULL && v->type == JSON_STRING && v->n <= RPC_KEY_MAX;
    return usable ? json_str(v) : (struct str){NULL, 0};
}

static bool rpc_key_waits(const struct rpc_peer *p, struct str key) {
    list_for_each(n, &p->queue) {
        const struct rpc_waiting *w = list_entry(n, struct rpc_waiting, node);
        /* A message that no thread has read yet may name anything. */
        if (w->ahead != NULL || (w->key != NULL && str_eq(key, (struct str){w->key, w->key_len})))
            return true;
    }
    return false;
}

/* Whether a message may run although others wait or run. */
static bool rpc_overtakes(const struct rpc_peer *p, const struct envelope *env, struct str key) {
    if (p->life != RPC_READY)
        return false;
    if (rpc_ask_is_ours(p, env))
        return true; /* what waits for it may wait for ever otherwise */
    const struct rpc_method *m = rpc_find(p->host, env->method);
    if (env->kind != ENVELOPE_REQUEST || m == NULL)
        return p->host->lanes > 1; /* with lanes it is answered at once */
    return m->control && (key.p == NULL || !rpc_key_waits(p, key));
}

static void rpc_enqueue(struct rpc_peer *p, const struct conn_message *m, struct str key,
                        bool ahead) {
    struct rpc_waiting *w = rpc_read_waiting_new(m, key);
    if (w == NULL || (ahead && rpc_read_ahead_new(p, w) < 0)) {
        rpc_read_waiting_free(p, w);
        conn_end(p->conn, 1011, "out of memory");
        return;
    }
    if (ahead)
        loop_defer(p->host->loop, &p->pump);
    list_append(&p->queue, &w->node);
    p->queued++;
    p->queued_bytes += conn_message_sent(&w->message);
    if (p->queued >= RPC_QUEUE_MAX || p->queued_bytes >= RPC_QUEUE_BYTES)
        conn_pause(p->conn, true);
}

static void rpc_unqueue(struct rpc_peer *p, struct rpc_waiting *w) {
    list_remove(&w->node);
    p->queued--;
    p->queued_bytes -= conn_message_sent(&w->message);
    if (p->queued <= RPC_QUEUE_MAX / 2 && p->queued_bytes <= RPC_QUEUE_BYTES / 2)
        conn_pause(p->conn, false);
}

static void rpc_act(struct rpc_peer *p, const struct envelope *env, const struct conn_message *m) {
    struct rpc_params params;
    rpc_read_params_init(&params, p->host, env);
    rpc_dispatch(p, env, &params, m);
    rpc_read_params_fini(&params);
}

void rpc_peer_message(struct rpc_peer *p, const struct conn_message *message) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct conn_message m = *message;
    struct envelope env;
    bool busy = !rpc_lane_free(p) || !list_empty(&p->queue);
    /* A line that is not UTF-8 ends stdio; a binary WebSocket message is only malformed. */
    if (p->conn->stdio && !utf8_valid(m.p, m.n)) {
        conn_end(p->conn, 1007, "");
        return;
    }
    m.utf8 |= p->conn->stdio;
    int r = rpc_read_is_large(&m) ? RPC_TOO_LARGE
                                  : rpc_read_parse(p->host, &p->host->doc, &m, &env, &e);
    struct str key = {NULL, 0};
    if (r == RPC_TOO_LARGE) {
        rpc_enqueue(p, &m, key, true);
        json_doc_trim(&p->host->doc);
        return;
    }
    bool overtake = p->host->lanes > 1 && p->life == RPC_READY;
    if (r == 0) {
        key = rpc_key_of(rpc_find(p->host, env.method), &env);
        overtake = busy && rpc_overtakes(p, &env, key);
    }
    if (busy && !overtake)
        rpc_enqueue(p, &m, key, false);
    else if (r < 0)
        rpc_malformed(p, err_msg(&e));
    else
        rpc_act(p, &env, &m);
    json_doc_trim(&p->host->doc);
}

static void rpc_run_waiting(struct rpc_peer *p, struct rpc_waiting *w) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct envelope env;
    int r = w->ahead != NULL ? w->ahead->r
                             : rpc_read_parse(p->host, &p->host->doc, &w->message, &env, &e);
    if (r == RPC_TOO_LARGE) /* it was read before: there was no room for its text this time */
        conn_end(p->conn, 1011, "out of memory");
    else if (r < 0)
        rpc_malformed(p, err_msg(w->ahead != NULL ? &w->ahead->e : &e));
    else if (w->ahead != NULL)
        rpc_dispatch(p, &w->ahead->env, &w->ahead->params, &w->message);
    else
        rpc_act(p, &env, &w->message);
    json_doc_trim(&p->host->doc);
    rpc_read_waiting_free(p, w);
}

/* At the end of input yielded calls answer with what they have. */
static void rpc_expire_yielded(struct rpc_peer *p) {
    list_for_each(n, &p->calls) {
        struct rpc_call *c = list_entry(n, struct rpc_call, node);
        if (c->yielded && c->expire != NULL)
            c->expire(c); /* frees c and no other */
    }
}

/* Tells the calls that wait for room, as long as there is some. */
static void rpc_tell_room(struct rpc_peer *p) {
    p->room_wanted = false;
    list_for_each(n, &p->calls) {
        struct rpc_call *c = list_entry(n, struct rpc_call, node);
        if (c->room != NULL && rpc_has_room(c))
            c->room(c); /* may free c and no other */
    }
}

/* Begins requests that wait, until the slice is over. */
static void rpc_run_queue(struct rpc_peer *p) {
    if (list_empty(&p->queue))
        return;
    uint64_t end = loop_slice(p->host->loop);
    for (struct list *n; rpc_lane_free(p) && (n = list_first(&p->queue)) != NULL;) {
        if (!conn_is_open(p->conn) || conn_is_full(p->conn))
            break;
        if (loop_slice_over(p->host->loop, end)) {
            loop_task_del(&p->pump); /* the end of a call may have queued it */
            loop_yield(p->host->loop, &p->pump);
            break;
        }
        struct rpc_waiting *w = list_entry(n, struct rpc_waiting, node);
        if (w->ahead != NULL && !rpc_read_ahead_is_done(w->ahead))
            break; /* the pump runs again when a thread has read it */
        rpc_unqueue(p, w);
        rpc_run_waiting(p, w);
    }
}

static void rpc_on_pump(struct loop_task *t) {
    struct rpc_peer *p = container_of(t, struct rpc_peer, pump);
    rpc_run_queue(p);
    if (p->room_wanted)
        rpc_tell_room(p);
    if (!p->ending)
        return;
    rpc_expire_yielded(p);
    if (list_empty(&p->queue) && list_empty(&p->calls))
        conn_end(p->conn, 1000, "");
}

void rpc_peer_input_end(struct rpc_peer *p) {
    p->ending = true;
    loop_defer(p->host->loop, &p->pump);
}

/* -- life -- */

bool rpc_has_room(const struct rpc_call *c) {
    return !conn_is_full(c->peer->conn);
}

void rpc_peer_resume(struct rpc_peer *p) {
    rpc_tell_room(p);
    if (!list_empty(&p->queue))
        loop_defer(p->host->loop, &p->pump);
}

void rpc_peer_drained(struct rpc_peer *p) {
    if (p->stream != NULL && p->stream->room != NULL)
        p->stream->room(p->stream);
}

struct rpc_peer *rpc_peer_new(struct rpc_host *h, struct conn *conn) {
    struct rpc_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->host = h;
    p->conn = conn;
    list_init(&p->queue);
    list_init(&p->calls);
    list_init(&p->asks);
    p->pump.fn = rpc_on_pump;
    return p;
}

void rpc_peer_free(struct rpc_peer *p) {
    rpc_ask_drop(p);
    for (struct list *n; (n = list_first(&p->calls)) != NULL;) {
        struct rpc_call *c = list_entry(n, struct rpc_call, node);
        list_remove(&c->node);
        c->peer = NULL;
        p->host->tallies[c->method].dropped++;
        if (c->cancelled != NULL)
            c->cancelled(c);
    }
    for (struct list *n; (n = list_first(&p->queue)) != NULL;) {
        struct rpc_waiting *w = list_entry(n, struct rpc_waiting, node);
        list_remove(&w->node);
        rpc_read_waiting_free(p, w);
    }
    loop_task_del(&p->pump);
    p->host->peer_gone(p);
    free(p);
}

enum rpc_outcome rpc_done(struct buf *result, int r) {
    if (r < 0)
        result->len = 0;
    return RPC_DONE;
}

enum rpc_outcome rpc_done_text(struct buf *result, const char *json) {
    result->len = 0;
    return rpc_done(result, buf_putz(result, json));
}
