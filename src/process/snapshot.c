#include "process/snapshot.h"

#include "json/json.h"
#include "process/start.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>

#define SNAPSHOT_ARENA_MAX (16u << 20) /* bytes of a capture's strings, or of a snapshot */

struct login;

/* An entry of a session's cache. */
struct snapshot {
    struct list node; /* in session->snapshots, the least recently used first */
    struct session *session;
    struct str key;    /* owned */
    struct str policy; /* owned: envPolicy as JSON, or empty */
    enum snapshot_shell shell;
    enum snapshot_state state;
    unsigned attempts;
    uint64_t failed;        /* loop time of the last failure */
    struct list waits;      /* struct snapshot_wait, in order */
    struct login *run;      /* while pending; owned by the session */
    struct arena arena;     /* of the two below */
    struct str script;      /* the state */
    char *const *variables; /* what passes the policy */
    size_t bytes;           /* counted in host->snapshot_bytes */
};

/* A shell that tells its state. */
struct login {
    struct proc proc;
    struct process_host *host;
    struct list node;       /* in session->captures, or host->captures when that has ended */
    struct snapshot *owner; /* NULL: it is over */
    struct arena strings;   /* of its start */
    struct placeholders *placeholders; /* owned: mount points of its sandbox; NULL: none */
    struct cgroup cgroup;
    struct buf printed; /* on its standard output */
    struct loop_timer timer;
    struct loop_task over; /* deferred: the result is known */
    bool success;          /* it ended well */
};

/* -- the life of a capture -- */

static struct login *login_of(struct proc *p) {
    return container_of(p, struct login, proc);
}

static void login_free(struct login *c) {
    struct process_host *host = c->host;
    loop_timer_del(host->loop, &c->timer);
    loop_task_del(&c->over);
    list_remove(&c->node);
    proc_fini(&c->proc);
    arena_fini(&c->strings);
    buf_fini(&c->printed);
    if (proc_is_gone(&c->proc)) /* else the supervisor still uses them */
        remains_take(&host->remains, steal_ptr(&c->placeholders));
    cgroup_remove(&c->cgroup);
    free(c);
}

static void snapshot_over(struct snapshot *x, bool success);
static int snapshot_keep(struct snapshot *x, struct str printed);

/* Tells the owner. What the shell left in the background lives on, unless it failed. */
static void login_end(struct login *c) {
    struct snapshot *owner = steal_ptr(&c->owner);
    bool success = c->success;
    loop_timer_del(c->host->loop, &c->timer);
    if (owner == NULL)
        return;
    _cleanup_buf_ struct buf printed = c->printed; /* taken over: c may be freed now */
    c->printed = BUF_INIT(0);
    owner->run = NULL;
    if (proc_is_gone(&c->proc))
        login_free(c);
    else
        proc_abandon(&c->proc, !success, false);
    snapshot_over(owner, success && snapshot_keep(owner, buf_str(&printed)) == 0);
}

static void login_on_over(struct loop_task *t) {
    login_end(container_of(t, struct login, over));
}

static void login_on_timer(struct loop_timer *t) {
    login_end(container_of(t, struct login, timer));
}

static void login_decide(struct login *c, bool success) {
    if (c->owner == NULL)
        return;
    c->success = success;
    loop_defer(c->host->loop, &c->over);
}

static void login_on_started(struct proc *p, int error) {
    struct login *c = login_of(p);
    if (error == 0)
        proc_begin_output(p);
    else
        login_decide(c, false);
}

static void login_on_output(struct proc *p, uint64_t seq, enum outlog_stream stream,
                            const char *data, size_t n) {
    struct login *c = login_of(p);
    (void)seq;
    if (stream == OUTLOG_STDOUT && c->owner != NULL && buf_put(&c->printed, data, n) < 0)
        login_decide(c, false);
}

static void login_on_exited(struct proc *p, uint64_t seq) {
    (void)seq;
    login_decide(login_of(p), p->exit_code == 0);
}

static void login_on_closed(struct proc *p, uint64_t seq) {
    (void)p;
    (void)seq;
}

static void login_on_stdin_room(struct proc *p) {
    (void)p;
}

static void login_on_gone(struct proc *p) {
    struct login *c = login_of(p);
    struct process_host *host = c->host;
    if (c->owner != NULL)
        return; /* login_end() frees it */
    login_free(c);
    host->hooks->died(host);
}

static const struct proc_ops login_ops = {
    .started = login_on_started,
    .output = login_on_output,
    .exited = login_on_exited,
    .closed = login_on_closed,
    .stdin_room = login_on_stdin_room,
    .gone = login_on_gone,
};

/* -- the start of a capture -- */

static char **login_copy(struct arena *a, char *const *list) {
    size_t n = 0;
    while (list[n] != NULL)
        n++;
    char **copy = arena_calloc(a, n + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = arena_strdup(a, str_of(list[i]));
        if (copy[i] == NULL)
            return NULL;
    }
    return copy;
}

/* Copies the command with the script of the capture. 0 or -ENOMEM. */
static int login_command(struct login *c, const struct snapshot_spec *s, struct child_spec *out) {
    struct arena *a = &c->strings;
    const struct child_spec *from = s->command;
    char **argv = login_copy(a, from->argv);
    *out =
        (struct child_spec){.program = arena_strdup(a, str_of(from->program)),
                            .search = from->search ? arena_strdup(a, str_of(from->search)) : NULL,
                            .argv = argv,
                            .envp = login_copy(a, from->envp),
                            .cwd = arena_strdup(a, str_of(from->cwd))};
    if (argv == NULL || out->envp == NULL || out->program == NULL || out->cwd == NULL ||
        (from->search != NULL && out->search == NULL))
        return -ENOMEM;
    argv[2] = (char *)snapshot_script_capture(s->shell);
    return 0;
}

static int login_start(struct login *c, const struct snapshot_spec *s) {
    struct process_host *host = c->host;
    struct sandbox_launch launch = SANDBOX_LAUNCH_INIT;
    struct child_spec spec;
    struct limits limits = *s->limits;
    _cleanup_err_ struct err e = ERR_INIT;
    int r = login_command(c, s, &spec);
    if (s->plan != NULL)
        limits.value[LIMITS_PIDS] += SANDBOX_PROCESSES;
    if (r == 0)
        r = limits_plan(&limits, &host->procs.cgroups, &c->cgroup, &spec.limits, &e);
    if (r == 0 && s->plan != NULL)
        r = sandbox_host_prepare(&host->sandbox, s->plan, host->procs.children.nofile, &spec,
                                 &launch, &e);
    if (r == 0)
        r = loop_timer_set(host->loop, &c->timer, SNAPSHOT_TIMEOUT_MS * LOOP_MS);
    if (r == 0)
        r = proc_start(&c->proc, &spec);
    if (r == 0) {
        c->placeholders = steal_ptr(&launch.child.placeholders);
        launch.child.channel = -1; /* the process owns it now */
    }
    limits_steps_fini(&spec.limits);
    sandbox_host_launch_fini(&launch);
    return r;
}

int snapshot_begin(struct snapshot *x, const struct snapshot_spec *spec) {
    struct session *s = x->session;
    struct login *c = calloc(1, sizeof *c);
    x->shell = spec->shell;
    x->attempts++;
    if (c == NULL) {
        snapshot_over(x, false);
        return -ENOMEM;
    }
    *c = (struct login){.host = s->host,
                        .owner = x,
                        .strings = ARENA_INIT(SNAPSHOT_ARENA_MAX),
                        .printed = BUF_INIT(SNAPSHOT_SCRIPT_CAPTURE_MAX),
                        .timer = {.fn = login_on_timer},
                        .over = {.fn = login_on_over}};
    list_init(&c->node);
    proc_init(&c->proc, &s->host->procs, &login_ops, NULL, OUTLOG_CHUNK_MAX);
    free((char *)x->policy.p);
    x->policy = (struct str){str_dup(spec->policy), spec->policy.n};
    int r = x->policy.p != NULL ? login_start(c, spec) : -ENOMEM;
    if (r < 0) {
        c->owner = NULL;
        login_free(c);
        snapshot_over(x, false);
        return r;
    }
    list_append(&s->captures, &c->node);
    x->run = c;
    x->state = SNAPSHOT_PENDING;
    return 0;
}

/* -- what a capture told -- */

/* Whether a variable belongs to the command, or to one run of a shell. */
static bool snapshot_is_passing(struct str name) {
    static const char *const names[] = {"PWD", "OLDPWD",          "SHLVL",
                                        "_",   "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqz(name, names[i]))
            return true;
    }
    size_t n = sizeof SNAPSHOT_SCRIPT_PREFIX - 1;
    return name.n >= n && memcmp(name.p, SNAPSHOT_SCRIPT_PREFIX, n) == 0;
}

/* Makes a list of the variables that may be given to commands. NULL: no memory. */
static char **snapshot_list(struct arena *a, struct str variables) {
    size_t count = 0, n = 0;
    for (size_t i = 0; i < variables.n; i++)
        count += variables.p[i] == '\0';
    char **list = arena_calloc(a, count + 1, sizeof *list);
    while (list != NULL && variables.n > 0) {
        struct str one = str_of(variables.p); /* the parser has seen a NUL at the end */
        str_take(&variables, one.n + 1);
        const char *equals = memchr(one.p, '=', one.n);
        if (equals == NULL || equals == one.p ||
            snapshot_is_passing((struct str){one.p, (size_t)(equals - one.p)}))
            continue;
        list[n] = arena_strdup(a, one);
        if (list[n++] == NULL)
            return NULL;
    }
    return list;
}

/* Applies the policy of the starts, as if the server had these variables. */
static int snapshot_filter(struct snapshot *x, char **list) {
    _cleanup_buf_ struct buf text = BUF_INIT(SNAPSHOT_KEY_MAX + 16);
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    uint64_t seed;
    char **filtered = list;
    if (x->policy.n == 0) {
        x->variables = list;
        return 0;
    }
    if (buf_putf(&text, "[%.*s,{}]", (int)x->policy.n, x->policy.p) < 0)
        return -ENOMEM;
    randombytes_buf(&seed, sizeof seed);
    json_doc_init(&doc, SNAPSHOT_KEY_MAX + 16, seed);
    struct env_policy policy;
    int r = json_parse(&doc, text.p, text.len, &e);
    const struct json_node *node = r == 0 ? json_root(&doc) + 1 : NULL;
    if (r == 0)
        r = start_env_policy(node, &policy, &e);
    if (r == 0) {
        policy.inherit = ENV_ALL;
        const struct env_request request = {.policy = &policy, .env = json_next(node)};
        r = env_build(&x->arena, &request, list, &filtered);
    }
    json_doc_fini(&doc);
    x->variables = filtered;
    return r;
}

/* Keeps what the capture told. 0 or -errno. */
static int snapshot_keep(struct snapshot *x, struct str printed) {
    struct process_host *host = x->session->host;
    struct snapshot_text text;
    if (snapshot_script_parse(printed, &text) < 0)
        return -EINVAL;
    if (text.state.n + text.variables.n > SNAPSHOT_BYTES_MAX - host->snapshot_bytes)
        return -ENOBUFS;
    x->script.p = arena_strdup(&x->arena, text.state);
    x->script.n = text.state.n;
    char **list = snapshot_list(&x->arena, text.variables);
    if (x->script.p == NULL || list == NULL)
        return -ENOMEM;
    int r = snapshot_filter(x, list);
    if (r < 0)
        return r;
    x->bytes = text.state.n + text.variables.n;
    host->snapshot_bytes += x->bytes;
    return 0;
}

/* -- entries -- */

/* The capture is over: lets the starts go on. */
static void snapshot_over(struct snapshot *x, bool success) {
    x->state = success ? SNAPSHOT_READY : SNAPSHOT_FAILED;
    if (!success) {
        arena_fini(&x->arena);
        x->arena = ARENA_INIT(SNAPSHOT_ARENA_MAX);
        x->failed = x->session->host->loop->now;
    }
    for (struct list *n; (n = list_first(&x->waits)) != NULL;) {
        struct snapshot_wait *w = list_entry(n, struct snapshot_wait, node);
        list_remove(&w->node);
        w->ready(w, success ? x : NULL);
    }
}

static void snapshot_free(struct snapshot *x) {
    struct process_host *host = x->session->host;
    host->snapshot_bytes -= x->bytes;
    list_remove(&x->node);
    arena_fini(&x->arena);
    free((char *)x->key.p);
    free((char *)x->policy.p);
    free(x);
}

/* Forgets the snapshot that was not used for the longest time. False: all are being made. */
static bool snapshot_evict(struct session *s) {
    list_for_each(n, &s->snapshots) {
        struct snapshot *x = list_entry(n, struct snapshot, node);
        if (x->state == SNAPSHOT_PENDING)
            continue;
        snapshot_free(x);
        s->snapshot_count--;
        return true;
    }
    return false;
}

static struct snapshot *snapshot_new(struct session *s, struct str key) {
    if (s->snapshot_count == SNAPSHOT_ENTRIES_MAX && !snapshot_evict(s))
        return NULL;
    struct snapshot *x = calloc(1, sizeof *x);
    char *copy = str_dup(key);
    if (x == NULL || copy == NULL) {
        free(x);
        free(copy);
        return NULL;
    }
    *x = (struct snapshot){
        .session = s, .key = {copy, key.n}, .arena = ARENA_INIT(SNAPSHOT_ARENA_MAX)};
    list_init(&x->waits);
    list_append(&s->snapshots, &x->node);
    s->snapshot_count++;
    return x;
}

struct snapshot *snapshot_find(struct session *s, struct str key) {
    list_for_each(n, &s->snapshots) {
        struct snapshot *x = list_entry(n, struct snapshot, node);
        if (!str_eq(x->key, key))
            continue;
        list_remove(&x->node);
        list_append(&s->snapshots, &x->node);
        uint64_t again = x->failed + SNAPSHOT_AGAIN_MS * LOOP_MS;
        if (x->state == SNAPSHOT_FAILED && x->attempts < SNAPSHOT_ATTEMPTS &&
            s->host->loop->now >= again)
            x->state = SNAPSHOT_NONE;
        return x;
    }
    return snapshot_new(s, key);
}

enum snapshot_state snapshot_state(const struct snapshot *x) {
    return x->state;
}

void snapshot_await(struct snapshot *x, struct snapshot_wait *wait) {
    list_append(&x->waits, &wait->node);
}

void snapshot_forget(struct snapshot_wait *wait) {
    list_remove(&wait->node);
    wait->drop(wait);
}

int snapshot_apply(const struct snapshot *x, struct arena *a, char *const *own,
                   struct snapshot_command *command) {
    return snapshot_script_apply(a, x->shell, x->script, x->variables, own, command);
}

/* -- ends -- */

void snapshot_end_all(struct session *s) {
    struct process_host *host = s->host;
    for (struct list *n; (n = list_first(&s->captures)) != NULL;) {
        struct login *c = list_entry(n, struct login, node);
        bool over = c->owner == NULL;
        c->owner = NULL;
        loop_timer_del(host->loop, &c->timer);
        loop_task_del(&c->over);
        list_remove(&c->node);
        if (proc_is_gone(&c->proc)) {
            login_free(c);
            continue;
        }
        proc_abandon(&c->proc, true, over && host->settings.keep_detached);
        list_append(&host->captures, &c->node);
    }
    for (struct list *n; (n = list_first(&s->snapshots)) != NULL;)
        snapshot_free(list_entry(n, struct snapshot, node));
}

void snapshot_free_dying(struct process_host *h) {
    for (struct list *n; (n = list_first(&h->captures)) != NULL;)
        login_free(list_entry(n, struct login, node));
}
