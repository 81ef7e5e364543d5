#include "client/engine.h"
#include "json/json_put.h"
#include "json/jsonw.h"

#include <errno.h>
#include <string.h>

#define CALLS_TURNS 64 /* buffers written in one turn of the loop */
#define CALLS_PIECE ((size_t)CLIENT_BLOCK_MAX / 3 * 4 + 4096) /* a block in Base64, in a message */

static void calls_on_room(struct loop_task *t);
static void calls_on_pump(struct loop_task *t);

void calls_init(struct xs_client *c) {
    list_init(&c->waiting);
    list_init(&c->flight);
    list_init(&c->replies);
    list_init(&c->waiters);
    list_init(&c->room_task.node);
    list_init(&c->pump_task.node);
    c->room_task.fn = calls_on_room;
    c->pump_task.fn = calls_on_pump;
    c->next_id = 1;
    uint64_t seed = 0;
    client_random(&seed, sizeof seed);
    json_doc_init(&c->doc, CLIENT_MESSAGE_MAX, seed);
}

/* -- accounts -- */

static size_t calls_queue_max(const struct xs_client *c) {
    return (size_t)xs_options_get_num(c->options, XS_OPT_QUEUE, 8 << 20);
}

size_t calls_room(const struct xs_client *c) {
    size_t max = calls_queue_max(c);
    return c->calls >= CALLS_MAX || c->queued >= max ? 0 : max - c->queued;
}

void calls_wait_room(struct xs_client *c, struct calls_waiter *w) {
    if (w->node.next != NULL && !list_empty(&w->node))
        return;
    list_init(&w->node);
    list_append(&c->waiters, &w->node);
    if (calls_room(c) >= CALLS_PIECE)
        loop_defer(&c->loop, &c->room_task);
}

void calls_stop_waiting(struct calls_waiter *w) {
    if (w->node.next != NULL)
        list_remove(&w->node);
}

static void calls_on_room(struct loop_task *t) {
    struct xs_client *c = container_of(t, struct xs_client, room_task);
    for (struct list *n; calls_room(c) >= CALLS_PIECE && (n = list_first(&c->waiters)) != NULL;) {
        struct calls_waiter *w = list_entry(n, struct calls_waiter, node);
        list_remove(&w->node);
        w->fn(w);
    }
}

static void calls_tell_room(struct xs_client *c) {
    if (!list_empty(&c->waiters) && calls_room(c) >= CALLS_PIECE)
        loop_defer(&c->loop, &c->room_task);
}

/* Takes a request out of everything. Its text stays. */
static void calls_take_out(struct calls_request *r) {
    struct xs_client *c = r->client;
    if (r->connection == 0)
        c->queued -= r->text.len;
    c->calls--;
    c->patient -= r->patient;
    c->urgent -= r->urgent;
    list_remove(&r->node);
    r->client = NULL;
    calls_tell_room(c);
    client_balance(c);
}

void calls_drop(struct calls_request *r) {
    struct xs_client *c = r->client;
    if (c != NULL) {
        if (c->put_request == r) {
            /* Its message has begun, and must go on. */
            c->put_request = NULL;
            c->orphan = steal_ptr(&r->text.p);
        }
        bool urgent = r->urgent;
        calls_take_out(r);
        if (urgent)
            resume_end(c);
    }
    buf_fini(&r->text);
}

/* -- sending -- */

struct buf *calls_begin(struct xs_client *c, struct calls_request *r, const char *method) {
    calls_drop(r);
    r->text = BUF_INIT(CALLS_TEXT_MAX);
    r->method = method;
    r->id = c->next_id++;
    r->connection = r->end = r->sent_ms = 0;
    r->settled = false;
    list_init(&r->node);
    if (buf_putf(&r->text, "{\"id\":%llu,\"method\":\"%s\",\"params\":", (unsigned long long)r->id,
                 method) < 0)
        return NULL;
    return &r->text;
}

static int calls_check(struct xs_client *c, const struct calls_request *r, int built,
                       struct xs_error *e) {
    if (c->state == XS_STATE_FAILED || c->state == XS_STATE_CLOSED)
        return xs_error_copy(e, &c->failure);
    if (built == -EILSEQ)
        return xs_error_set(e, XS_EINVAL, "%s: a text is not UTF-8", r->method);
    if (built == -ENOBUFS)
        return xs_error_set(e, XS_EINVAL, "%s: the request is larger than %u bytes", r->method,
                            CALLS_TEXT_MAX);
    if (built < 0)
        return xs_error_set(e, XS_ENOMEM, "%s: out of memory", r->method);
    if (c->calls >= CALLS_MAX + (r->urgent ? 1u : 0u))
        return xs_error_set(e, XS_EBUSY, "%s: %u calls are in flight", r->method, CALLS_MAX);
    if (!r->urgent && c->queued > 0 && c->queued + r->text.len > calls_queue_max(c))
        return xs_error_set(e, XS_EBUSY, "%s: %zu bytes wait to be sent", r->method, c->queued);
    return 0;
}

/* Urgent ones go before the others, in their order. */
static struct list *calls_place(struct xs_client *c, const struct calls_request *r) {
    struct list *at = &c->waiting;
    if (!r->urgent)
        return at;
    for (at = c->waiting.next; at != &c->waiting; at = at->next) {
        if (!list_entry(at, struct calls_request, node)->urgent)
            break;
    }
    return at;
}

int calls_send(struct xs_client *c, struct calls_request *r, int built, struct xs_error *e) {
    if (built == 0)
        built = buf_putc(&r->text, '}');
    int code = calls_check(c, r, built, e);
    if (code < 0) {
        buf_fini(&r->text);
        return code;
    }
    r->client = c;
    c->calls++;
    c->patient += r->patient;
    c->urgent += r->urgent;
    c->queued += r->text.len;
    list_insert_before(calls_place(c, r), &r->node);
    client_balance(c);
    loop_defer(&c->loop, &c->pump_task);
    return 0;
}

bool calls_was_sent(const struct calls_request *r) {
    if (r->client == NULL || r->connection == 0)
        return false;
    const struct link *l = &r->client->link;
    return r->connection != l->number || r->end <= link_sent(l);
}

uint64_t calls_age_ms(const struct calls_request *r) {
    return r->sent_ms == 0 ? 0 : client_boottime_ms() - r->sent_ms;
}

/* -- putting: one message after the other into the link's buffer -- */

static void calls_put_text(struct xs_client *c, const char *text, size_t n) {
    c->put_text = text;
    c->put_n = n;
    c->put_at = 0;
}

/* Chooses the next message. False: there is none. */
static bool calls_pick(struct xs_client *c) {
    if (c->put_text != NULL)
        return true;
    if (c->hello_at < c->hello_n) {
        calls_put_text(c, c->hello[c->hello_at].p, c->hello[c->hello_at].len);
        return true;
    }
    struct list *n = list_first(&c->replies);
    if (n != NULL) {
        c->put_reply = list_entry(n, struct engine_reply, node);
        calls_put_text(c, c->put_reply->text, c->put_reply->n);
        return true;
    }
    n = c->state == XS_STATE_READY ? list_first(&c->waiting) : NULL;
    if (n == NULL)
        return false;
    c->put_request = list_entry(n, struct calls_request, node);
    calls_put_text(c, c->put_request->text.p, c->put_request->text.len);
    return true;
}

static bool calls_logs(const struct xs_client *c) {
    return c->on_log != NULL && xs_options_get_num(c->options, XS_OPT_LOG_WIRE, 0) != 0;
}

/* The message is in the link's buffer. */
static void calls_put_done(struct xs_client *c) {
    struct calls_request *r = c->put_request;
    c->put_text = NULL;
    if (c->orphan != NULL) {
        free(steal_ptr(&c->orphan));
    } else if (c->put_reply != NULL) {
        list_remove(&c->put_reply->node);
        free(steal_ptr(&c->put_reply));
        c->reply_count--;
    } else if (r != NULL) {
        c->put_request = NULL;
        c->queued -= r->text.len;
        r->connection = c->link.number;
        r->end = c->link.put;
        if (r->sent_ms == 0)
            r->sent_ms = client_boottime_ms();
        if (calls_logs(c))
            client_log(c, XS_LOG_WIRE, "-> %s, id %llu, %zu bytes", r->method,
                       (unsigned long long)r->id, r->text.len);
        list_remove(&r->node);
        list_append(&c->flight, &r->node);
        calls_tell_room(c);
    } else {
        c->hello_at++;
    }
}

/* Fills the link's buffer. False: there is nothing more to put. */
static bool calls_fill(struct xs_client *c) {
    while (calls_pick(c)) {
        c->put_at = link_out_put(&c->link, c->put_text, c->put_n, c->put_at);
        if (c->put_at < c->put_n)
            return true;
        calls_put_done(c);
    }
    return false;
}

/* Forgets the texts that will not be sent again: blocks of a file are most of a client's memory.
 * The latest requests come first, and behind a settled one all are. */
static void calls_settle(struct xs_client *c) {
    uint64_t sent = link_sent(&c->link);
    for (struct list *n = c->flight.prev; n != &c->flight; n = n->prev) {
        struct calls_request *r = list_entry(n, struct calls_request, node);
        if (r->settled)
            return;
        if (r->connection != c->link.number || r->end > sent)
            continue;
        r->settled = true;
        if (r->after != CALLS_AGAIN)
            buf_fini(&r->text);
    }
}

void calls_pump(struct xs_client *c) {
    loop_task_del(&c->pump_task);
    for (int i = 0; i < CALLS_TURNS && c->link.state == LINK_OPEN; i++) {
        bool more = calls_fill(c), all = link_out_flush(&c->link);
        calls_settle(c);
        if (!more || !all)
            return;
    }
    if (c->link.state == LINK_OPEN)
        loop_defer(&c->loop, &c->pump_task);
}

static void calls_on_pump(struct loop_task *t) {
    calls_pump(container_of(t, struct xs_client, pump_task));
}

/* -- answers -- */

static struct calls_request *calls_find(struct xs_client *c, uint64_t id) {
    list_for_each(n, &c->flight) {
        struct calls_request *r = list_entry(n, struct calls_request, node);
        if (r->id == id)
            return r;
    }
    return NULL;
}

/* Ends a request; it may be freed then. */
static void calls_answer(struct calls_request *r, int err, const struct json_node *result,
                         struct xs_error *e) {
    struct xs_client *c = r->client;
    bool urgent = r->urgent;
    if (c->put_request == r) {
        c->put_request = NULL;
        c->put_text = NULL; /* only when the connection is gone */
    }
    calls_take_out(r);
    buf_fini(&r->text);
    r->done(r, err, result, e);
    if (urgent)
        resume_end(c);
}

static bool calls_is_error(const struct json_node *e) {
    if (e->type != JSON_OBJECT)
        return false;
    const struct json_node *code = json_get(e, "code"), *message = json_get(e, "message");
    int64_t v;
    return code != NULL && json_i64(code, &v) == 0 && message != NULL &&
           message->type == JSON_STRING;
}

static void calls_on_answer(struct xs_client *c, const struct json_node *root,
                            const struct json_node *id) {
    const struct json_node *result = json_get(root, "result"), *error = json_get(root, "error");
    int64_t number = 0;
    if ((result == NULL) == (error == NULL) || (error != NULL && !calls_is_error(error))) {
        resume_malformed(c, "an answer has neither a result nor an error");
        return;
    }
    if (json_i64(id, &number) < 0) {
        resume_malformed(c, "an answer has an id that is no number");
        return;
    }
    if (c->hello_id != 0 && (uint64_t)number == c->hello_id) {
        resume_answer(c, result, error);
        return;
    }
    struct calls_request *r = calls_find(c, (uint64_t)number);
    if (r == NULL) {
        client_log(c, XS_LOG_DEBUG, "an answer to no request, id %lld", (long long)number);
        return;
    }
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (error != NULL)
        calls_answer(r, xs_error_remote(&e, r->method, error), NULL, &e);
    else
        calls_answer(r, 0, result, &e);
}

/* We serve no method. */
static void calls_on_request(struct xs_client *c, const struct json_node *id, struct str method) {
    client_log(c, XS_LOG_DEBUG, "the server asks for %.*s", (int)MIN(method.n, 100u), method.p);
    if (c->reply_count >= ENGINE_REPLIES)
        return;
    _cleanup_buf_ struct buf b = BUF_INIT(ENGINE_REPLY_MAX);
    if (buf_putz(&b, "{\"id\":") < 0 || json_put(&b, id) < 0 ||
        buf_putz(&b, ",\"error\":{\"code\":-32601,\"message\":\"this client serves no method\"}}") <
            0)
        return;
    struct engine_reply *reply = malloc(sizeof *reply + b.len);
    if (reply == NULL)
        return;
    reply->n = b.len;
    memcpy(reply->text, b.p, b.len);
    list_append(&c->replies, &reply->node);
    c->reply_count++;
    loop_defer(&c->loop, &c->pump_task);
}

static void calls_on_note(struct xs_client *c, struct str method, const struct json_node *params) {
    list_for_each(n, &c->parts) {
        struct client_part *p = list_entry(n, struct client_part, node);
        int r = p->note != NULL ? p->note(p, method, params) : 0;
        if (r < 0)
            resume_malformed(c, "a notification is malformed");
        if (r != 0)
            return;
    }
}

static void calls_dispatch(struct xs_client *c, const struct json_node *root) {
    const struct json_node *id = json_get(root, "id"), *method = json_get(root, "method");
    if (method == NULL) {
        if (id == NULL)
            resume_malformed(c, "a message has neither an id nor a method");
        else
            calls_on_answer(c, root, id);
    } else if (method->type != JSON_STRING) {
        resume_malformed(c, "a method is no text");
    } else if (id != NULL) {
        calls_on_request(c, id, json_str(method));
    } else {
        calls_on_note(c, json_str(method), json_get(root, "params"));
    }
}

/* What came, without its data. */
static void calls_log_message(struct xs_client *c, const struct json_node *root, size_t n) {
    const struct json_node *id = json_get(root, "id"), *method = json_get(root, "method");
    int64_t number = 0;
    if (!calls_logs(c))
        return;
    if (id != NULL && json_i64(id, &number) < 0)
        number = 0;
    if (method != NULL && method->type == JSON_STRING)
        client_log(c, XS_LOG_WIRE, "<- %.*s, %zu bytes", (int)MIN(json_str(method).n, (size_t)100),
                   json_str(method).p, n);
    else
        client_log(c, XS_LOG_WIRE, "<- %s, id %lld, %zu bytes",
                   json_get(root, "error") != NULL ? "error" : "answer", (long long)number, n);
}

void calls_message(struct xs_client *c, char *data, size_t n) {
    _cleanup_err_ struct err why = ERR_INIT;
    int r = json_parse(&c->doc, data, n, &why);
    if (r == -ENOMEM) {
        link_break(&c->link, LINK_LOST, XS_ENOMEM, "out of memory");
    } else if (r < 0) {
        resume_malformed(c, err_msg(&why));
    } else if (json_root(&c->doc)->type != JSON_OBJECT) {
        resume_malformed(c, "a message is no object");
    } else {
        calls_log_message(c, json_root(&c->doc), n);
        calls_dispatch(c, json_root(&c->doc));
    }
    json_doc_trim(&c->doc);
}

/* -- outages -- */

/* Puts a request, which is in no list, back in front of those that wait. */
static void calls_unsend(struct xs_client *c, struct list *before, struct calls_request *r) {
    r->connection = 0;
    r->settled = false;
    c->queued += r->text.len;
    list_insert_before(before, &r->node);
}

static void calls_forget_replies(struct xs_client *c) {
    for (struct list *n; (n = list_first(&c->replies)) != NULL;) {
        list_remove(n);
        free(list_entry(n, struct engine_reply, node));
    }
    c->put_reply = NULL;
    c->reply_count = 0;
}

void calls_cut(struct xs_client *c) {
    c->put_text = NULL;
    c->put_request = NULL;
    free(steal_ptr(&c->orphan));
    calls_forget_replies(c);
    uint64_t sent = link_sent(&c->link);
    struct list *before = c->waiting.next;
    list_for_each(n, &c->flight) {
        struct calls_request *r = list_entry(n, struct calls_request, node);
        if (r->connection != c->link.number || r->end <= sent)
            continue;
        list_remove(&r->node);
        r->sent_ms = 0;
        calls_unsend(c, before, r);
    }
}

static void calls_move(struct list *to, struct list *from) {
    for (struct list *n; (n = list_first(from)) != NULL;) {
        list_remove(n);
        list_append(to, n);
    }
}

/* What becomes of a request that was sent. */
static void calls_decide(struct xs_client *c, struct calls_request *r) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    switch (r->after) {
    case CALLS_AGAIN:
        list_remove(&r->node);
        calls_unsend(c, &c->waiting, r);
        break;
    case CALLS_LOST:
        xs_error_set(&e, XS_ELOST, "%s: the connection was lost before the answer came", r->method);
        calls_answer(r, XS_ELOST, NULL, &e);
        break;
    case CALLS_ASK:
        calls_take_out(r);
        buf_fini(&r->text);
        r->lost(r);
        break;
    }
}

void calls_resume(struct xs_client *c) {
    struct list unsent, sent;
    list_init(&unsent);
    list_init(&sent);
    calls_move(&unsent, &c->waiting);
    calls_move(&sent, &c->flight);
    list_for_each(n, &c->parts) {
        struct client_part *p = list_entry(n, struct client_part, node);
        if (p->resumed != NULL)
            p->resumed(p);
    }
    for (struct list *n; (n = list_first(&sent)) != NULL;)
        calls_decide(c, list_entry(n, struct calls_request, node));
    calls_move(&c->waiting, &unsent);
    loop_defer(&c->loop, &c->pump_task);
}

static void calls_end_list(struct list *l, const struct xs_error *why) {
    for (struct list *n; (n = list_first(l)) != NULL;) {
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_copy(&e, why);
        calls_answer(list_entry(n, struct calls_request, node), e.code, NULL, &e);
    }
}

void calls_end(struct xs_client *c, const struct xs_error *e) {
    calls_end_list(&c->flight, e);
    calls_end_list(&c->waiting, e);
}

void calls_fini(struct xs_client *c) {
    free(steal_ptr(&c->orphan));
    calls_forget_replies(c);
    json_doc_fini(&c->doc);
    loop_task_del(&c->room_task);
    loop_task_del(&c->pump_task);
}

/* -- text -- */

int calls_bytes(struct xs_bytes *out, const struct json_node *v) {
    _cleanup_buf_ struct buf b = BUF_INIT(SIZE_MAX / 4);
    if (json_put(&b, v) < 0 || buf_putc(&b, '\0') < 0)
        return XS_ENOMEM;
    out->n = b.len - 1;
    out->data = steal_ptr(&b.p);
    return 0;
}
