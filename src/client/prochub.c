#include "client/prochub.h"

#include "client/procend.h"
#include "client/procflow.h"
#include "client/procinput.h"
#include "client/procstart.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>

static struct processes *prochub_of(struct client_part *part) {
    return container_of(part, struct processes, part);
}

static struct xs_process *prochub_process(struct list *node) {
    return list_entry(node, struct xs_process, node);
}

void prochub_params(struct params *p, struct buf *b, const char *id) {
    *p = (struct params){.b = b};
    params_open(p, NULL, '{');
    params_strz(p, "processId", id);
}

/* -- errands -- */

static void prochub_errand_free(struct prochub_errand *e) {
    calls_drop(&e->request);
    list_remove(&e->node);
    free(e);
}

static void prochub_errand_done(struct calls_request *r, int err, const struct json_node *result,
                                struct xs_error *why) {
    (void)err;
    (void)result;
    (void)why;
    prochub_errand_free(container_of(r, struct prochub_errand, request));
}

struct prochub_errand *prochub_errand_new(struct processes *hub, const char *method,
                                          struct buf **params) {
    struct prochub_errand *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return NULL;
    list_append(&hub->errands, &e->node);
    e->request.done = prochub_errand_done;
    e->request.after = CALLS_AGAIN;
    e->request.urgent = true;
    *params = calls_begin(hub->client, &e->request, method);
    if (*params != NULL)
        return e;
    prochub_errand_free(e);
    return NULL;
}

int prochub_errand_send(struct processes *hub, struct prochub_errand *e, int built) {
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
    int r = calls_send(hub->client, &e->request, built, &why);
    if (r < 0)
        prochub_errand_free(e);
    return r;
}

void prochub_kill(struct processes *hub, const char *id) {
    struct buf *b = NULL;
    struct params p;
    struct prochub_errand *e = prochub_errand_new(hub, "process/terminate", &b);
    if (e == NULL)
        return;
    prochub_params(&p, b, id);
    params_close(&p, '}');
    (void)prochub_errand_send(hub, e, p.r);
}

/* -- processes -- */

struct xs_process *prochub_process_new(struct processes *hub, const char *id, uint64_t after) {
    struct xs_process *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->hub = hub;
    p->id = strdup(id);
    if (p->id == NULL) {
        free(p);
        return NULL;
    }
    uint64_t prefix;
    randombytes_buf(&prefix, sizeof(prefix));
    snprintf(p->write_prefix, sizeof(p->write_prefix), "%016llx", (unsigned long long)prefix);
    list_init(&p->node);
    list_init(&p->ops);
    procflow_init(p, after);
    procinput_init(p);
    procend_init(p);
    return p;
}

int prochub_add(struct xs_process *p) {
    if (!p->view) {
        if (hash_find(&p->hub->ids, str_of(p->id)) != NULL)
            return XS_EINVAL;
        if (hash_add(&p->hub->ids, &p->by_id, str_of(p->id)) < 0)
            return XS_ENOMEM;
        p->listed = true;
    }
    list_append(&p->hub->all, &p->node);
    return 0;
}

void prochub_process_free(struct xs_process *p, int code) {
    if (p->gone != NULL)
        *p->gone = true;
    list_for_each(it, &p->ops) {
        struct prochub_op *o = list_entry(it, struct prochub_op, node);
        list_remove(it);
        o->p = NULL;
        op_fail(&o->op, code, "the process was freed");
    }
    if (p->live_counted)
        client_live(p->hub->client, -1);
    if (p->listed)
        hash_remove(&p->hub->ids, &p->by_id);
    list_remove(&p->node);
    procend_fini(p);
    procinput_fini(p);
    procflow_fini(p);
    free(p->session);
    free(p->id);
    free(p);
}

void prochub_set_state(struct xs_process *p, enum prochub_state s) {
    bool live = s == PROCHUB_LIVE;
    p->state = s;
    if (live != p->live_counted)
        client_live(p->hub->client, live ? 1 : -1);
    p->live_counted = live;
}

void prochub_set_live(struct xs_process *p) {
    prochub_set_state(p, p->q.closed_queued ? PROCHUB_CLOSED : PROCHUB_LIVE);
}

/* -- operations -- */

void prochub_op_end(struct op *op) {
    struct prochub_op *o = (struct prochub_op *)op;
    calls_drop(&o->request);
    if (o->p == NULL)
        return;
    if (o->p->next == o)
        o->p->next = NULL;
    list_remove(&o->node);
    o->p = NULL;
}

int prochub_op_new(struct xs_process *p, struct xs_call *k, size_t size, void (*end)(struct op *op),
                   void *out) {
    int r = op_new(p->hub->client, k, size, end, out);
    if (r < 0)
        return r;
    struct prochub_op *o = *(struct prochub_op **)out;
    o->p = p;
    list_append(&p->ops, &o->node);
    return 0;
}

void prochub_check(struct xs_process *p) {
    list_for_each(it, &p->ops) {
        struct prochub_op *o = list_entry(it, struct prochub_op, node);
        if (o->check != NULL)
            o->check(o);
    }
}

/* -- the part -- */

/* The process or view that a notification is about, or NULL. */
static struct xs_process *prochub_find(struct processes *hub, const struct procmsg_note *n) {
    if (!n->viewed) {
        struct hash_node *h = hash_find(&hub->ids, n->id);
        return h != NULL ? container_of(h, struct xs_process, by_id) : NULL;
    }
    list_for_each(it, &hub->all) {
        struct xs_process *p = prochub_process(it);
        if (p->view && p->attached && p->attach_id == n->attach)
            return p;
    }
    return NULL;
}

static int prochub_note(struct client_part *part, struct str method,
                        const struct json_node *params) {
    struct processes *hub = prochub_of(part);
    struct procmsg_note n;
    if (procmsg_note(method, params, &n) < 0)
        return XS_EPROTO;
    if (n.type == PROCMSG_OTHER)
        return 0;
    struct xs_process *p = prochub_find(hub, &n);
    if (p == NULL || p->state == PROCHUB_FAILED)
        return 1;
    int r = procflow_note(p, &n);
    if (r == -ENOMEM)
        procflow_fail(p, XS_ENOMEM, "process %s: out of memory for its events", p->id);
    return r == -EPROTO ? XS_EPROTO : 1;
}

static void prochub_resumed(struct client_part *part) {
    list_for_each(it, &prochub_of(part)->all) {
        struct xs_process *p = prochub_process(it);
        if (p->state != PROCHUB_LIVE)
            continue;
        p->attached = false;
        if (p->view)
            procstart_attach(p);
        else
            procflow_resumed(p);
    }
}

/* Ends what waits without a request of its own. */
static void prochub_fail_start(struct xs_process *p, const struct xs_error *why) {
    list_for_each(it, &p->ops) {
        struct prochub_op *o = list_entry(it, struct prochub_op, node);
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_copy(&e, why);
        if (o->request.client == NULL && p->attach.client == NULL)
            op_fail_with(&o->op, &e); /* frees p */
        return;
    }
}

static void prochub_failed(struct client_part *part, const struct xs_error *why) {
    list_for_each(it, &prochub_of(part)->all) {
        struct xs_process *p = prochub_process(it);
        if (p->state == PROCHUB_LIVE)
            procflow_fail_with(p, why);
        else if (p->state == PROCHUB_STARTING)
            prochub_fail_start(p, why);
    }
}

static void prochub_closing(struct client_part *part) {
    struct processes *hub = prochub_of(part);
    list_for_each(it, &hub->all) {
        struct xs_process *p = prochub_process(it);
        bool runs = p->state == PROCHUB_STARTING || p->state == PROCHUB_LIVE;
        if (!p->view && runs && !p->exit.exited)
            prochub_kill(hub, p->id);
    }
}

static void prochub_free(struct client_part *part) {
    struct processes *hub = prochub_of(part);
    list_for_each(it, &hub->errands)
        prochub_errand_free(list_entry(it, struct prochub_errand, node));
    list_for_each(it, &hub->all) prochub_process_free(prochub_process(it), XS_ECANCELED);
    hash_fini(&hub->ids);
    *client_processes(hub->client) = NULL;
    free(hub);
}

struct processes *prochub_get(struct xs_client *c) {
    struct processes **slot = client_processes(c);
    if (*slot != NULL)
        return *slot;
    struct processes *hub = calloc(1, sizeof(*hub));
    if (hub == NULL)
        return NULL;
    hub->client = c;
    hub->part = (struct client_part){.note = prochub_note,
                                     .resumed = prochub_resumed,
                                     .failed = prochub_failed,
                                     .closing = prochub_closing,
                                     .free = prochub_free};
    list_init(&hub->all);
    list_init(&hub->errands);
    hash_init(&hub->ids);
    client_add_part(c, &hub->part);
    *slot = hub;
    return hub;
}
