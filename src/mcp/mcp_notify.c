#include "mcp/mcp_internal.h"

#include "base/log.h"
#include "escalate/escalate_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* A program that runs outside for a stub. */
struct notify_program {
    struct list node; /* in mcp_run.stubs */
    struct intercept_stub *stub;
    struct escalate_run *run;
};

/* -- answers -- */

static void notify_answer(void *token, enum decide_action action, struct str reason) {
    _cleanup_free_ char *text = reason.p == NULL ? NULL : str_dup(reason);
    enum intercept_verdict v = action == DECIDE_RUN        ? INTERCEPT_RUN
                               : action == DECIDE_ESCALATE ? INTERCEPT_ESCALATE
                                                           : INTERCEPT_DENY;
    intercept_answer(token, v, text);
}

static bool notify_may_escalate(void *token) {
    return intercept_is_by_shell(token);
}

static const struct mcp_engine notify_engine = {.answer = notify_answer,
                                                .may_escalate = notify_may_escalate};
/* With --escalate-descendants. */
static const struct mcp_engine notify_engine_all = {.answer = notify_answer};

/* -- decisions -- */

/* Whether the path leads us to the file that it leads the caller to. */
static bool notify_sees_same(const struct intercept_exec *e) {
    struct stat st;
    return stat(e->file, &st) == 0 && st.st_dev == e->dev && st.st_ino == e->ino;
}

/* The path as given, absolute. A descriptor says nothing: then it is the file behind it. */
static const char *notify_file(const struct intercept_exec *e, char out[2 * PATH_MAX]) {
    if (strncmp(e->path, "/dev/fd/", 8) == 0 || strncmp(e->path, "/proc/", 6) == 0)
        return e->file;
    if (e->path[0] == '/')
        return e->path;
    snprintf(out, 2 * PATH_MAX, "%s/%s", e->cwd, e->path);
    return out;
}

static void notify_on_decide(void *owner, struct intercept_ask *ask,
                             const struct intercept_exec *e) {
    struct mcp_run *r = owner;
    struct mcp_exec_interpreter interpreters[MCP_EXEC_INTERPRETERS];
    char path[2 * PATH_MAX];
    size_t n = MIN(e->interpreter_count, (size_t)MCP_EXEC_INTERPRETERS);
    for (size_t i = 0; i < n; i++)
        interpreters[i] = (struct mcp_exec_interpreter){
            e->interpreters[i].path, e->interpreters[i].file, e->interpreters[i].arg};
    const struct mcp_exec_what w = {.file = notify_file(e, path),
                                    .resolved = e->file,
                                    .interpreters = interpreters,
                                    .interpreter_count = n,
                                    .memfd = e->memfd,
                                    .argv = e->argv,
                                    .argc = e->argc,
                                    .cwd = e->cwd,
                                    .may_escalate =
                                        !e->loaded && e->memfd == NULL && notify_sees_same(e)};
    mcp_exec_decide(r, &w, r->m->o->escalate_descendants ? &notify_engine_all : &notify_engine,
                    ask);
}

static void notify_on_withdrawn(void *owner, struct intercept_ask *ask) {
    mcp_exec_withdraw(owner, ask);
}

/* -- programs outside -- */

/* As a shell does it for a program that cannot be started. */
static void notify_fail(struct intercept_stub *stub, int error) {
    char text[256];
    snprintf(text, sizeof text, "Error: %s (os error %d)\n", err_os_text(error), error);
    intercept_stub_end(stub, (error == ENOENT ? 127 : 126) << 8, text);
}

static void notify_on_ended(void *owner, struct escalate_run *run, int status, int error) {
    struct notify_program *p = owner;
    (void)run;
    list_remove(&p->node);
    if (error != 0)
        notify_fail(p->stub, error);
    else
        intercept_stub_end(p->stub, status, NULL);
    free(p);
}

static int notify_start(struct mcp_run *r, struct notify_program *p,
                        const struct intercept_escalation *x) {
    static char *const nothing[] = {NULL};
    const struct intercept_exec *e = x->exec;
    struct supervisor_heritage heritage = {
        .umask = x->umask, .ignored = x->ignored, .blocked = x->blocked, .nice = x->nice};
    int fds[INTERCEPT_FDS], numbers[INTERCEPT_FDS];
    char *argv[] = {(char *)(uintptr_t)e->file, NULL};
    size_t n = 0;
    if (!notify_sees_same(e))
        return -ESTALE;
    memcpy(heritage.limits, x->limits, sizeof heritage.limits);
    for (int i = 0; i < INTERCEPT_FDS; i++) {
        if (x->fds[i] >= 0) {
            fds[n] = x->fds[i];
            numbers[n++] = i;
        }
    }
    const struct escalate_program program = {.file = e->file,
                                             .argv = e->argc > 0 ? e->argv : argv,
                                             .envp = e->envp != NULL ? e->envp : nothing,
                                             .cwd = e->cwd,
                                             .fds = fds,
                                             .numbers = numbers,
                                             .fd_count = n,
                                             .heritage = &heritage};
    return escalate_run_start(&r->m->procs, &program, notify_on_ended, p, &p->run);
}

static void notify_on_escalate(void *owner, struct intercept_escalation *x) {
    struct mcp_run *r = owner;
    struct notify_program *p = calloc(1, sizeof *p);
    int error = p == NULL ? -ENOMEM : 0;
    if (p != NULL) {
        p->stub = x->stub;
        error = notify_start(r, p, x);
    }
    if (error == 0) {
        list_append(&r->stubs, &p->node);
        return;
    }
    free(p);
    notify_fail(x->stub, -error);
}

static struct notify_program *notify_find(const struct mcp_run *r,
                                          const struct intercept_stub *stub) {
    list_for_each(n, &r->stubs) {
        struct notify_program *p = list_entry(n, struct notify_program, node);
        if (p->stub == stub)
            return p;
    }
    return NULL;
}

static void notify_on_signal(void *owner, struct intercept_stub *stub, int signo, bool terminal) {
    struct notify_program *p = notify_find(owner, stub);
    if (p != NULL)
        escalate_run_signal(p->run, signo, terminal);
}

static void notify_on_lost(void *owner, struct intercept_stub *stub) {
    struct notify_program *p = notify_find(owner, stub);
    if (p == NULL)
        return;
    list_remove(&p->node);
    escalate_run_kill(p->run);
    free(p);
}

static const struct intercept_owner notify_owner = {.decide = notify_on_decide,
                                                    .withdrawn = notify_on_withdrawn,
                                                    .escalate = notify_on_escalate,
                                                    .signal = notify_on_signal,
                                                    .lost = notify_on_lost};

/* -- life -- */

static bool notify_on_stranger(void *owner, pid_t pid, int status) {
    struct mcp *m = owner;
    return intercept_host_waited(m->intercept_host, pid, status);
}

int mcp_notify_init(struct mcp *m, struct err *e) {
    int r = intercept_probe(e);
    if (r < 0)
        return r;
    r = pool_init(&m->pool, &m->loop);
    if (r == 0 && (m->intercept_host = intercept_host_new(&m->loop, &m->pool)) == NULL)
        r = -ENOMEM;
    if (r < 0)
        return err_os(e, ERR_INTERNAL, -r);
    m->procs.children.stranger = notify_on_stranger;
    m->procs.children.stranger_owner = m;
    return 0;
}

void mcp_notify_fini(struct mcp *m) {
    if (m->intercept_host == NULL)
        return;
    m->procs.children.stranger = NULL;
    intercept_host_free(steal_ptr(&m->intercept_host));
    (void)pool_fini(&m->pool); /* a call that hangs keeps its memory until the process ends */
}

/* What the kernel has loaded matters only where a rule restricts. */
static bool notify_checks(const struct mcp *m) {
    return !m->o->trust_loads && decide_restricts(m->decide);
}

int mcp_notify_new(struct mcp_run *r, struct execfilter_start *start) {
    const struct intercept_options o = {
        .calls = &notify_owner, .owner = r, .check = notify_checks(r->m)};
    return intercept_new(r->m->intercept_host, &o, &r->notify, start);
}

void mcp_notify_end(struct mcp_run *r) {
    list_for_each(n, &r->stubs) {
        struct notify_program *p = list_entry(n, struct notify_program, node);
        list_remove(&p->node);
        escalate_run_kill(p->run);
        free(p);
    }
    if (r->notify != NULL)
        intercept_free(steal_ptr(&r->notify));
}

void mcp_notify_rules(struct mcp *m) {
    list_for_each(n, &m->runs) {
        struct mcp_run *r = list_entry(n, struct mcp_run, node);
        if (r->notify != NULL)
            intercept_set_check(r->notify, notify_checks(m));
    }
}
