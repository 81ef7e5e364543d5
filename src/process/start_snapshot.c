/* How a start gets the state of a login shell instead of running one (snapshot.h). */
#include "process/events.h"
#include "process/notify.h"
#include "process/snapshot.h"
#include "process/start_internal.h"

#include "json/jsonw.h"

#include <errno.h>

/* A start that waits for a capture. */
struct start_wait {
    struct snapshot_wait wait;
    struct process *process;
    struct start start;
    char **own; /* names in the request's `env`; in the process's arena */
};

/* -- params -- */

static struct str snapshot_arg(const struct start_params *p, size_t i) {
    const struct json_node *v = p->argv + 1;
    while (i-- > 0)
        v = json_next(v);
    return json_str(v);
}

/* Whether the command is a script for the login shell of the request. */
static bool snapshot_fits(const struct start_params *p) {
    return p->has_snapshot && p->argv->count >= 3 &&
           str_eq(snapshot_arg(p, 0), p->snapshot.shell.path) && str_eqz(snapshot_arg(p, 1), "-lc");
}

int start_snapshot_check(const struct start_params *p, struct err *e) {
    size_t n = p->snapshot.scope_id.n;
    if (!p->has_snapshot)
        return 0;
    if (n == 0 || n > SNAPSHOT_SCOPE_MAX)
        return err_set(e, ERR_INVALID_PARAMS,
                       "shell snapshot scope must be non-empty and at most %d bytes",
                       SNAPSHOT_SCOPE_MAX);
    if (snapshot_fits(p) && snapshot_script_shell(p->snapshot.shell.name) == SNAPSHOT_SHELLS)
        return err_about(e, ERR_INVALID_PARAMS, "shell snapshots are unsupported for shell `",
                         p->snapshot.shell.name, "`");
    return 0;
}

/* -- keys -- */

/* Appends a value as JSON again. 0 or as buf_reserve(). */
static int snapshot_put(struct buf *b, const struct json_node *v) {
    static const char *const words[] = {
        [JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    bool object = v != NULL && v->type == JSON_OBJECT;
    if (v == NULL)
        return buf_putz(b, "null");
    if (v->type == JSON_STRING)
        return jsonw_str(b, json_str(v));
    if (v->type == JSON_NUMBER)
        return buf_put(b, v->p, v->n);
    if (v->type != JSON_ARRAY && !object)
        return buf_putz(b, words[v->type]);
    int r = buf_putc(b, object ? '{' : '[');
    const struct json_node *child = v + 1;
    for (size_t i = 0; r == 0 && i < v->count; i++) {
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = snapshot_put(b, child);
        child = json_next(child);
        if (r == 0 && object) {
            r = buf_putc(b, ':');
            if (r == 0)
                r = snapshot_put(b, child);
            child = json_next(child);
        }
    }
    return r < 0 ? r : buf_putc(b, object ? '}' : ']');
}

static int snapshot_put_policy(struct buf *b, const struct start_params *p) {
    const struct start_env_policy *w = &p->env_policy;
    if (!p->has_env_policy)
        return 0;
    int r = buf_putz(b, "{\"inherit\":");
    if (r == 0)
        r = snapshot_put(b, w->inherit_node);
    if (r == 0)
        r = buf_putf(b, ",\"ignoreDefaultExcludes\":%s,\"exclude\":",
                     w->ignore_default_excludes ? "true" : "false");
    if (r == 0)
        r = snapshot_put(b, w->exclude);
    if (r == 0)
        r = buf_putz(b, ",\"set\":");
    if (r == 0)
        r = snapshot_put(b, w->set);
    if (r == 0)
        r = buf_putz(b, ",\"includeOnly\":");
    if (r == 0)
        r = snapshot_put(b, w->include_only);
    return r < 0 ? r : buf_putc(b, '}');
}

/* Appends all that the state of a shell depends on. 0 or as buf_reserve(). */
static int snapshot_put_key(struct buf *b, const struct start_params *p, const char *cwd) {
    const struct json_node *const nodes[] = {p->sandbox, p->managed_network, p->limits_node};
    const struct str texts[] = {p->snapshot.scope_id, p->snapshot.shell.name,
                                p->snapshot.shell.path, str_of(cwd)};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(texts); i++) {
        r = jsonw_str(b, texts[i]);
        if (r == 0)
            r = buf_putc(b, ',');
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(nodes); i++) {
        r = snapshot_put(b, nodes[i]);
        if (r == 0)
            r = buf_putc(b, ',');
    }
    if (r == 0)
        r = buf_putz(b, p->enforce_managed_network ? "true," : "false,");
    return r < 0 ? r : snapshot_put_policy(b, p);
}

/* -- use -- */

/* Copies the names that the request sets itself. NULL: no memory. */
static char **snapshot_own(struct arena *a, const struct json_node *env) {
    char **own = arena_calloc(a, env->count + 1, sizeof *own);
    size_t n = 0;
    json_for_each_member(k, env) {
        if (own == NULL || (own[n++] = arena_strdup(a, json_str(k))) == NULL)
            return NULL;
    }
    return own;
}

/* Puts the state into the command. If that cannot be done, the login shell runs. */
static void snapshot_use(struct process *j, struct start *s, const struct snapshot *x,
                         char *const *own) {
    struct snapshot_command command = {s->spec.argv, s->spec.envp};
    if (snapshot_apply(x, &j->start, own, &command) < 0)
        return;
    s->spec.argv = command.argv;
    s->spec.envp = command.envp;
}

static void start_wait_drop(struct snapshot_wait *x) {
    struct start_wait *w = container_of(x, struct start_wait, wait);
    start_fini(&w->start);
    free(w);
}

/* Answers a start that failed after its request was put aside: like one whose exec failed. */
static void snapshot_refuse(struct process *j, const struct err *e) {
    struct rpc_call *c = steal_ptr(&j->start_call);
    events_failed(j, err_msg(e));
    if (c->peer == NULL)
        rpc_forget(c);
    else
        rpc_fail(c, e);
    notify_failed(j, err_msg(e));
    process_free(j);
}

static void start_wait_ready(struct snapshot_wait *x, struct snapshot *snapshot) {
    struct start_wait *w = container_of(x, struct start_wait, wait);
    struct process *j = w->process;
    _cleanup_err_ struct err e = ERR_INIT;
    j->waiting = NULL;
    if (snapshot != NULL)
        snapshot_use(j, &w->start, snapshot, w->own);
    if (start_launch(j, &w->start, &e) < 0)
        snapshot_refuse(j, &e);
    start_wait_drop(x);
}

/* Puts the start aside until the capture is over. False: no memory. */
static bool snapshot_put_aside(struct process *j, struct start_params *p, struct start *s,
                               struct snapshot *x, char **own) {
    struct start_wait *w = calloc(1, sizeof *w);
    if (w == NULL)
        return false;
    *w = (struct start_wait){.wait = {.ready = start_wait_ready, .drop = start_wait_drop},
                             .process = j,
                             .start = *s,
                             .own = own};
    list_init(&w->wait.node);
    w->start.policy = p->arena;
    p->arena = ARENA_INIT(0);
    *s = (struct start){.launch = SANDBOX_LAUNCH_INIT};
    j->waiting = &w->wait;
    snapshot_await(x, &w->wait);
    return true;
}

static bool snapshot_begin_for(struct snapshot *x, const struct start_params *p,
                               const struct start *s) {
    _cleanup_buf_ struct buf policy = BUF_INIT(SNAPSHOT_KEY_MAX);
    if (snapshot_put_policy(&policy, p) < 0)
        return false;
    const struct snapshot_spec spec = {.shell = snapshot_script_shell(p->snapshot.shell.name),
                                       .command = &s->spec,
                                       .plan = s->confined ? &s->plan : NULL,
                                       .limits = &s->limits,
                                       .policy = buf_str(&policy)};
    return snapshot_begin(x, &spec) == 0;
}

bool start_snapshot_take(struct process *j, struct start_params *p, struct start *s) {
    _cleanup_buf_ struct buf key = BUF_INIT(SNAPSHOT_KEY_MAX);
    /* A proxy belongs to one process: a capture cannot use it. An arg0 is for the command. */
    if (!snapshot_fits(p) || s->network != NULL || p->has_arg0 ||
        snapshot_put_key(&key, p, s->spec.cwd) < 0)
        return false;
    char **own = snapshot_own(&j->start, p->env);
    struct snapshot *x = own != NULL ? snapshot_find(j->session, buf_str(&key)) : NULL;
    enum snapshot_state state = x != NULL ? snapshot_state(x) : SNAPSHOT_FAILED;
    if (state == SNAPSHOT_NONE)
        state = snapshot_begin_for(x, p, s) ? SNAPSHOT_PENDING : SNAPSHOT_FAILED;
    if (state == SNAPSHOT_PENDING)
        return snapshot_put_aside(j, p, s, x, own);
    if (state == SNAPSHOT_READY)
        snapshot_use(j, s, x, own);
    return false;
}
