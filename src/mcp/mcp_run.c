#include "mcp/mcp_internal.h"

#include "base/log.h"
#include "json/jsonw.h"
#include "proc/env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

extern char **environ;

static void run_finish(struct mcp_run *r);

/* -- memory -- */

/* No program below the command starts any more, and none runs outside. */
static void run_end_interception(struct mcp_run *r) {
    mcp_ask_withdraw_all(r);
    escalate_server_free(steal_ptr(&r->wrapper));
    mcp_notify_end(r);
}

static void run_free(struct mcp_run *r) {
    struct mcp *m = r->m;
    struct loop_timer *timers[] = {&r->timeout, &r->yield, &r->drain, &r->progress, &r->park};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        loop_timer_del(&m->loop, timers[i]);
    loop_task_del(&r->free_task);
    loop_task_del(&r->ask_task);
    run_end_interception(r);
    mcp_send_free(steal_ptr(&r->request));
    proc_fini(&r->proc);
    remains_take(&m->remains, steal_ptr(&r->placeholders));
    mcp_output_fini(&r->out);
    mcp_output_fini(&r->err);
    arena_fini(&r->strings);
    list_remove(&r->node);
    m->run_count--;
    m->session_count -= r->session != 0 ? 1 : 0;
    free(r);
    if (m->stopping && list_empty(&m->runs))
        m->loop.stop = true;
}

static void run_on_free_task(struct loop_task *t) {
    run_free(container_of(t, struct mcp_run, free_task));
}

/* Frees it as soon as nothing is left of it and nobody wants to know more. */
static void run_check(struct mcp_run *r) {
    if (r->reported && r->request == NULL && (!r->launched || proc_is_gone(&r->proc)))
        loop_defer(&r->m->loop, &r->free_task);
}

/* -- the clock -- */

static void run_clock_start(struct mcp_run *r) {
    r->armed = r->m->loop.now;
    if (r->left != UINT64_MAX && r->stopped == 0 && !r->exited &&
        loop_timer_set(&r->m->loop, &r->timeout, r->left) < 0)
        log_error("out of memory: a command runs without its time limit");
}

void mcp_run_clock(struct mcp_run *r, int change) {
    bool ran = r->stopped == 0;
    r->stopped = change > 0 ? r->stopped + 1 : r->stopped - 1;
    if (ran && r->timeout.pos != 0) {
        uint64_t gone = r->m->loop.now - r->armed;
        r->left = r->left == UINT64_MAX ? r->left : r->left - MIN(r->left, gone);
        loop_timer_del(&r->m->loop, &r->timeout);
    } else if (!ran && r->stopped == 0 && r->launched && !r->timed_out) {
        run_clock_start(r);
    }
}

/* -- the end -- */

static void run_on_yield(struct loop_timer *t) {
    struct mcp_run *r = container_of(t, struct mcp_run, yield);
    if (r->request != NULL)
        mcp_result_send(r);
}

static void run_on_timeout(struct loop_timer *t) {
    struct mcp_run *r = container_of(t, struct mcp_run, timeout);
    r->timed_out = true; /* no question is open: they stop the clock. Programs of traps may run. */
    proc_terminate(&r->proc, MCP_GRACE_MS);
}

/* Everything that belongs to the answer is there. */
static void run_finish(struct mcp_run *r) {
    if (r->ended)
        return;
    r->ended = true;
    loop_timer_del(&r->m->loop, &r->drain);
    loop_timer_del(&r->m->loop, &r->timeout);
    if (r->request != NULL)
        mcp_result_send(r);
    run_check(r);
}

static void run_on_drain(struct loop_timer *t) {
    run_finish(container_of(t, struct mcp_run, drain));
}

/* -- of the process -- */

static void run_on_started(struct proc *p, int error) {
    struct mcp_run *r = container_of(p, struct mcp_run, proc);
    if (error == 0) {
        r->running = true;
        return;
    }
    r->ended = r->exited = true;
    struct str text = p->refusal.code != 0 ? err_str(&p->refusal) : (struct str){0};
    char os[256];
    if (text.p == NULL) {
        snprintf(os, sizeof os, "%s (os error %d)", err_os_text(error), error);
        text = str_of(os);
    }
    loop_timer_del(&r->m->loop, &r->timeout);
    struct mcp_request *q = mcp_run_take_request(r);
    r->reported = true;
    if (q != NULL && r->m->o->compat)
        mcp_send_error(r->m, buf_str(&q->id), ERR_INTERNAL, text, (struct str){0});
    else if (q != NULL)
        mcp_send_tool_text(r->m, buf_str(&q->id), q->modern, text, true);
    mcp_send_free(q);
    run_check(r);
}

static void run_on_output(struct proc *p, uint64_t seq, enum outlog_stream stream, const char *data,
                          size_t n) {
    (void)seq;
    struct mcp_run *r = container_of(p, struct mcp_run, proc);
    if (r->ended)
        return; /* of what it has left running */
    bool err = stream == OUTLOG_STDERR && r->m->o->compat;
    mcp_output_add(err ? &r->err : &r->out, data, n);
    if (r->request != NULL && r->request->is_write && r->yield.pos != 0 &&
        r->yield.when > r->m->loop.now + MCP_SETTLE_MS * LOOP_MS)
        (void)!loop_timer_set(&r->m->loop, &r->yield, MCP_SETTLE_MS * LOOP_MS);
}

static void run_on_exited(struct proc *p, uint64_t seq) {
    (void)seq;
    struct mcp_run *r = container_of(p, struct mcp_run, proc);
    r->exited = true;
    r->took = p->ended - r->started;
    loop_timer_del(&r->m->loop, &r->timeout);
    if (loop_timer_set(&r->m->loop, &r->drain, MCP_DRAIN_MS * LOOP_MS) < 0)
        run_finish(r);
}

static void run_on_closed(struct proc *p, uint64_t seq) {
    (void)seq;
    run_finish(container_of(p, struct mcp_run, proc));
}

static void run_on_room(struct proc *p) {
    (void)p;
}

static void run_on_gone(struct proc *p) {
    struct mcp_run *r = container_of(p, struct mcp_run, proc);
    run_end_interception(r);
    remains_take(&r->m->remains, steal_ptr(&r->placeholders));
    if (r->exited)
        run_finish(r);
    run_check(r);
}

static const struct proc_ops run_ops = {.started = run_on_started,
                                        .output = run_on_output,
                                        .exited = run_on_exited,
                                        .closed = run_on_closed,
                                        .stdin_room = run_on_room,
                                        .gone = run_on_gone};

/* -- progress -- */

static void run_on_progress(struct loop_timer *t) {
    struct mcp_run *r = container_of(t, struct mcp_run, progress);
    _cleanup_buf_ struct buf b = BUF_INIT(MCP_ID_MAX + 4096), line = BUF_INIT(1024);
    if (r->request == NULL || r->request->token.len == 0)
        return;
    uint64_t ms = (r->m->loop.now - r->request->since) / LOOP_MS;
    bool some = mcp_output_last_line(&r->out, &line);
    int x =
        buf_putf(&b, "{\"progressToken\":%.*s,\"progress\":%" PRIu64 ".%03u,\"message\":",
                 (int)r->request->token.len, r->request->token.p, ms / 1000, (unsigned)(ms % 1000));
    if (x == 0)
        x = jsonw_str(&b, some ? buf_str(&line) : STR_LIT("running"));
    if (x == 0)
        x = buf_putc(&b, '}');
    if (x == 0)
        mcp_send_notification(r->m, "notifications/progress", buf_str(&b));
    (void)!loop_timer_set(&r->m->loop, t, MCP_PROGRESS_MS * LOOP_MS);
}

static void run_take_request(struct mcp_run *r, struct mcp_request *q) {
    r->request = q;
    r->modern = q->modern;
    r->can_ask = q->can_ask;
    if (q->modern && !list_empty(&r->execs))
        loop_defer(&r->m->loop, &r->ask_task); /* the open questions first */
    if (q->token.len > 0 && !r->m->o->compat)
        (void)!loop_timer_set(&r->m->loop, &r->progress, MCP_PROGRESS_MS * LOOP_MS);
}

struct mcp_request *mcp_run_take_request(struct mcp_run *r) {
    loop_timer_del(&r->m->loop, &r->progress);
    loop_timer_del(&r->m->loop, &r->yield);
    return steal_ptr(&r->request);
}

/* -- start -- */

/* What a start needs until the command runs. */
struct run_start {
    const struct mcp_tools_args *args;
    const struct mcp_state *state;
    struct child_spec spec;
    struct supervisor_given given[LAUNCH_GIVEN];
    int script, socket; /* owned */
    struct execfilter_start filter;
    struct sandbox_launch launch;
};

/* Absolute, against our own directory. */
static int run_cwd(struct mcp_run *r, const struct mcp_tools_args *args,
                   const struct mcp_state *state, const char **out, struct err *e) {
    char here[PATH_MAX];
    struct str dir = args->workdir;
    if (dir.p == NULL && state->cwd != NULL)
        dir = str_of(state->cwd);
    if (str_has_nul(dir))
        return err_set(e, ERR_INTERNAL, "nul byte found in provided data");
    if (dir.p != NULL && dir.n == 0)
        return err_os(e, ERR_INTERNAL, ENOENT);
    if (dir.p != NULL && dir.p[0] == '/') {
        *out = arena_strdup(&r->strings, dir);
        return *out == NULL ? err_os(e, ERR_INTERNAL, ENOMEM) : 0;
    }
    if (getcwd(here, sizeof here) == NULL)
        return err_os(e, ERR_INTERNAL, errno);
    size_t n = strlen(here) + dir.n + 2;
    char *path = arena_alloc(&r->strings, n);
    if (path == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    snprintf(path, n, "%s%s%.*s", here, dir.n > 0 ? "/" : "", (int)dir.n, dir.n > 0 ? dir.p : "");
    *out = path;
    return 0;
}

/* A variable of ours; NULL: out of memory. */
static char *run_variable(struct mcp_run *r, const char *name, const char *value) {
    size_t n = strlen(name) + strlen(value) + 2;
    char *text = arena_alloc(&r->strings, n);
    if (text != NULL)
        snprintf(text, n, "%s=%s", name, value);
    return text;
}

/* Whether we set the variable ourselves. */
static bool run_is_ours(const char *variable) {
    static const char *const names[] = {ESCALATE_SOCKET "=", ESCALATE_WRAPPER "=",
                                        ESCALATE_WRAPPER_OLD "=",
                                        "CODEX_SANDBOX_NETWORK_DISABLED="};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Our environment, and what tells the command about its place. */
static int run_env(struct mcp_run *r, struct run_start *s) {
    size_t n = 0, kept = 0;
    char number[16];
    while (environ[n] != NULL)
        n++;
    char **envp = arena_calloc(&r->strings, n + 6, sizeof *envp);
    if (envp == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!run_is_ours(environ[i]))
            envp[kept++] = environ[i];
    }
    size_t inherited = kept;
    if (!s->state->network)
        envp[kept++] = run_variable(r, "CODEX_SANDBOX_NETWORK_DISABLED", "1");
    if (r->m->intercept == MCP_INTERCEPT_WRAPPER) {
        snprintf(number, sizeof number, "%d", MCP_CONTROL_FD);
        envp[kept++] = run_variable(r, ESCALATE_SOCKET, number);
        envp[kept++] = run_variable(r, ESCALATE_WRAPPER_OLD, r->m->wrapper);
        if (!r->m->o->compat)
            envp[kept++] = run_variable(r, ESCALATE_WRAPPER, r->m->wrapper);
    }
    if (s->args->tty && env_get(envp, "TERM") == NULL)
        envp[kept++] = run_variable(r, "TERM", "xterm-256color");
    for (size_t i = inherited; i < kept; i++) {
        if (envp[i] == NULL)
            return -ENOMEM;
    }
    s->spec.envp = envp;
    return 0;
}

/* A script that is too long for an argument: a file in memory, read through its descriptor. */
static int run_script(struct run_start *s) {
    s->script = memfd_create("script", MFD_CLOEXEC);
    struct str text = s->args->command;
    while (s->script >= 0 && text.n > 0) {
        ssize_t n = write(s->script, text.p, text.n);
        if (n < 0)
            return -errno;
        str_take(&text, (size_t)n);
    }
    if (s->script < 0 || lseek(s->script, 0, SEEK_SET) < 0)
        return -errno;
    s->given[s->spec.given_count++] = (struct supervisor_given){s->script, MCP_SCRIPT_FD};
    return 0;
}

static int run_argv(struct mcp_run *r, struct run_start *s) {
    char **argv = arena_calloc(&r->strings, 5, sizeof *argv);
    bool login = s->args->login, large = s->args->command.n >= MCP_ARGUMENT_MAX;
    char path[32];
    if (argv == NULL)
        return -ENOMEM;
    snprintf(path, sizeof path, "/dev/fd/%d", MCP_SCRIPT_FD);
    size_t n = 0;
    argv[n++] = r->m->shell;
    if (large && login)
        argv[n++] = arena_strdup(&r->strings, STR_LIT("-l"));
    if (!large)
        argv[n++] = arena_strdup(&r->strings, login ? STR_LIT("-lc") : STR_LIT("-c"));
    argv[n++] = arena_strdup(&r->strings, large ? str_of(path) : s->args->command);
    s->spec.program = r->m->shell;
    s->spec.argv = argv;
    return argv[1] == NULL || argv[n - 1] == NULL ? -ENOMEM : large ? run_script(s) : 0;
}

static int run_confine(struct mcp_run *r, struct run_start *s, struct err *e) {
    struct mcp *m = r->m;
    const struct mcp_state_place where = {s->spec.cwd, s->spec.envp, m->passwd.home};
    int x = mcp_state_plan(s->state, &where, &m->state_doc, &r->strings, &r->plan, &r->confined, e);
    if (x < 0 || !r->confined)
        return x;
    s->launch.linger = true;
    return sandbox_host_prepare(&m->sandbox, &r->plan, m->procs.children.nofile, &s->spec,
                                &s->launch, e);
}

static int run_build(struct mcp_run *r, struct run_start *s, struct err *e) {
    if (str_has_nul(s->args->command))
        return err_set(e, ERR_INTERNAL, "nul byte found in provided data");
    if (s->args->command.n > MCP_TOOLS_COMMAND_MAX)
        return err_set(e, ERR_INTERNAL, "the command is longer than %u bytes",
                       MCP_TOOLS_COMMAND_MAX);
    int x = run_cwd(r, s->args, s->state, &s->spec.cwd, e);
    if (x < 0)
        return x;
    s->spec.given = s->given;
    x = run_env(r, s);
    if (x == 0)
        x = run_argv(r, s);
    if (x == 0 && r->m->intercept == MCP_INTERCEPT_WRAPPER) {
        x = mcp_wrapper_new(r, &s->socket);
        s->given[s->spec.given_count++] = (struct supervisor_given){s->socket, MCP_CONTROL_FD};
    }
    if (x == 0 && r->m->intercept == MCP_INTERCEPT_NOTIFY) {
        x = mcp_notify_new(r, &s->filter);
        s->spec.intercept = &s->filter;
    }
    return x < 0 ? err_os(e, ERR_INTERNAL, -x) : run_confine(r, s, e);
}

static int run_launch(struct mcp_run *r, struct run_start *s, struct err *e) {
    int x = run_build(r, s, e);
    if (x < 0)
        return x;
    x = proc_start(&r->proc, &s->spec);
    if (x < 0)
        return err_os(e, ERR_INTERNAL, -x);
    s->launch.child.channel = -1; /* the process has it now, and the list is ours */
    r->placeholders = steal_ptr(&s->launch.child.placeholders);
    r->launched = true;
    proc_begin_output(&r->proc);
    return 0;
}

static struct mcp_run *run_new(struct mcp *m, const struct mcp_tools_args *args) {
    struct mcp_run *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->m = m;
    r->strings = ARENA_INIT(MCP_STRINGS_MAX);
    r->timeout.fn = run_on_timeout;
    r->yield.fn = run_on_yield;
    r->drain.fn = run_on_drain;
    r->progress.fn = run_on_progress;
    r->free_task.fn = run_on_free_task;
    r->started = m->loop.now;
    r->keep = args->has_yield;
    bool forever = args->has_yield && !args->has_timeout;
    r->left = forever ? UINT64_MAX : loop_ms(args->timeout_ms);
    list_init(&r->execs);
    list_init(&r->stubs);
    mcp_ask_init(r);
    mcp_output_init(&r->out, args->max_output, m->o->compat);
    mcp_output_init(&r->err, m->o->compat ? MCP_OUTPUT_MAX : 0, true);
    proc_init(&r->proc, &m->procs, &run_ops, NULL, 0);
    list_append(&m->runs, &r->node);
    m->run_count++;
    return r;
}

/* The oldest session that has ended makes room. False: all are running. */
static bool run_make_room(struct mcp *m) {
    if (m->session_count < MCP_SESSIONS_MAX)
        return true;
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        if (r->session != 0 && r->ended && r->request == NULL && !r->reported) {
            r->session = 0;
            m->session_count--;
            r->reported = true;
            run_check(r);
            return true;
        }
    }
    return false;
}

int mcp_run_start(struct mcp *m, const struct mcp_tools_args *args, const struct mcp_state *state,
                  const uint8_t digest[32], struct mcp_request *q, struct err *e) {
    if (m->run_count >= MCP_RUNS_MAX)
        return err_set(e, ERR_INTERNAL, "%d commands are running already", MCP_RUNS_MAX);
    if (args->has_yield && !run_make_room(m))
        return err_set(e, ERR_INTERNAL, "%d sessions are running already", MCP_SESSIONS_MAX);
    struct mcp_run *r = run_new(m, args);
    if (r == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    struct run_start s = {.args = args,
                          .state = state,
                          .script = -1,
                          .socket = -1,
                          .filter = {.socket = -1},
                          .launch = SANDBOX_LAUNCH_INIT,
                          .spec = {.tty = args->tty,
                                   .pipe_stdin = args->has_yield,
                                   .merge = !m->o->compat,
                                   .rows = 24,
                                   .cols = 80}};
    int x = run_launch(r, &s, e);
    util_close_fd(&s.script);
    util_close_fd(&s.socket);
    util_close_fd(&s.filter.socket);
    sandbox_host_launch_fini(&s.launch);
    if (x < 0) {
        r->reported = true;
        run_free(r);
        return x;
    }
    memcpy(r->digest, digest, sizeof r->digest);
    run_take_request(r, q);
    run_clock_start(r);
    if (args->has_yield)
        (void)!loop_timer_set(&m->loop, &r->yield, loop_ms(args->yield_ms));
    return 0;
}

/* -- sessions -- */

struct mcp_run *mcp_run_session(struct mcp *m, uint64_t number) {
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        if (r->session == number && number != 0)
            return r;
    }
    return NULL;
}

void mcp_run_wait(struct mcp_run *r, struct mcp_request *q, uint64_t ms) {
    run_take_request(r, q);
    if (r->ended) {
        mcp_result_send(r);
        run_check(r);
        return;
    }
    if (q->is_write && r->out.total > 0)
        ms = MIN(ms, (uint64_t)MCP_SETTLE_MS);
    if (loop_timer_set(&r->m->loop, &r->yield, loop_ms(ms)) < 0)
        mcp_result_send(r);
}

void mcp_run_resume(struct mcp_run *r, struct mcp_request *q, uint64_t ms) {
    run_take_request(r, q);
    if (r->ended) {
        mcp_result_send(r);
        run_check(r);
    } else if (ms != UINT64_MAX && loop_timer_set(&r->m->loop, &r->yield, loop_ms(ms)) < 0) {
        mcp_result_send(r);
    }
}

/* -- ending -- */

void mcp_run_cancel(struct mcp_run *r) {
    mcp_send_free(mcp_run_take_request(r));
    run_end_interception(r);
    r->reported = true;
    r->ended = true;
    r->state[0] = '\0';
    loop_timer_del(&r->m->loop, &r->timeout);
    if (r->launched)
        child_kill(&r->proc.child, false);
    run_check(r);
}

void mcp_run_kill_all(struct mcp *m) {
    list_for_each(n, &m->runs) {
        mcp_run_cancel(list_entry(n, struct mcp_run, node));
    }
}
