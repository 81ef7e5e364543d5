/*
 * Runs one command with every exec below it intercepted (src/intercept), for tests and figures:
 *
 *     intercept-driver [OPTION...] -- PROGRAM [ARG...]
 *
 *     --deny NAME[=REASON]  a NAME is the last component of the path, of the file, or of a `#!`
 *     --escalate NAME       interpreter; `memfd:NAME`; or `NAME ARG` with the first argument
 *     --ask NAME            decided as --ask-verdict says (run, deny, escalate) after --ask-ms
 *     --hold NAME           never decided
 *     --descendants         escalates also what the shell has not called itself
 *     --no-check            does not look at what was loaded
 *     --log FILE            one JSON object per event
 *     --sandbox BACKEND     userns, root or landlock: everything readable, the working directory
 *                           writable
 *     --linger              ends when the last process below the command has ended
 *     --crash NAME          dies of SIGKILL when it is asked about NAME
 *     --probe               only says whether interception works
 *
 * It ends as the command does.
 */
#include "intercept/intercept.h"
#include "json/jsonw.h"
#include "loop/pool.h"
#include "proc/child.h"
#include "sandbox/host/launcher.h"
#include "sandbox/host/sandbox_host.h"
#include "sandbox/inside/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RULES 64

enum action { DENY, ESCALATE, ASK, HOLD, CRASH, ACTIONS };

struct rule {
    enum action action;
    const char *name, *reason;
};

/* An ask that is answered later. */
struct later {
    struct list node;
    struct loop_timer timer;
    struct intercept_ask *ask;
};

/* An escalated program. */
struct program {
    struct list node;
    struct child child;
    struct intercept_stub *stub; /* NULL: lost */
    struct supervisor_heritage heritage;
    int early; /* a signal that came before the program was seen to run; 0: none */
};

static struct {
    struct loop loop;
    struct pool pool;
    struct child_host children;
    struct sandbox_host sandbox;
    struct sandbox_launch launch;
    struct loop_io signals;
    struct intercept_host *host;
    struct intercept *x;
    struct child child;
    struct rule rules[RULES];
    size_t rule_count;
    struct list later, programs;
    enum intercept_verdict ask_verdict;
    unsigned ask_ms;
    bool descendants, check, linger, ended;
    int backend; /* -1: no sandbox */
    int status;
    FILE *log;
} d = {.check = true, .backend = -1, .launch = SANDBOX_LAUNCH_INIT};

static _Noreturn void die(const char *what) {
    fprintf(stderr, "intercept-driver: %s: %s\n", what, strerror(errno));
    exit(125);
}

/* -- decisions -- */

static const char *last(const char *path) {
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_name(const struct intercept_exec *e, const char *name, size_t n) {
    const char *names[3 + 2 * INTERCEPT_SCRIPTS_MAX] = {last(e->path), last(e->file)};
    size_t count = 2;
    if (e->memfd != NULL && strncmp(name, "memfd:", 6) == 0)
        return strlen(e->memfd) == n - 6 && memcmp(e->memfd, name + 6, n - 6) == 0;
    for (size_t i = 0; i < e->interpreter_count; i++) {
        names[count++] = last(e->interpreters[i].path);
        names[count++] = last(e->interpreters[i].file);
    }
    for (size_t i = 0; i < count; i++) {
        if (names[i] != NULL && strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return true;
    }
    return false;
}

static const struct rule *find(const struct intercept_exec *e) {
    for (size_t i = 0; i < d.rule_count; i++) {
        const char *name = d.rules[i].name, *arg = strchr(name, ' ');
        size_t n = arg == NULL ? strlen(name) : (size_t)(arg - name);
        if (is_name(e, name, n) &&
            (arg == NULL || (e->argc > 1 && strcmp(e->argv[1], arg + 1) == 0)))
            return &d.rules[i];
    }
    return NULL;
}

static const char *const verdicts[] = {"run", "deny", "escalate"};

static void note_text(const char *text) {
    _cleanup_buf_ struct buf b = BUF_INIT(64u << 20);
    if (text == NULL || jsonw_str(&b, (struct str){text, strlen(text)}) < 0)
        fputs("null", d.log);
    else
        fwrite(b.p, 1, b.len, d.log);
}

static void note(const char *key, const char *text) {
    fprintf(d.log, ",\"%s\":", key);
    note_text(text);
}

static void note_exec(struct intercept_ask *ask, const struct intercept_exec *e,
                      const char *verdict) {
    if (d.log == NULL)
        return;
    fprintf(d.log, "{\"pid\":%d,\"byShell\":%s,\"loaded\":%s", (int)e->pid,
            intercept_is_by_shell(ask) ? "true" : "false", e->loaded ? "true" : "false");
    note("verdict", verdict);
    note("path", e->path);
    note("file", e->file);
    note("cwd", e->cwd);
    note("memfd", e->memfd);
    note("interpreter", e->interpreter_count == 0 ? NULL : e->interpreters[0].file);
    fputs(",\"argv\":[", d.log);
    for (size_t i = 0; i < e->argc; i++) {
        fputs(i == 0 ? "" : ",", d.log);
        note_text(e->argv[i]);
    }
    fputs("]}\n", d.log);
    fflush(d.log);
}

static void note_event(const char *event, int value) {
    if (d.log == NULL)
        return;
    fprintf(d.log, "{\"event\":\"%s\",\"value\":%d}\n", event, value);
    fflush(d.log);
}

static void later_answer(struct loop_timer *t) {
    struct later *l = container_of(t, struct later, timer);
    struct intercept_ask *ask = l->ask;
    list_remove(&l->node);
    free(l);
    intercept_answer(ask, d.ask_verdict, "asked");
}

static void answer_later(struct intercept_ask *ask, bool never) {
    struct later *l = calloc(1, sizeof *l);
    if (l == NULL)
        die("memory");
    *l = (struct later){.timer = {.fn = later_answer}, .ask = ask};
    list_append(&d.later, &l->node);
    if (!never && loop_timer_set(&d.loop, &l->timer, loop_ms(d.ask_ms)) < 0)
        die("timer");
}

static void on_decide(void *owner, struct intercept_ask *ask, const struct intercept_exec *e) {
    (void)owner;
    const struct rule *rule = find(e);
    enum intercept_verdict v = INTERCEPT_RUN;
    if (rule != NULL && rule->action == CRASH)
        raise(SIGKILL);
    if (rule != NULL && (rule->action == ASK || rule->action == HOLD)) {
        note_exec(ask, e, "ask");
        answer_later(ask, rule->action == HOLD);
        return;
    }
    if (rule != NULL && rule->action == DENY)
        v = INTERCEPT_DENY;
    else if (rule != NULL && (d.descendants || intercept_is_by_shell(ask)))
        v = INTERCEPT_ESCALATE;
    note_exec(ask, e, verdicts[v]);
    intercept_answer(ask, v, rule == NULL ? NULL : rule->reason);
}

static void on_withdrawn(void *owner, struct intercept_ask *ask) {
    (void)owner;
    note_event("withdrawn", 0);
    list_for_each(n, &d.later) {
        struct later *l = list_entry(n, struct later, node);
        if (l->ask != ask)
            continue;
        loop_timer_del(&d.loop, &l->timer);
        list_remove(&l->node);
        free(l);
    }
}

/* -- escalated programs -- */

static void on_program(struct child *c) {
    struct program *p = container_of(c, struct program, child);
    if (p->early != 0 && c->sup != NULL && c->seen == SUPERVISOR_RUNNING) {
        child_signal_leader(c, p->early);
        p->early = 0;
    }
    if (p->stub != NULL && c->sup != NULL && c->seen == SUPERVISOR_FAILED) {
        intercept_stub_end(p->stub, 126 << 8, NULL);
        p->stub = NULL;
    } else if (p->stub != NULL && c->sup != NULL && c->seen == SUPERVISOR_EXITED) {
        intercept_stub_end(p->stub, c->sup->status, NULL);
        p->stub = NULL;
    }
    if (c->gone) {
        list_remove(&p->node);
        free(p);
    }
}

static void on_escalate(void *owner, struct intercept_escalation *x) {
    (void)owner;
    struct supervisor_given given[INTERCEPT_FDS];
    unsigned count = 0;
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL)
        die("memory");
    p->child.changed = on_program;
    p->stub = x->stub;
    p->heritage = (struct supervisor_heritage){
        .umask = x->umask, .ignored = x->ignored, .blocked = x->blocked, .nice = x->nice};
    memcpy(p->heritage.limits, x->limits, sizeof x->limits);
    for (int fd = 3; fd < INTERCEPT_FDS && count < SUPERVISOR_GIVEN; fd++) {
        if (x->fds[fd] >= 0)
            given[count++] = (struct supervisor_given){x->fds[fd], fd};
    }
    struct child_fds fds;
    struct child_spec spec = {.program = x->exec->file,
                              .argv = x->exec->argv,
                              .envp = x->exec->envp,
                              .cwd = x->exec->cwd,
                              .stdio = x->fds,
                              .given = given,
                              .given_count = count,
                              .heritage = &p->heritage};
    note_event("escalated", x->pgrp);
    int r = child_start(&d.children, &p->child, &spec, &fds);
    if (r < 0) {
        free(p);
        intercept_stub_end(x->stub, 126 << 8, "intercept-driver: cannot start it\n");
        return;
    }
    list_append(&d.programs, &p->node);
}

static struct program *program_of(const struct intercept_stub *stub) {
    list_for_each(n, &d.programs) {
        struct program *p = list_entry(n, struct program, node);
        if (p->stub == stub)
            return p;
    }
    return NULL;
}

static void on_stub_signal(void *owner, struct intercept_stub *stub, int signo, bool terminal) {
    (void)owner;
    (void)terminal;
    struct program *p = program_of(stub);
    note_event("signal", signo);
    if (p != NULL && p->child.seen == SUPERVISOR_STARTING)
        p->early = signo; /* it may have said that it is up already: our loop is slower */
    else if (p != NULL)
        child_signal(&p->child, signo);
}

static void on_lost(void *owner, struct intercept_stub *stub) {
    (void)owner;
    struct program *p = program_of(stub);
    note_event("lost", 0);
    if (p == NULL)
        return;
    p->stub = NULL;
    child_kill(&p->child, false);
}

static const struct intercept_owner calls = {.decide = on_decide,
                                             .withdrawn = on_withdrawn,
                                             .escalate = on_escalate,
                                             .signal = on_stub_signal,
                                             .lost = on_lost};

/* -- the command -- */

static void on_command(struct child *c) {
    if (c->sup != NULL && c->seen == SUPERVISOR_FAILED) {
        fprintf(stderr, "intercept-driver: start: %s\n", strerror(c->sup->error));
        d.status = 126 << 8;
        d.ended = true;
    }
    if (c->sup != NULL && c->seen == SUPERVISOR_EXITED) {
        d.status = c->sup->status;
        d.ended = true;
    }
}

static void prepare_sandbox(struct child_spec *spec, struct sandbox_launch *l) {
    static struct plan_entry entries[1];
    struct plan plan = {.confine_files = true,
                        .full_read = true,
                        .entries = entries,
                        .entry_count = d.backend == LAUNCH_LANDLOCK ? 0 : 1,
                        .cwd = spec->cwd};
    _cleanup_err_ struct err e = ERR_INIT;
    entries[0] = (struct plan_entry){spec->cwd, PLAN_WRITE};
    (void)sandbox_host_backend(&d.sandbox);
    backend_probe(d.sandbox.self, true, &d.sandbox.backend);
    for (int i = 0; i < d.backend; i++)
        d.sandbox.backend.tries[i].works = false;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (sandbox_host_prepare(&d.sandbox, &plan, files, spec, l, &e) < 0) {
        fprintf(stderr, "intercept-driver: %s\n", err_msg(&e));
        exit(77);
    }
}

static void start(char **argv) {
    static char cwd[4096];
    const int stdio[3] = {0, 1, 2};
    struct child_fds fds;
    struct execfilter_start intercept;
    struct intercept_options o = {.calls = &calls, .check = d.check};
    if (getcwd(cwd, sizeof cwd) == NULL || intercept_new(d.host, &o, &d.x, &intercept) < 0)
        die("interception");
    struct child_spec spec = {.program = argv[0],
                              .search = strchr(argv[0], '/') != NULL ? NULL : getenv("PATH"),
                              .argv = argv,
                              .envp = environ,
                              .cwd = cwd,
                              .stdio = stdio,
                              .intercept = &intercept};
    if (d.backend >= 0)
        prepare_sandbox(&spec, &d.launch);
    d.child.changed = on_command;
    int r = child_start(&d.children, &d.child, &spec, &fds);
    close(intercept.socket);
    for (size_t i = 0; i < ARRAY_LEN(d.launch.child.handed); i++)
        util_close_fd(&d.launch.child.handed[i]);
    if (r < 0) {
        errno = -r;
        die(argv[0]);
    }
}

static void on_signal(struct loop_io *io, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            child_host_reap(&d.children);
        else
            child_signal(&d.child, (int)info.ssi_signo);
    }
}

static bool on_stranger(void *owner, pid_t pid, int status) {
    (void)owner;
    return intercept_host_waited(d.host, pid, status);
}

static void set_up(void) {
    sigset_t set;
    struct rlimit files;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    list_init(&d.later);
    list_init(&d.programs);
    if (loop_init(&d.loop, NULL) < 0 || pool_init(&d.pool, &d.loop) < 0 ||
        child_host_init(&d.children, &d.loop, files) < 0)
        die("set-up");
    d.signals =
        (struct loop_io){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .fn = on_signal};
    d.host = intercept_host_new(&d.loop, &d.pool);
    if (d.host == NULL || loop_io_add(&d.loop, &d.signals, EPOLLIN) < 0)
        die("set-up");
    d.children.stranger = on_stranger;
    sandbox_host_init(&d.sandbox, false, NULL);
}

/* -- options -- */

static void add_rule(enum action action, char *text) {
    char *reason = strchr(text, '=');
    if (d.rule_count == RULES)
        die("rules");
    if (reason != NULL)
        *reason++ = '\0';
    d.rules[d.rule_count++] = (struct rule){action, text, reason};
}

static int probe(void) {
    _cleanup_err_ struct err e = ERR_INIT;
    int r = intercept_probe(&e);
    puts(r == 0 ? "works" : err_msg(&e));
    return r == 0 ? 0 : 1;
}

static int number_of(const char *const *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    die(name);
}

enum { VERDICT = ACTIONS, MS, LOG, SANDBOX, DESCENDANTS, NO_CHECK, LINGER, PROBE };

static void options(int argc, char **argv) {
    static const struct option table[] = {
        {"deny", 1, NULL, DENY},         {"escalate", 1, NULL, ESCALATE},
        {"ask", 1, NULL, ASK},           {"hold", 1, NULL, HOLD},
        {"crash", 1, NULL, CRASH},       {"ask-verdict", 1, NULL, VERDICT},
        {"ask-ms", 1, NULL, MS},         {"log", 1, NULL, LOG},
        {"sandbox", 1, NULL, SANDBOX},   {"descendants", 0, NULL, DESCENDANTS},
        {"no-check", 0, NULL, NO_CHECK}, {"linger", 0, NULL, LINGER},
        {"probe", 0, NULL, PROBE},       {NULL, 0, NULL, 0}};
    static const char *const backends[] = {"userns", "root", "landlock"};
    for (int o; (o = getopt_long(argc, argv, "+", table, NULL)) != -1;) {
        switch (o) {
        case VERDICT: d.ask_verdict = (enum intercept_verdict)number_of(verdicts, 3, optarg); break;
        case MS: d.ask_ms = (unsigned)atoi(optarg); break;
        case LOG: d.log = fopen(optarg, "ae"); break;
        case SANDBOX: d.backend = number_of(backends, 3, optarg); break;
        case DESCENDANTS: d.descendants = true; break;
        case NO_CHECK: d.check = false; break;
        case LINGER: d.linger = true; break;
        case PROBE: exit(probe());
        case '?': exit(2);
        default: add_rule((enum action)o, optarg); break;
        }
    }
}

/* What the launcher says: nothing new if the command ran. */
static void report(void) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (d.backend < 0)
        return;
    fcntl(d.launch.child.channel, F_SETFL, O_NONBLOCK);
    if (d.launch.child.report(d.launch.child.channel, &e) < 0)
        fprintf(stderr, "intercept-driver: %s\n", err_msg(&e));
}

int main(int argc, char **argv) {
    if (launcher_is_stage(argc, argv))
        launch_main(NULL);
    options(argc, argv);
    if (optind >= argc)
        return 2;
    set_up();
    start(argv + optind);
    while (!d.ended || (d.linger && intercept_is_alive(d.x))) {
        if (loop_once(&d.loop, UINT64_MAX) < 0)
            die("loop");
    }
    report();
    intercept_free(d.x);
    child_kill(&d.child, false);
    while (d.children.live > 0) {
        if (loop_once(&d.loop, UINT64_MAX) < 0)
            die("loop");
    }
    intercept_host_free(d.host);
    return WIFEXITED(d.status) ? WEXITSTATUS(d.status) : 128 + WTERMSIG(d.status);
}
