#include "client/exec_turn.h"
#include "client/exec_window.h"

#include "client/exec_text.h"

#include <stdio.h>

void xs_exec_result_free(struct xs_exec_result *r) {
    if (r == NULL)
        return;
    free((char *)r->text);
    free(r);
}

static void on_notice(struct notice *n) {
    struct xs_exec *x = container_of(n, struct xs_exec, notice);
    struct xs_client *c = x->client;
    struct exec_guard g;
    exec_session_enter(x, &g);
    bool more = exec_session_step(x);
    if (exec_session_leave(x, &g) && more)
        notice_post(c, &x->notice);
}

/* Frees the sessions; `terminate` as of exec_session_free(). */
static void forget_sessions(struct xs_exec *x, bool terminate) {
    list_for_each(it, &x->sessions)
        exec_session_free(list_entry(it, struct exec_session, node), terminate);
    list_for_each(it, &x->errands) {
        struct exec_errand *e = list_entry(it, struct exec_errand, node);
        if (e->turn != NULL)
            e->turn->errand = NULL;
        e->turn = NULL;
    }
    notice_drop(&x->notice);
    if (x->gone != NULL)
        *x->gone = true;
    x->gone = NULL;
}

/* The client goes, with its processes and operations. */
static void on_client_free(struct client_part *p) {
    struct xs_exec *x = container_of(p, struct xs_exec, part);
    forget_sessions(x, false);
    list_for_each(it, &x->errands) free(list_entry(it, struct exec_errand, node));
    free(x);
}

int xs_exec_new(struct xs_client *c, const struct xs_exec_events *events, void *user,
                struct xs_exec **out) {
    struct xs_exec *x = calloc(1, sizeof(*x));
    *out = NULL;
    if (x == NULL)
        return client_error(c, XS_ENOMEM, "exec: out of memory");
    if (events != NULL)
        memcpy(&x->events, events, MIN(events->size, sizeof(x->events)));
    x->client = c;
    x->user = user;
    x->part.free = on_client_free;
    list_init(&x->sessions);
    list_init(&x->errands);
    notice_init(&x->notice, on_notice);
    client_add_part(c, &x->part);
    *out = x;
    return 0;
}

static void cancel_turns(struct xs_exec *x) {
    list_for_each(it, &x->sessions) {
        struct exec_session *s = list_entry(it, struct exec_session, node);
        list_for_each(at, &s->turns)
            exec_turn_fail(list_entry(at, struct exec_turn, node), XS_ECANCELED, "exec is freed");
    }
}

void xs_exec_free(struct xs_exec *x) {
    if (x == NULL)
        return;
    cancel_turns(x);
    forget_sessions(x, true);
    x->events = (struct xs_exec_events){.size = sizeof(x->events)};
    list_for_each(it, &x->errands) xs_call_cancel(&list_entry(it, struct exec_errand, node)->call);
    if (!list_empty(&x->errands)) {
        x->closing = true; /* the last errand frees it */
        return;
    }
    list_remove(&x->part.node);
    free(x);
}

/* A turn with its options. 0 and *out, or a negative error. */
static int turn_new(struct xs_exec *x, const struct xs_options *o, struct xs_exec_result **out,
                    struct xs_call *k, struct exec_turn **turn) {
    struct exec_turn *t;
    *out = NULL;
    int r = op_new(x->client, k, sizeof(*t), exec_turn_end, &t);
    if (r < 0)
        return r;
    list_init(&t->node);
    t->out = out;
    t->input = BUF_INIT(SIZE_MAX);
    t->max_tokens =
        (uint64_t)MAX(xs_options_get_num(o, XS_OPT_MAX_TOKENS, EXEC_TEXT_TOKENS), (int64_t)0);
    *turn = t;
    return 0;
}

int xs_exec_command(struct xs_exec *x, const struct xs_options *o, struct xs_exec_result **out,
                    struct xs_call *k) {
    struct exec_turn *t;
    int r = turn_new(x, o, out, k, &t);
    if (r < 0)
        return r;
    t->command = true;
    t->window_ms = exec_window_command(xs_options_get_num(o, XS_OPT_YIELD_MS, -1));
    struct exec_session *s = exec_session_new(x, o);
    if (s == NULL)
        return op_refuse(&t->op, XS_ENOMEM, "exec_command: out of memory, or of sessions");
    t->session = s;
    list_append(&s->turns, &t->node);
    r = exec_turn_start(t);
    if (r < 0) {
        struct xs_error e = XS_ERROR_INIT;
        (void)xs_error_copy(&e, xs_client_error(x->client));
        r = op_refuse(&t->op, r, "%s", xs_error_text(&e));
        xs_error_fini(&e);
        return r;
    }
    return op_wait(&t->op);
}

int xs_exec_write_stdin(struct xs_exec *x, int session, const void *data, size_t n,
                        const struct xs_options *o, struct xs_exec_result **out,
                        struct xs_call *k) {
    struct exec_turn *t;
    int r = turn_new(x, o, out, k, &t);
    if (r < 0)
        return r;
    t->window_ms = exec_window_write(xs_options_get_num(o, XS_OPT_YIELD_MS, -1), n > 0,
                                     xs_options_get_num(o, XS_OPT_POLL_MAX_MS, -1));
    struct exec_session *s = exec_session_find(x, session);
    if (s == NULL)
        return op_refuse(&t->op, XS_EINVAL, "Unknown process id %d", session);
    if (buf_put(&t->input, data, n) < 0)
        return op_refuse(&t->op, XS_ENOMEM, "write_stdin: out of memory");
    t->session = s;
    list_append(&s->turns, &t->node);
    notice_post(x->client, &x->notice);
    return op_wait(&t->op);
}
