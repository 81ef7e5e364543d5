#include "client/exec_session.h"

#include "base/uuid.h"
#include "client/exec_turn.h"
#include "client/exec_window.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

#define NUMBER_MIN 1000
#define NUMBER_MAX 99999

static struct exec_session *of(struct list *node) {
    return list_entry(node, struct exec_session, node);
}

static struct exec_turn *first_turn(const struct exec_session *s) {
    struct list *node = list_first(&s->turns);
    return node != NULL ? list_entry(node, struct exec_turn, node) : NULL;
}

void exec_session_enter(struct xs_exec *x, struct exec_guard *g) {
    *g = (struct exec_guard){.outer = x->gone};
    x->gone = &g->gone;
}

bool exec_session_leave(struct xs_exec *x, struct exec_guard *g) {
    if (!g->gone)
        x->gone = g->outer;
    else if (g->outer != NULL)
        *g->outer = true;
    return !g->gone;
}

static bool is_taken(const struct xs_exec *x, int number) {
    list_for_each(it, &x->sessions) if (of(it)->info.session == number) return true;
    return false;
}

/* EXEC_SESSIONS_MAX leaves most numbers free. */
static int draw_number(const struct xs_exec *x) {
    int number;
    do
        number = NUMBER_MIN + (int)randombytes_uniform(NUMBER_MAX - NUMBER_MIN + 1);
    while (is_taken(x, number));
    return number;
}

/* The id on the wire is the caller's, or the number and a UUID. */
static bool name_it(struct exec_session *s) {
    char uuid[UUID_LEN + 1];
    s->info.id = xs_options_get(s->options, XS_OPT_PROCESS_ID, NULL);
    if (s->info.id != NULL)
        return true;
    uuid_random(uuid);
    (void)snprintf(s->id, sizeof(s->id), "%d-%s", s->info.session, uuid);
    s->info.id = s->id;
    return xs_options_str(s->options, XS_OPT_PROCESS_ID, s->id) == 0;
}

struct exec_session *exec_session_new(struct xs_exec *x, const struct xs_options *o) {
    struct exec_session *s = x->count < EXEC_SESSIONS_MAX ? calloc(1, sizeof(*s)) : NULL;
    if (s == NULL)
        return NULL;
    s->exec = x;
    s->exit = (struct xs_exit){.size = sizeof(s->exit), .code = -1};
    s->info.session = draw_number(x);
    s->tty = xs_options_get_num(o, XS_OPT_TTY, 0) != 0;
    exec_buffer_init(&s->output, EXEC_BUFFER_HALF);
    exec_buffer_init(&s->transcript, EXEC_BUFFER_HALF);
    list_init(&s->turns);
    list_append(&x->sessions, &s->node);
    x->count++;
    s->options = xs_options_copy(o);
    if (s->options == NULL || !name_it(s)) {
        exec_session_free(s, true);
        return NULL;
    }
    s->info.call_id = xs_options_get(s->options, XS_OPT_TOOL_CALL_ID, "");
    s->info.cwd = xs_options_get(s->options, XS_OPT_CWD, "");
    s->info.argv = xs_options_list(s->options, XS_OPT_ARGV, &s->info.argc);
    return s;
}

void exec_session_free(struct exec_session *s, bool terminate) {
    list_for_each(it, &s->turns) {
        struct exec_turn *t = list_entry(it, struct exec_turn, node);
        list_remove(&t->node);
        t->session = NULL;
    }
    list_remove(&s->node);
    s->exec->count--;
    if (terminate)
        xs_process_free(s->process);
    xs_options_free(s->options);
    exec_buffer_fini(&s->output);
    exec_buffer_fini(&s->transcript);
    free(s->failure);
    free(s);
}

struct exec_session *exec_session_find(const struct xs_exec *x, int number) {
    list_for_each(it, &x->sessions) {
        struct exec_session *s = of(it);
        if (s->info.session == number && s->stored && !s->pruned)
            return s;
    }
    return NULL;
}

static void on_errand(struct xs_call *call, int result) {
    struct exec_errand *e = container_of(call, struct exec_errand, call);
    struct xs_exec *x = e->exec;
    struct exec_turn *t = e->turn;
    struct xs_process *p = e->process;
    exec_session_no_errand(e);
    if (t != NULL) {
        t->errand = NULL;
        exec_turn_answered(t, result, result < 0 ? NULL : p);
        return;
    }
    if (result >= 0)
        xs_process_free(p);
    if (x->closing && list_empty(&x->errands)) {
        list_remove(&x->part.node);
        free(x);
    }
}

struct exec_errand *exec_session_errand(struct xs_exec *x, struct exec_turn *t) {
    struct exec_errand *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return NULL;
    e->call.done = on_errand;
    e->exec = x;
    e->turn = t;
    list_append(&x->errands, &e->node);
    if (t != NULL)
        t->errand = e;
    return e;
}

void exec_session_no_errand(struct exec_errand *e) {
    list_remove(&e->node);
    if (e->turn != NULL)
        e->turn->errand = NULL;
    free(e);
}

/* -- events of the process -- */

/* Tells the deltas of new output of s->stream; false: everything is gone. */
static bool tell_deltas(struct exec_session *s, struct str in, bool last) {
    struct xs_exec *x = s->exec;
    char piece[EXEC_DELTA_MAX];
    size_t n;
    while (x->events.delta != NULL && (n = exec_delta_next(&s->delta, &in, last, piece)) > 0) {
        struct exec_guard g;
        exec_session_enter(x, &g);
        x->events.delta(x->user, &s->info, s->stream, piece, n);
        if (!exec_session_leave(x, &g))
            return false;
    }
    return true;
}

/* Without memory the bytes count as omitted. */
static void keep(struct exec_session *s, const char *p, size_t n) {
    if (exec_buffer_put(&s->output, p, n) < 0 || exec_buffer_put(&s->transcript, p, n) < 0)
        client_log(s->exec->client, XS_LOG_WARN, "exec: session %d: out of memory",
                   s->info.session);
}

static void take_output(struct exec_session *s, const struct xs_event *e) {
    keep(s, e->data, e->n);
    if (s->stream != e->stream && !tell_deltas(s, (struct str){NULL, 0}, true))
        return;
    s->stream = e->stream;
    (void)tell_deltas(s, (struct str){e->data, e->n}, false);
}

static void keep_gap(struct exec_session *s, const struct xs_event *e) {
    char text[96];
    int n =
        snprintf(text, sizeof(text), "\n... output lost: chunks %" PRIu64 " to %" PRIu64 " ...\n",
                 e->seq, e->gap_to);
    keep(s, text, (size_t)n);
}

static void end(struct exec_session *s) {
    s->ended = true;
    list_for_each(it, &s->turns) {
        exec_turn_process_ended(list_entry(it, struct exec_turn, node));
        break;
    }
    notice_post(s->exec->client, &s->exec->notice);
}

static void note_exit(struct exec_session *s, const struct xs_exit *e) {
    if (e != NULL)
        memcpy(&s->exit, e, MIN(e->size, sizeof(s->exit)));
    s->exit.size = sizeof(s->exit);
}

static int on_event(struct xs_process *p, const struct xs_event *e, void *user) {
    struct exec_session *s = user;
    (void)p;
    switch (e->type) {
    case XS_EV_OUTPUT: take_output(s, e); return 0;
    case XS_EV_GAP: keep_gap(s, e); return 0;
    case XS_EV_EXITED: note_exit(s, e->exit); return 0;
    case XS_EV_CLOSED:
        note_exit(s, e->exit);
        end(s);
        return 0;
    case XS_EV_FAILED:
        s->failure = strdup(e->text != NULL ? e->text : "the process failed");
        s->exit.code = s->exit.exited ? s->exit.code : -1;
        end(s);
        return 0;
    }
    return 0;
}

void exec_session_started(struct exec_session *s, struct xs_process *p) {
    struct xs_exec *x = s->exec;
    s->process = p;
    xs_process_on_event(p, on_event, s);
    if (x->events.begin != NULL)
        x->events.begin(x->user, &s->info);
}

/* -- which are kept -- */

static void make_room(struct xs_exec *x) {
    struct exec_window_slot slots[EXEC_SESSIONS_MAX];
    struct exec_session *kept[EXEC_SESSIONS_MAX];
    size_t n = 0;
    list_for_each(it, &x->sessions) {
        struct exec_session *s = of(it);
        if (!s->stored || s->pruned)
            continue;
        kept[n] = s;
        slots[n++] = (struct exec_window_slot){s->used, s->ended, !list_empty(&s->turns)};
    }
    int victim = n >= EXEC_WINDOW_PROCESSES ? exec_window_victim(slots, n) : -1;
    if (victim >= 0)
        exec_session_prune(kept[victim]);
}

void exec_session_store(struct exec_session *s) {
    make_room(s->exec);
    s->stored = true;
    s->used = ++s->exec->tick;
}

void exec_session_prune(struct exec_session *s) {
    s->pruned = true;
    s->kill = !s->ended && s->process != NULL;
    notice_post(s->exec->client, &s->exec->notice);
}

/* -- what is due -- */

/* Tells the rest of the output, then the end. */
static void tell_end(struct exec_session *s) {
    struct xs_exec *x = s->exec;
    _cleanup_buf_ struct buf all = BUF_INIT(2 * EXEC_BUFFER_HALF + 64);
    s->told = true;
    if (!tell_deltas(s, (struct str){NULL, 0}, true) || x->events.end == NULL)
        return;
    bool whole = exec_buffer_flatten(&s->transcript, false, &all) == 0;
    struct xs_part part = {.data = all.p,
                           .head = whole ? s->transcript.head.len : 0,
                           .tail = whole ? s->transcript.tail_len : 0,
                           .total = exec_buffer_total(&s->transcript)};
    part.omitted = part.total - part.head - part.tail;
    x->events.end(x->user, &s->info, &s->exit, &part);
}

/* The turns behind the one that brought the end. */
static void refuse_turns(struct exec_session *s) {
    char text[64];
    (void)snprintf(text, sizeof(text), "Unknown process id %d", s->info.session);
    list_for_each(it, &s->turns)
        exec_turn_fail(list_entry(it, struct exec_turn, node), XS_EINVAL, text);
}

static void finish_turn(struct exec_session *s, struct exec_turn *t) {
    struct xs_exec *x = s->exec;
    _cleanup_buf_ struct buf input = BUF_INIT(SIZE_MAX);
    bool interaction = exec_turn_finish(t, &input);
    if (s->ended) {
        s->pruned = true;
        refuse_turns(s);
    }
    if (interaction && x->events.interaction != NULL)
        x->events.interaction(x->user, &s->info, input.p, input.len);
}

static void terminate(struct exec_session *s) {
    struct exec_errand *e = exec_session_errand(s->exec, NULL);
    s->kill = false;
    if (e != NULL && xs_process_terminate(s->process, 0, &e->call) < 0)
        exec_session_no_errand(e);
}

/* Whether it did something; the session may be gone then. */
static bool step(struct exec_session *s) {
    struct exec_turn *t = first_turn(s);
    if (s->ended && !s->told) {
        tell_end(s);
        return true;
    }
    if (t != NULL && t->due) {
        finish_turn(s, t);
        return true;
    }
    if (t != NULL && t->stage == EXEC_WAITING) {
        exec_turn_begin(t);
        return true;
    }
    if (t == NULL && !s->stored && !s->pruned) { /* its command was cancelled */
        exec_session_prune(s);
        return true;
    }
    if (s->kill) {
        terminate(s);
        return true;
    }
    if (s->pruned && (s->ended || s->process == NULL)) {
        exec_session_free(s, true);
        return true;
    }
    return false;
}

static bool cancel_errands(struct xs_exec *x) {
    list_for_each(it, &x->errands) {
        struct exec_errand *e = list_entry(it, struct exec_errand, node);
        if (e->cancel) {
            e->cancel = false;
            xs_call_cancel(&e->call);
            return true;
        }
    }
    return false;
}

bool exec_session_step(struct xs_exec *x) {
    if (cancel_errands(x))
        return true;
    list_for_each(it, &x->sessions) if (step(of(it))) return true;
    return false;
}
