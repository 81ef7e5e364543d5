/* RUN: the call goes on, and what the kernel has loaded is compared with what was decided. */
#include "intercept/intercept_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- what was decided, and what runs -- */

/* The arguments that the decided program gets, each with its NUL. */
struct run_argv {
    char *p;
    size_t len;
    bool measure; /* only counts */
};

static void run_put(struct run_argv *v, const char *text) {
    size_t n = text == NULL ? 0 : strlen(text) + 1;
    if (!v->measure && n > 0)
        memcpy(v->p + v->len, text, n);
    v->len += n;
}

static void run_put_all(struct run_argv *v, const struct intercept_exec *e) {
    v->len = 0;
    for (size_t i = e->interpreter_count; i-- > 0;) {
        run_put(v, e->interpreters[i].path);
        run_put(v, e->interpreters[i].arg);
    }
    bool script = e->interpreter_count > 0;
    if (script)
        run_put(v, e->path);
    else if (e->argc == 0)
        run_put(v, ""); /* of the kernel's making */
    for (size_t i = script; i < e->argc; i++)
        run_put(v, e->argv[i]);
}

/* Reads at most `max` bytes of a process's arguments. */
static ssize_t run_read_argv(pid_t pid, char *to, size_t max) {
    char path[64];
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (len < max) {
        ssize_t n = read(fd, to + len, max - len);
        if (n < 0)
            return -errno;
        len += (size_t)n;
        if (len < max || n == 0) /* a short read is the end */
            break;
    }
    return (ssize_t)len;
}

static bool run_has_argv(const struct intercept_ask *a) {
    struct run_argv v = {.measure = true};
    run_put_all(&v, &a->e);
    _cleanup_free_ char *want = malloc(v.len + 1), *have = malloc(v.len + 1);
    if (want == NULL || have == NULL)
        return false;
    v.p = want;
    v.measure = false;
    run_put_all(&v, &a->e);
    return run_read_argv(a->tgid, have, v.len + 1) == (ssize_t)v.len &&
           memcmp(want, have, v.len) == 0;
}

static bool run_is_program(const struct intercept_exec *e, uint64_t dev, uint64_t ino) {
    size_t n = e->interpreter_count;
    return n == 0 ? dev == e->dev && ino == e->ino
                  : dev == e->interpreters[n - 1].dev && ino == e->interpreters[n - 1].ino;
}

/* Whether the process runs what was decided. */
static bool run_is_decided(const struct intercept_ask *a) {
    uint64_t dev, ino;
    return intercept_look_program(a->tgid, &dev, &ino) == 0 && run_is_program(&a->e, dev, ino) &&
           run_has_argv(a);
}

/* -- judging anew -- */

/* Describes what runs. */
static int run_describe(struct intercept_ask *a) {
    char path[64], name[PATH_MAX];
    struct intercept_exec *e = &a->e;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)a->tgid);
    ssize_t n = readlink(path, name, sizeof name);
    int r = n < 0 ? -errno : intercept_look_program(a->tgid, &e->dev, &e->ino);
    _cleanup_free_ char *text = r < 0 ? NULL : malloc(INTERCEPT_STRINGS_MAX);
    ssize_t len = text == NULL ? -ENOMEM : run_read_argv(a->tgid, text, INTERCEPT_STRINGS_MAX);
    if (r < 0 || len < 0)
        return r < 0 ? r : (int)len;
    e->path = e->file = arena_strdup(&a->arena, (struct str){name, (size_t)n});
    e->memfd = n > 7 && memcmp(name, "/memfd:", 7) == 0 ? e->file + 7 : NULL;
    e->interpreter_count = 0;
    e->unreadable = false;
    e->loaded = true;
    e->argc = 0;
    size_t count = 0;
    for (ssize_t i = 0; i < len; i++)
        count += text[i] == '\0';
    char **argv = arena_calloc(&a->arena, count + 1, sizeof *argv);
    char *copy = arena_alloc(&a->arena, (size_t)len + 1);
    if (e->path == NULL || argv == NULL || copy == NULL)
        return -ENOMEM;
    memcpy(copy, text, (size_t)len);
    for (char *p = copy; e->argc < count; p += strlen(p) + 1)
        argv[e->argc++] = p;
    e->argv = argv;
    return 0;
}

static void run_kill(struct intercept_ask *a) {
    intercept_ask_set(a, INTERCEPT_LOADING); /* until its end is reported */
    kill(a->tgid, SIGKILL);
    if (list_empty(&a->traced))
        intercept_ask_over(a);
}

static void run_judge(struct intercept_ask *a) {
    if (run_describe(a) < 0) {
        run_kill(a);
        return;
    }
    intercept_ask_set(a, INTERCEPT_REOPENED);
    struct intercept *x = a->x;
    intercept_enter(x);
    x->o.calls->decide(x->o.owner, a, &a->e);
    intercept_leave(x);
}

void intercept_run_loaded(struct intercept_ask *a, enum intercept_verdict v) {
    if (v == INTERCEPT_DENY) {
        run_kill(a);
        return;
    }
    if (!list_empty(&a->traced))
        intercept_trace_let_go(a->tid, 0);
    intercept_ask_over(a);
}

/* -- somebody else traces the caller -- */

/* We cannot stop it then. Its tracer can make it run anything anyway; what we still see is a
 * forbidden program that has taken the place of the decided one. */
static void run_on_glance(struct loop_timer *t) {
    struct intercept_ask *a = container_of(t, struct intercept_ask, glance);
    uint64_t dev, ino;
    if (++a->glances > INTERCEPT_GLANCES || intercept_look_program(a->tgid, &dev, &ino) < 0 ||
        run_is_decided(a))
        intercept_ask_over(a);
    else if (dev != a->before_dev || ino != a->before_ino)
        run_judge(a);
    else if (loop_timer_set(a->host->loop, t, loop_ms(INTERCEPT_GLANCE_MS)) < 0)
        intercept_ask_over(a);
}

static void run_glance(struct intercept_ask *a) {
    bool known = intercept_look_program(a->tgid, &a->before_dev, &a->before_ino) == 0;
    a->glance.fn = run_on_glance;
    if (intercept_continue(a) < 0 || !known ||
        loop_timer_set(a->host->loop, &a->glance, loop_ms(INTERCEPT_GLANCE_MS)) < 0)
        intercept_ask_over(a);
    else
        intercept_ask_set(a, INTERCEPT_GLANCING);
}

/* -- the stop -- */

void intercept_run_go(struct intercept_ask *a) {
    if (!a->x->o.check) {
        (void)intercept_continue(a);
        intercept_ask_over(a);
        return;
    }
    int r = intercept_trace_seize(a->tid);
    if (r == -EPERM) {
        run_glance(a);
        return;
    }
    if (r < 0) {
        (void)intercept_respond(a, -EACCES);
        intercept_ask_over(a);
        return;
    }
    intercept_ask_set(a, INTERCEPT_LOADING);
    list_append(&a->host->traced, &a->traced);
    (void)intercept_continue(a);
}

void intercept_run_stopped(struct intercept_ask *a, int status) {
    if (intercept_trace_is_exec(status) && !run_is_decided(a)) {
        run_judge(a);
        return;
    }
    bool ours = intercept_trace_is_exec(status) || intercept_trace_is_stop(status);
    intercept_trace_let_go(a->tid, ours ? 0 : WSTOPSIG(status));
    intercept_ask_over(a);
}
