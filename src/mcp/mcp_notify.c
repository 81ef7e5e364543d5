/* Interception of every exec by the kernel (src/intercept). */
#include "mcp/mcp_internal.h"

#include "escalate/escalate_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOTIFY_NOT_FOUND 127
#define NOTIFY_CANNOT 126

/* A program that runs outside for a stub. */
struct notify_program {
    struct list node; /* in mcp_run.programs */
    struct escalate_run *run;
    struct intercept_stub *stub;
};

/* -- decisions -- */

static void notify_answer(void *token, enum decide_action action, struct str reason) {
    char text[INTERCEPT_REASON_MAX];
    snprintf(text, sizeof text, "%.*s", (int)MIN(reason.n, sizeof text - 1), reason.p);
    intercept_answer(token,
                     action == DECIDE_RUN        ? INTERCEPT_RUN
                     : action == DECIDE_ESCALATE ? INTERCEPT_ESCALATE
                                                 : INTERCEPT_DENY,
                     reason.p == NULL ? NULL : text);
}

static bool notify_may_escalate(void *token) {
    return intercept_is_by_shell(token);
}

static const struct mcp_engine notify_engine = {notify_answer, notify_may_escalate};

/* Whether the path leads us to the caller's file. */
static bool notify_is_ours(const struct intercept_exec *e) {
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
    char path[2 * PATH_MAX];
    const char *interpreters[MCP_EXEC_INTERPRETERS];
    struct mcp_exec_what w = {.file = notify_file(e, path),
                              .resolved = e->file,
                              .interpreters = interpreters,
                              .memfd = e->memfd,
                              .argv = e->argv,
                              .argc = e->argc,
                              .cwd = e->cwd,
                              .may_escalate = e->memfd == NULL && !e->loaded && notify_is_ours(e)};
    for (size_t i = 0; i < e->interpreter_count; i++) {
        interpreters[w.interpreter_count++] = e->interpreters[i].path;
        interpreters[w.interpreter_count++] = e->interpreters[i].file;
    }
    bool restricts = decide_restricts(r->m->decide);
    intercept_set_check(r->notify, restricts);
    if (e->memfd != NULL && restricts)
        intercept_answer(ask, INTERCEPT_DENY, "a program in memory has no file to judge it by");
    else
        mcp_exec_decide(r, &w, &notify_engine, ask);
}

static void notify_on_withdrawn(void *owner, struct intercept_ask *ask) {
    mcp_exec_withdraw(owner, ask);
}

/* -- programs outside -- */

static void notify_on_ended(void *owner, struct escalate_run *run, int status, int error) {
    struct notify_program *p = owner;
    char text[256];
    (void)run;
    list_remove(&p->node);
    if (error == 0) {
        intercept_stub_end(p->stub, status, NULL);
    } else {
        snprintf(text, sizeof text, "Error: %s (os error %d)\n", err_os_text(error), error);
        int code = error == ENOENT ? NOTIFY_NOT_FOUND : NOTIFY_CANNOT;
        intercept_stub_end(p->stub, code << 8, text);
    }
    free(p);
}

static int notify_start(struct mcp_run *r, const struct intercept_escalation *x,
                        struct notify_program *p) {
    int fds[INTERCEPT_FDS], numbers[INTERCEPT_FDS];
    struct supervisor_heritage heritage = {
        .umask = x->umask, .ignored = x->ignored, .blocked = x->blocked, .nice = x->nice};
    memcpy(heritage.limits, x->limits, sizeof x->limits);
    struct escalate_program program = {.file = x->exec->file,
                                       .argv = x->exec->argv,
                                       .envp = x->exec->envp,
                                       .cwd = x->exec->cwd,
                                       .fds = fds,
                                       .numbers = numbers,
                                       .heritage = &heritage};
    for (int i = 0; i < INTERCEPT_FDS; i++) {
        if (x->fds[i] < 0)
            continue;
        fds[program.fd_count] = x->fds[i];
        numbers[program.fd_count++] = i;
    }
    return escalate_run_start(&r->m->procs, &program, notify_on_ended, p, &p->run);
}

static void notify_on_escalate(void *owner, struct intercept_escalation *x) {
    struct mcp_run *r = owner;
    struct notify_program *p = calloc(1, sizeof *p);
    int error = p == NULL ? -ENOMEM : notify_start(r, x, p);
    if (error < 0) {
        char text[256];
        snprintf(text, sizeof text, "Error: %s (os error %d)\n", err_os_text(-error), -error);
        free(p);
        intercept_stub_end(x->stub, NOTIFY_CANNOT << 8, text);
        return;
    }
    p->stub = x->stub;
    list_append(&r->programs, &p->node);
}

static struct notify_program *notify_find(struct mcp_run *r, const struct intercept_stub *stub) {
    list_for_each(n, &r->programs) {
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
    escalate_run_kill(p->run);
    list_remove(&p->node);
    free(p);
}

static const struct intercept_owner notify_owner = {.decide = notify_on_decide,
                                                    .withdrawn = notify_on_withdrawn,
                                                    .escalate = notify_on_escalate,
                                                    .signal = notify_on_signal,
                                                    .lost = notify_on_lost};

/* -- life -- */

int mcp_notify_new(struct mcp_run *r, struct execfilter_start *start) {
    struct intercept_options o = {
        .calls = &notify_owner, .owner = r, .check = decide_restricts(r->m->decide)};
    return intercept_new(r->m->intercept_host, &o, &r->notify, start);
}

void mcp_notify_end(struct mcp_run *r) {
    intercept_free(steal_ptr(&r->notify));
}

static bool notify_waited(void *owner, pid_t pid, int status) {
    return intercept_host_waited(owner, pid, status);
}

int mcp_notify_init(struct mcp *m, struct err *e) {
    int r = intercept_probe(e);
    if (r < 0)
        return r;
    r = pool_init(&m->pool, &m->loop);
    m->intercept_host = r < 0 ? NULL : intercept_host_new(&m->loop, &m->pool);
    if (m->intercept_host == NULL)
        return err_os(e, ERR_INTERNAL, r < 0 ? -r : ENOMEM);
    m->procs.children.stranger = notify_waited;
    m->procs.children.stranger_owner = m->intercept_host;
    return 0;
}

void mcp_notify_fini(struct mcp *m) {
    if (m->intercept_host == NULL)
        return;
    m->procs.children.stranger = NULL;
    intercept_host_free(steal_ptr(&m->intercept_host));
    (void)pool_fini(&m->pool); /* memory of the process's end */
}
