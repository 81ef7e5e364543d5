#include "base/utf8.h"
#include "client/engine.h"

#include <errno.h>
#include <string.h>

const struct xs_error *xs_client_error(const struct xs_client *c) {
    static const struct xs_error none = {.code = XS_ENOMEM};
    return c != NULL ? &c->error : &none;
}

/* -- life -- */

static int xs_client_setup(struct xs_client *c, const struct xs_options *o) {
    c->options = xs_options_copy(o);
    if (c->options == NULL)
        return client_error(c, XS_ENOMEM, "out of memory");
    int r = target_parse(&c->target, xs_options_get(o, XS_OPT_URL, NULL), &c->error);
    if (r < 0)
        return r;
    calls_init(c);
    resume_init(c);
    return 0;
}

int xs_client_new(const struct xs_options *o, struct xs_client **out) {
    *out = NULL;
    struct xs_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return XS_ENOMEM;
    int r = client_init(c);
    if (r < 0) {
        client_fini(c);
        free(c);
        return r == -ENOMEM ? XS_ENOMEM : XS_ELOCAL;
    }
    /* With a wrong option the client is FAILED, so that its error can be read. */
    r = xs_client_setup(c, o);
    if (r < 0 && c->options == NULL) {
        client_fini(c);
        free(c);
        return r;
    }
    if (r < 0) {
        calls_init(c);
        resume_init(c);
        xs_error_copy(&c->failure, &c->error);
        c->state = XS_STATE_FAILED;
    }
    *out = c;
    return r;
}

void xs_client_free(struct xs_client *c) {
    if (c == NULL)
        return;
    if (c->gone != NULL)
        *c->gone = true;
    c->state = XS_STATE_CLOSED;
    xs_error_set(&c->failure, XS_ECANCELED, "the client is freed");
    op_end_all(c);
    for (struct list *n; (n = list_first(&c->parts)) != NULL;) {
        list_remove(n);
        struct client_part *p = list_entry(n, struct client_part, node);
        p->free(p);
    }
    calls_end(c, &c->failure);
    op_end_all(c);
    link_fini(&c->link);
    resume_fini(c);
    calls_fini(c);
    json_doc_fini(&c->server);
    free(c->server_text);
    for (size_t i = 0; i < ARRAY_LEN(c->info_text); i++)
        free(c->info_text[i]);
    xs_error_fini(&c->cause);
    target_fini(&c->target);
    xs_options_free(c->options);
    client_fini(c);
    free(c);
}

/* -- connecting and ending -- */

static void xs_client_connect_end(struct op *op) {
    if (op->client->connect == op)
        op->client->connect = NULL;
}

int xs_client_connect(struct xs_client *c, struct xs_call *k) {
    struct op *op;
    int r = op_new_early(c, k, sizeof *op, xs_client_connect_end, &op);
    if (r < 0)
        return r;
    if (c->state == XS_STATE_READY || c->state == XS_STATE_RESUMING) {
        op_finish(op, 0);
        return op_wait(op);
    }
    if (c->connect != NULL)
        return op_refuse(op, XS_EBUSY, "it is connecting already");
    c->connect = op;
    if (c->state == XS_STATE_NEW)
        resume_begin(c);
    return op_wait(op);
}

static void xs_client_ending_end(struct op *op) {
    if (op->client->ending == op)
        op->client->ending = NULL;
}

int xs_client_close(struct xs_client *c, struct xs_call *k) {
    struct op *op;
    if (k == NULL && c->in_callback)
        return client_error(c, XS_EBUSY, "a blocking call inside a callback");
    bool over = c->state == XS_STATE_FAILED || c->state == XS_STATE_CLOSED;
    int r = op_new_always(c, k, sizeof *op, xs_client_ending_end, &op);
    if (r < 0)
        return r;
    if (c->ending != NULL)
        return op_refuse(op, XS_EBUSY, "it is being closed already");
    bool idle = c->state == XS_STATE_RESUMING && c->live <= 0;
    if (over || idle || c->state == XS_STATE_NEW || c->state == XS_STATE_CONNECTING) {
        resume_close(c);
        op_finish(op, 0);
        return op_wait(op);
    }
    if (op_limit(op) < 0)
        return op_refuse(op, XS_ENOMEM, "out of memory");
    c->ending = op;
    resume_end(c);
    return op_wait(op);
}

int xs_client_detach(struct xs_client *c, char session[37], struct xs_call *k) {
    struct op *op;
    int r = op_new(c, k, sizeof *op, xs_client_ending_end, &op);
    if (r < 0)
        return r;
    int64_t wanted = xs_options_get_num(c->options, XS_OPT_SESSION_TTL_MS, 0);
    if (!target_resumes(&c->target))
        return op_refuse(op, XS_ENOTSUP, "%s: a session ends with such a connection",
                         c->target.shown);
    if (!c->ever)
        return op_refuse(op, XS_ECONNECT, "%s: there is no session yet", c->target.shown);
    if (c->info.session_ttl_ms < MAX(wanted, (int64_t)1))
        return op_refuse(op, XS_ENOTSUP,
                         "%s: the server keeps a session for %lld ms, not for %lld%s",
                         c->target.shown, (long long)c->info.session_ttl_ms, (long long)wanted,
                         c->info.limits_told ? "" : " (it does not tell its limits)");
    if (c->ending != NULL)
        return op_refuse(op, XS_EBUSY, "it is being closed already");
    if (strlen(c->session) != 36)
        return op_refuse(op, XS_EPROTO, "%s: the session's id is no UUID", c->target.shown);
    memcpy(session, c->session, 37);
    c->ending = op;
    c->detaching = true;
    if (c->state == XS_STATE_READY)
        resume_end(c);
    else
        resume_close(c);
    return op_wait(op);
}

void xs_client_retry(struct xs_client *c) {
    client_enter(c);
    resume_now(c);
    client_leave(c);
}

/* -- turns -- */

int xs_client_fd(struct xs_client *c) {
    c->clock_used = true;
    client_leave(c);
    return c->loop.epfd;
}

int xs_client_timeout_ms(struct xs_client *c) {
    if (c->notice_count > 0 || !list_empty(&c->loop.tasks) || !list_empty(&c->loop.yielded))
        return 0;
    if (c->loop.timers == 0)
        return -1;
    uint64_t now = c->loop.clock(), due = c->loop.heap[1]->when;
    uint64_t ms = due > now ? (due - now + LOOP_MS - 1) / LOOP_MS : 0;
    return (int)MIN(ms, (uint64_t)INT32_MAX);
}

static int xs_client_turn(struct xs_client *c, uint64_t wait) {
    if (c->in_callback)
        return client_error(c, XS_EBUSY, "a turn inside a callback");
    if (client_step(c, wait) == 0)
        client_leave(c);
    return 0;
}

int xs_client_process(struct xs_client *c) {
    return xs_client_turn(c, 0);
}

int xs_client_run(struct xs_client *c, int max_ms) {
    return xs_client_turn(c, max_ms < 0 ? UINT64_MAX : loop_ms((uint64_t)max_ms));
}

void xs_client_wake(struct xs_client *c) {
    const uint64_t one = 1;
    int num = errno;
    ssize_t n = write(c->wake.fd, &one, sizeof one);
    (void)n; /* a full counter wakes too */
    errno = num;
}

/* -- what the caller asks and sets -- */

enum xs_state xs_client_state(const struct xs_client *c) {
    return c->state;
}

void xs_client_on_state(struct xs_client *c,
                        void (*fn)(struct xs_client *c, enum xs_state s, void *user), void *user) {
    c->on_state = fn;
    c->on_state_user = user;
}

void xs_client_on_log(struct xs_client *c, void (*fn)(int level, const char *line, void *user),
                      void *user) {
    c->on_log = fn;
    c->on_log_user = user;
}

void xs_client_on_dial(struct xs_client *c, int (*fn)(struct xs_client *c, void *user),
                       void *user) {
    c->on_dial = fn;
    c->on_dial_user = user;
}

const struct xs_info *xs_client_info(struct xs_client *c) {
    return c->ever ? &c->info : NULL;
}

int xs_client_can(struct xs_client *c, const char *capability) {
    return client_can(c, capability) ? 1 : 0;
}

/* -- any request -- */

struct xs_client_rpc_op {
    struct op op;
    struct calls_request request;
    struct xs_bytes *result;
    char *method; /* owned */
};

static void xs_client_rpc_end(struct op *op) {
    struct xs_client_rpc_op *o = container_of(op, struct xs_client_rpc_op, op);
    calls_drop(&o->request);
    free(o->method);
}

static void xs_client_rpc_done(struct calls_request *r, int err, const struct json_node *result,
                               struct xs_error *e) {
    struct xs_client_rpc_op *o = container_of(r, struct xs_client_rpc_op, request);
    if (err < 0) {
        op_fail_with(&o->op, e);
    } else if (o->result != NULL && calls_bytes(o->result, result) < 0) {
        op_fail(&o->op, XS_ENOMEM, "out of memory");
    } else {
        op_finish(&o->op, 0);
    }
}

/* A method is a word of the protocol: nothing that JSON would escape. */
static bool xs_client_is_method(const char *method) {
    size_t n = method != NULL
                   ? strspn(method, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_-./")
                   : 0;
    return n > 0 && n < 256 && method[n] == '\0';
}

/* Whether params is one JSON object. */
static bool xs_client_is_object(const char *params) {
    struct json_doc doc;
    _cleanup_err_ struct err why = ERR_INIT;
    size_t n = strlen(params);
    json_doc_init(&doc, CALLS_TEXT_MAX, 0);
    bool is = n <= CALLS_TEXT_MAX && utf8_valid(params, n) &&
              json_parse(&doc, params, n, &why) == 0 && json_root(&doc)->type == JSON_OBJECT;
    json_doc_fini(&doc);
    return is;
}

int xs_client_rpc(struct xs_client *c, const char *method, const char *params,
                  struct xs_bytes *result, struct xs_call *k) {
    struct xs_client_rpc_op *o;
    int r = op_new(c, k, sizeof *o, xs_client_rpc_end, &o);
    if (r < 0)
        return r;
    if (!xs_client_is_method(method))
        return op_refuse(&o->op, XS_EINVAL, "not the name of a method");
    if (params != NULL && !xs_client_is_object(params))
        return op_refuse(&o->op, XS_EINVAL, "%s: the params are not a JSON object", method);
    o->result = result;
    o->request.done = xs_client_rpc_done;
    o->request.after = CALLS_LOST;
    o->method = strdup(method);
    if (o->method == NULL)
        return op_refuse(&o->op, XS_ENOMEM, "out of memory");
    struct params p = {.b = calls_begin(c, &o->request, o->method)};
    params_raw(&p, NULL, params != NULL ? str_of(params) : STR_LIT("{}"));
    if (calls_send(c, &o->request, p.r, &o->op.error) < 0)
        return op_refused(&o->op);
    return op_wait(&o->op);
}
