#include "escalate/escalate_run.h"

#include "base/arena.h"
#include "base/nullfd.h"
#include "escalate/escalate_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#define RUN_STRINGS_MAX (16u << 20)

struct escalate_run {
    struct proc proc;
    struct arena strings;
    struct supervisor_heritage heritage;
    escalate_run_fn *ended;
    void *owner; /* NULL: nobody listens any more */
    bool told;
    uint64_t early; /* signals for the program alone that came before its start; bit n-1 */
};

/* -- environment -- */

static bool run_is_unsafe(const char *variable) {
    static const char *const names[] = {
        "GLIBC_TUNABLES=",        "BASH_ENV=",         "ENV=", ESCALATE_SOCKET "=",
        ESCALATE_WRAPPER_OLD "=", ESCALATE_WRAPPER "="};
    if (strncmp(variable, "LD_", 3) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static char **run_copy(struct arena *a, char *const *list, bool environment) {
    size_t n = 0, kept = 0;
    while (list[n] != NULL)
        n++;
    char **copy = arena_calloc(a, n + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++) {
        if (environment && run_is_unsafe(list[i]))
            continue;
        copy[kept] = arena_strdup(a, str_of(list[i]));
        if (copy[kept++] == NULL)
            return NULL;
    }
    return copy;
}

/* -- life -- */

static void run_tell(struct escalate_run *r, int status, int error) {
    if (r->told)
        return;
    r->told = true;
    if (r->owner != NULL)
        r->ended(r->owner, r, status, error);
    r->owner = NULL;
}

static void run_on_started(struct proc *p, int error) {
    struct escalate_run *r = container_of(p, struct escalate_run, proc);
    for (int n = 1; error == 0 && n <= 64; n++) {
        if (r->early >> (n - 1) & 1)
            child_signal_leader(&p->child, n);
    }
    if (error != 0)
        run_tell(r, 0, error);
}

static void run_on_output(struct proc *p, uint64_t seq, enum outlog_stream stream, const char *data,
                          size_t n) {
    (void)p;
    (void)seq;
    (void)stream;
    (void)data;
    (void)n;
}

static void run_on_exited(struct proc *p, uint64_t seq) {
    (void)seq;
    run_tell(container_of(p, struct escalate_run, proc),
             p->signal != 0 ? p->signal : p->exit_code << 8, 0);
}

static void run_on_closed(struct proc *p, uint64_t seq) {
    (void)p;
    (void)seq;
}

static void run_on_room(struct proc *p) {
    (void)p;
}

static void run_on_gone(struct proc *p) {
    struct escalate_run *r = container_of(p, struct escalate_run, proc);
    run_tell(r, SIGKILL, 0);
    proc_fini(&r->proc);
    arena_fini(&r->strings);
    free(r);
}

static const struct proc_ops run_ops = {.started = run_on_started,
                                        .output = run_on_output,
                                        .exited = run_on_exited,
                                        .closed = run_on_closed,
                                        .stdin_room = run_on_room,
                                        .gone = run_on_gone};

/* -- start -- */

/* The descriptors of a start. */
struct run_fds {
    int stdio[3];
    struct supervisor_given given[SUPERVISOR_GIVEN];
    unsigned given_count;
    int null; /* for missing ones; owned */
};

static int run_sort_fds(const struct escalate_program *p, struct run_fds *f) {
    *f = (struct run_fds){.stdio = {-1, -1, -1}, .null = nullfd_open(O_RDWR | O_CLOEXEC)};
    if (f->null < 0)
        return f->null;
    for (size_t i = 0; i < p->fd_count; i++) {
        if (p->numbers[i] < 3)
            f->stdio[p->numbers[i]] = p->fds[i];
        else if (f->given_count == SUPERVISOR_GIVEN)
            return -EMFILE;
        else
            f->given[f->given_count++] = (struct supervisor_given){p->fds[i], p->numbers[i]};
    }
    for (int i = 0; i < 3; i++) {
        if (f->stdio[i] < 0)
            f->stdio[i] = f->null;
    }
    return 0;
}

static int run_start(struct escalate_run *r, const struct escalate_program *p) {
    struct run_fds f;
    struct child_spec spec = {.program = arena_strdup(&r->strings, str_of(p->file)),
                              .argv = run_copy(&r->strings, p->argv, false),
                              .envp = run_copy(&r->strings, p->envp, true),
                              .cwd = arena_strdup(&r->strings, str_of(p->cwd)),
                              .stdio = f.stdio,
                              .given = f.given,
                              .heritage = p->heritage == NULL ? NULL : &r->heritage};
    if (spec.program == NULL || spec.argv == NULL || spec.envp == NULL || spec.cwd == NULL)
        return -E2BIG;
    int x = run_sort_fds(p, &f);
    spec.given_count = f.given_count;
    if (x == 0)
        x = proc_start(&r->proc, &spec);
    util_close_fd(&f.null);
    return x;
}

int escalate_run_start(struct proc_host *h, const struct escalate_program *p,
                       escalate_run_fn *ended, void *owner, struct escalate_run **out) {
    struct escalate_run *r = calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL)
        return -ENOMEM;
    r->strings = ARENA_INIT(RUN_STRINGS_MAX);
    r->ended = ended;
    r->owner = owner;
    if (p->heritage != NULL)
        r->heritage = *p->heritage;
    proc_init(&r->proc, h, &run_ops, NULL, 0);
    int x = run_start(r, p);
    if (x < 0) {
        proc_fini(&r->proc);
        arena_fini(&r->strings);
        free(r);
        return x;
    }
    *out = r;
    return 0;
}

void escalate_run_signal(struct escalate_run *r, int signo, bool group) {
    if (group)
        proc_signal(&r->proc, signo);
    else if (r->proc.state == PROC_STARTING)
        r->early |= UINT64_C(1) << (signo - 1);
    else
        child_signal_leader(&r->proc.child, signo);
}

void escalate_run_kill(struct escalate_run *r) {
    r->owner = NULL;
    r->told = true;
    proc_abandon(&r->proc, true, false);
}
