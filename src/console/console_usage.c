#include "console/console_usage.h"

#include "base/scan.h"
#include "console/console.h"
#include "console/console_methods.h"
#include "loop/pool.h"
#include "proc/resources.h"
#include "process/params.h"
#include "process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define USAGE_TEXT_MAX 4096
#define USAGE_DEPTH 24 /* generations */

struct usage_one {
    pid_t supervisor; /* its children are the command; 0: known without a look */
    bool known;
    uint64_t cpu_ms, rss;
};

struct usage_job {
    struct pool_job job;
    struct rpc_call *call; /* NULL: the connection is gone */
    unsigned files;        /* that may be read */
    size_t count;
    struct usage_one one[];
};

/* -- in a thread -- */

/* Reads a file of /proc, NUL-terminated, within the job's maximum. */
static bool usage_read(struct usage_job *u, const char *path, char text[USAGE_TEXT_MAX]) {
    if (u->files == 0)
        return false;
    u->files--;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, USAGE_TEXT_MAX - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (n == USAGE_TEXT_MAX - 1) /* the last word may be half of one */
        *(strrchr(text, ' ') != NULL ? strrchr(text, ' ') : text) = '\0';
    return true;
}

/* Adds what a process and the children it awaited have used. */
static void usage_add(struct usage_job *u, struct usage_one *one, pid_t pid) {
    char path[48], text[USAGE_TEXT_MAX];
    unsigned long v[4], pages;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *f = usage_read(u, path, text) ? strrchr(text, ')') : NULL;
    if (f == NULL)
        return;
    uint64_t ticks = 0;
    for (unsigned i = 0; i < ARRAY_LEN(v); i++) /* the fields 14 to 17 of proc(5) */
        ticks += scan_word(f + 1, 11 + i, &v[i]) ? v[i] : 0;
    one->cpu_ms += ticks * 1000u / (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1L);
    if (scan_word(f + 1, 21, &pages)) /* field 24 */
        one->rss += (uint64_t)pages * (uint64_t)MAX(sysconf(_SC_PAGESIZE), 1L);
    one->known = true;
}

static void usage_walk(struct usage_job *u, struct usage_one *one, pid_t pid, int depth);

/* The children that one thread of a process has made. */
static void usage_children(struct usage_job *u, struct usage_one *one, const char *path,
                           int depth) {
    char text[USAGE_TEXT_MAX];
    unsigned long pid;
    if (!usage_read(u, path, text))
        return;
    for (const char *p = text; scan_word(p, 0, &pid);) {
        usage_add(u, one, (pid_t)pid);
        usage_walk(u, one, (pid_t)pid, depth + 1);
        p += strspn(p, " \n");
        p += strcspn(p, " \n");
    }
}

/* Adds the descendants of a process. */
static void usage_walk(struct usage_job *u, struct usage_one *one, pid_t pid, int depth) {
    char path[96];
    if (depth > USAGE_DEPTH || u->files == 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    const struct dirent *d;
    while (threads != NULL && u->files > 0 && (d = readdir(threads)) != NULL) {
        if (d->d_name[0] == '.' || strlen(d->d_name) > 16)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, d->d_name);
        usage_children(u, one, path, depth);
    }
    if (threads != NULL)
        closedir(threads);
}

static void usage_work(struct pool_job *j) {
    struct usage_job *u = container_of(j, struct usage_job, job);
    for (size_t i = 0; i < u->count; i++) {
        if (u->one[i].supervisor != 0)
            usage_walk(u, &u->one[i], u->one[i].supervisor, 0);
    }
}

/* -- the request -- */

struct usage_params {
    const struct json_node *processes;
};

/* Pairs of texts, at most CONSOLE_USAGE_MAX. */
static int usage_check(const struct json_node *v, struct err *e) {
    if (v->type != JSON_ARRAY || v->count > CONSOLE_USAGE_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "processes must be an array of at most %d pairs",
                       CONSOLE_USAGE_MAX);
    json_for_each(pair, v) {
        bool good = pair->type == JSON_ARRAY && pair->count == 2;
        json_for_each(name, pair) {
            good &= name->type == JSON_STRING;
        }
        if (!good)
            return err_set(e, ERR_INVALID_PARAMS, "processes must be pairs of ids");
    }
    return 0;
}

static const struct jsondec_field usage_fields[] = {
    PARAM_CHECKED(usage_params, processes, "processes", JSONDEC_NODE, usage_check),
};
static const struct jsondec_struct usage_struct = PARAM_STRUCT("ResourcesParams", usage_fields);

int console_usage_decode(const struct json_node *params, void *out, struct err *e) {
    struct usage_params *p = out;
    *p = (struct usage_params){.processes = NULL};
    int r = jsondec(&usage_struct, params, out, e);
    return r < 0 ? r : usage_check(p->processes, e);
}

/* What is known at once, or where to look. */
static void usage_begin(const struct process *p, struct usage_one *one) {
    if (p == NULL || p->proc.state == PROC_STARTING)
        return;
    if (!p->proc.reaped && p->proc.child.sup != NULL) {
        one->supervisor = p->proc.child.pid;
        return;
    }
    struct resources r = resources_of(&p->proc);
    one->known = true;
    one->cpu_ms = r.user_ms + r.system_ms;
}

static void usage_done(struct pool_job *j) {
    struct usage_job *u = container_of(j, struct usage_job, job);
    struct rpc_call *c = steal_ptr(&u->call);
    struct buf *b = c != NULL ? rpc_result_begin(c) : NULL;
    int r = b != NULL ? buf_putz(b, "{\"resources\":[") : 0;
    for (size_t i = 0; b != NULL && r == 0 && i < u->count; i++) {
        const struct usage_one *one = &u->one[i];
        r = i > 0 ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = one->known ? buf_putf(b, "{\"cpuMs\":%" PRIu64 ",\"rssBytes\":%" PRIu64 "}",
                                      one->cpu_ms, one->rss)
                           : buf_putz(b, "null");
    }
    if (b != NULL) {
        rpc_done(b, r < 0 ? r : buf_putz(b, "]}"));
        rpc_result_send(c);
    }
    free(u);
}

static void usage_cancelled(struct rpc_call *c) {
    struct usage_job *u = c->user;
    u->call = NULL;
    rpc_forget(c);
}

enum rpc_outcome console_usage_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)result;
    const struct usage_params *p = params;
    struct console *k = console_of_call(c);
    size_t i = 0;
    struct usage_job *u = calloc(1, sizeof *u + p->processes->count * sizeof u->one[0]);
    if (u == NULL || (u->call = rpc_defer(c, e)) == NULL) {
        free(u);
        if (e->code == 0)
            err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    u->job = (struct pool_job){.work = usage_work, .done = usage_done};
    u->files = CONSOLE_USAGE_FILES;
    u->count = p->processes->count;
    u->call->user = u;
    u->call->cancelled = usage_cancelled;
    json_for_each(pair, p->processes) {
        const struct json_node *session = pair + 1;
        const struct session *s = session_shown(k->processes, json_str(session));
        const struct process *one =
            s != NULL ? process_find(s, json_str(json_next(session))) : NULL;
        usage_begin(one, &u->one[i++]);
    }
    pool_submit(k->rpc.pool, &u->job);
    return RPC_LATER;
}
