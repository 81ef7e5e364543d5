#include "client/exec_turn.h"

#include "client/exec_text.h"
#include "client/exec_window.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>

/* What xs_exec_result points into. */
struct turn_result {
    struct xs_exec_result public;
    struct xs_exit exit;
    char chunk_id[EXEC_TEXT_CHUNK_ID + 1];
};

static void set_timer(struct exec_turn *t, enum exec_stage stage, int64_t ms);

static void set_due(struct exec_turn *t) {
    struct xs_exec *x = t->session->exec;
    loop_timer_del(client_loop(x->client), &t->timer);
    t->due = true;
    notice_post(x->client, &x->notice);
}

/* Leaves its session, before the op is finished: the next turn may begin. */
static void leave(struct exec_turn *t) {
    loop_timer_del(client_loop(t->op.client), &t->timer);
    if (t->errand != NULL) {
        t->errand->turn = NULL;
        t->errand->cancel = t->stage == EXEC_STARTING;
        t->errand = NULL;
    }
    if (t->session != NULL) {
        struct xs_exec *x = t->session->exec;
        list_remove(&t->node);
        t->session = NULL;
        notice_post(x->client, &x->notice);
    }
}

void exec_turn_end(struct op *op) {
    struct exec_turn *t = container_of(op, struct exec_turn, op);
    leave(t);
    buf_fini(&t->input);
}

void exec_turn_fail(struct exec_turn *t, int code, const char *text) {
    leave(t);
    op_fail(&t->op, code, "%s", text);
}

static void collect(struct exec_turn *t) {
    t->began = client_loop(t->op.client)->clock();
    set_timer(t, EXEC_COLLECTING, t->window_ms);
    if (t->session->ended)
        set_due(t);
}

static void on_timer(struct loop_timer *timer) {
    struct exec_turn *t = container_of(timer, struct exec_turn, timer);
    const struct xs_exit *e = &t->session->exit;
    if (t->stage == EXEC_EARLY && e->exited && e->sandbox_denied) {
        set_timer(t, EXEC_DENIAL, EXEC_WINDOW_DENIAL);
    } else if (t->stage == EXEC_EARLY || t->stage == EXEC_DENIAL) {
        exec_session_store(t->session);
        collect(t);
    } else if (t->stage == EXEC_SETTLING) {
        collect(t);
    } else {
        set_due(t);
    }
}

static void set_timer(struct exec_turn *t, enum exec_stage stage, int64_t ms) {
    t->stage = stage;
    t->timer.fn = on_timer;
    if (loop_timer_set(client_loop(t->op.client), &t->timer, (uint64_t)ms * LOOP_MS) < 0)
        set_due(t); /* out of memory: what is there now */
}

static void fail_as_client(struct exec_turn *t) {
    struct xs_error e = XS_ERROR_INIT;
    (void)xs_error_copy(&e, xs_client_error(t->op.client));
    leave(t);
    op_fail_with(&t->op, &e);
}

int exec_turn_start(struct exec_turn *t) {
    struct exec_session *s = t->session;
    struct exec_errand *e = exec_session_errand(s->exec, t);
    if (e == NULL)
        return client_error(s->exec->client, XS_ENOMEM, "exec_command: out of memory");
    t->stage = EXEC_STARTING;
    int r = xs_process_start(s->exec->client, s->options, &e->process, &e->call);
    if (r < 0)
        exec_session_no_errand(e);
    return r;
}

/* Sends its input. 1: an answer will come; 0: nothing to send; negative: an error that
 * xs_client_error() has. */
static int send_input(struct exec_turn *t) {
    struct exec_session *s = t->session;
    if (t->input.len == 0 || s->ended)
        return 0;
    struct exec_errand *e = exec_session_errand(s->exec, t);
    if (e == NULL)
        return client_error(s->exec->client, XS_ENOMEM, "write_stdin: out of memory");
    t->stage = EXEC_WRITING;
    int r = s->tty ? xs_process_write(s->process, t->input.p, t->input.len, &e->call)
                   : xs_process_signal(s->process, SIGINT, &e->call);
    if (r < 0)
        exec_session_no_errand(e);
    return r < 0 ? r : 1;
}

void exec_turn_begin(struct exec_turn *t) {
    struct exec_session *s = t->session;
    s->used = ++s->exec->tick;
    if (t->input.len > 0 && !s->tty && !(t->input.len == 1 && t->input.p[0] == 3)) {
        exec_turn_fail(t, XS_EINVAL,
                       "stdin is closed for this session; rerun exec_command with tty=true to keep "
                       "stdin open");
        return;
    }
    int r = send_input(t);
    if (r == 0)
        collect(t);
    else if (r < 0)
        fail_as_client(t);
}

static void answered_start(struct exec_turn *t, int result, struct xs_process *p) {
    if (result < 0) {
        fail_as_client(t);
        return;
    }
    set_timer(t, EXEC_EARLY, EXEC_WINDOW_EARLY);
    exec_session_started(t->session, p);
}

void exec_turn_answered(struct exec_turn *t, int result, struct xs_process *p) {
    if (t->stage == EXEC_STARTING)
        answered_start(t, result, p);
    else if (t->session->ended)
        collect(t);
    else if (result < 0)
        fail_as_client(t);
    else if (t->session->tty)
        set_timer(t, EXEC_SETTLING, EXEC_WINDOW_SETTLE);
    else
        collect(t);
}

void exec_turn_process_ended(struct exec_turn *t) {
    if (t->stage == EXEC_EARLY || t->stage == EXEC_DENIAL)
        collect(t);
    else if (t->stage == EXEC_COLLECTING)
        set_due(t);
}

static void draw_chunk_id(char id[EXEC_TEXT_CHUNK_ID + 1]) {
    unsigned char random[EXEC_TEXT_CHUNK_ID / 2];
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(id, EXEC_TEXT_CHUNK_ID + 1, random, sizeof(random));
}

/* Puts the texts together: 0, -ENOMEM or -ENOBUFS. */
static int write_texts(const struct exec_turn *t, struct turn_result *r) {
    struct exec_session *s = t->session;
    _cleanup_buf_ struct buf raw = BUF_INIT(SIZE_MAX), output = BUF_INIT(SIZE_MAX);
    _cleanup_buf_ struct buf text = BUF_INIT(SIZE_MAX);
    struct exec_text e = {.chunk_id = r->chunk_id,
                          .wall_s = r->public.wall_s,
                          .exited = s->ended && s->exit.exited,
                          .code = s->exit.code,
                          .session = r->public.session,
                          .bytes = exec_buffer_total(&s->output),
                          .omitted = s->output.omitted,
                          .max_tokens = t->max_tokens};
    int err = exec_buffer_flatten(&s->output, true, &raw);
    e.raw = buf_str(&raw);
    if (err == 0)
        err = exec_text_output(&e, &output);
    if (err == 0)
        err = exec_text_result(&e, buf_str(&output), &text);
    if (err == 0)
        err = buf_putc(&text, '\0');
    if (err < 0)
        return err;
    r->public.original_tokens = exec_text_tokens(e.bytes);
    r->public.n = output.len;
    r->public.output = text.p + text.len - 1 - output.len;
    r->public.text_n = text.len - 1;
    r->public.text = steal_ptr(&text.p);
    return 0;
}

static struct xs_exec_result *make_result(const struct exec_turn *t) {
    struct exec_session *s = t->session;
    struct turn_result *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    uint64_t now = client_loop(t->op.client)->clock();
    bool waited = t->began != 0 && now > t->began;
    r->public.wall_s = waited ? (double)(now - t->began) / 1e9 : 0;
    r->public.session = s->ended ? 0 : s->info.session;
    draw_chunk_id(r->chunk_id);
    r->public.chunk_id = r->chunk_id;
    if (s->ended) {
        r->exit = s->exit;
        r->public.exit = &r->exit;
    }
    if (write_texts(t, r) < 0) {
        free(r);
        return NULL;
    }
    return &r->public;
}

bool exec_turn_finish(struct exec_turn *t, struct buf *told) {
    struct exec_session *s = t->session;
    if (s->failure != NULL) {
        exec_turn_fail(t, XS_EGONE, s->failure);
        return false;
    }
    struct xs_exec_result *result = make_result(t);
    if (result == NULL) {
        exec_turn_fail(t, XS_ENOMEM, "exec: out of memory");
        return false;
    }
    bool interaction = !t->command && (t->input.len > 0 || !s->ended);
    *told = t->input;
    t->input = BUF_INIT(0);
    exec_buffer_fini(&s->output);
    *t->out = result;
    leave(t);
    op_finish(&t->op, 0);
    return interaction;
}
