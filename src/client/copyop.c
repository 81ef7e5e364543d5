#include "client/copyop.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct warning {
    struct list node;
    char *text;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -- the end -- */

static void free_jobs(struct copyop *c) {
    while (!list_empty(&c->jobs)) {
        struct copyjob *j = list_entry(list_first(&c->jobs), struct copyjob, node);
        list_remove(&j->node);
        j->free(j);
    }
    c->n_jobs = 0;
}

static void op_end(struct op *op) {
    struct copyop *c = container_of(op, struct copyop, op);
    if (c->gone != NULL)
        *c->gone = true;
    c->failed = true; /* nothing begins any more */
    free_jobs(c);
    if (c->end != NULL)
        c->end(c);
    notice_drop(&c->notice);
    while (!list_empty(&c->warnings)) {
        struct warning *w = list_entry(list_first(&c->warnings), struct warning, node);
        list_remove(&w->node);
        free(w->text);
        free(w);
    }
    free(steal_ptr(&c->name));
    fspart_release(steal_ptr(&c->fs));
}

void copyop_fail(struct copyop *c, struct xs_error *e) {
    if (c->failed)
        return;
    op_fail_with(&c->op, e);
}

/* The last news go out before the result. */
static void finish(struct copyop *c) {
    c->finishing = true;
    c->meter.changed = true;
    c->meter.told_ns = 0;
    notice_post(c->op.client, &c->notice);
}

/* -- news -- */

static void tell(struct notice *n) {
    struct copyop *c = container_of(n, struct copyop, notice);
    struct warning *w = NULL;
    if (!list_empty(&c->warnings)) {
        w = list_entry(list_first(&c->warnings), struct warning, node);
        list_remove(&w->node);
        c->n_warnings--;
        notice_post(c->op.client, &c->notice);
    } else if (!meter_is_due(&c->meter, now_ns())) {
        if (c->finishing)
            op_finish(&c->op, (int)c->left_out);
        return;
    } else if (c->finishing) {
        notice_post(c->op.client, &c->notice);
    }
    struct xs_progress p = {
        .file = c->name != NULL ? c->name : "",
        .bytes = c->meter.bytes,
        .total = MAX(c->meter.total, c->meter.bytes),
        .files = c->meter.files,
        .files_total = MAX(c->meter.files_total, c->meter.files),
        .rate = c->meter.rate,
        .warning = w != NULL ? w->text : NULL,
    };
    bool gone = false;
    c->gone = &gone;
    /* Its name may change in the callback. */
    char *name = steal_ptr(&c->name);
    int r = c->progress(c->user, &p);
    if (gone) {
        free(name);
    } else {
        c->gone = NULL;
        if (c->name == NULL)
            c->name = name;
        else
            free(name);
        if (r != 0)
            op_fail(&c->op, XS_ECANCELED, "the copy was cancelled");
        else
            copyop_pump(c);
    }
    if (w != NULL) {
        free(w->text);
        free(w);
    }
}

static void PRINTF_LIKE(2, 0) add_warning(struct copyop *c, const char *fmt, va_list args) {
    struct warning *w = malloc(sizeof(*w));
    if (w == NULL)
        return;
    if (vasprintf(&w->text, fmt, args) < 0) {
        free(w);
        return;
    }
    xs_error_tidy(w->text);
    client_log(c->op.client, XS_LOG_WARN, "%s", w->text);
    if (c->progress == NULL) {
        free(w->text);
        free(w);
        return;
    }
    list_append(&c->warnings, &w->node);
    c->n_warnings++;
    notice_post(c->op.client, &c->notice);
}

void copyop_warn(struct copyop *c, bool counts, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_warning(c, fmt, args);
    va_end(args);
    c->left_out += counts;
}

void copyop_warn_once(struct copyop *c, enum copyop_once what, const char *fmt, ...) {
    if ((c->said & what) != 0)
        return;
    c->said |= what;
    va_list args;
    va_start(args, fmt);
    add_warning(c, fmt, args);
    va_end(args);
}

static void post(struct copyop *c) {
    uint64_t now = now_ns();
    if (c->progress == NULL || c->finishing)
        return;
    if (c->meter.changed && (c->meter.told_ns == 0 || now - c->meter.told_ns >= METER_PERIOD_NS))
        notice_post(c->op.client, &c->notice);
}

void copyop_name(struct copyop *c, const char *name) {
    free(c->name);
    c->name = strdup(name);
}

void copyop_bytes(struct copyop *c, uint64_t n, bool sent) {
    meter_bytes(&c->meter, now_ns(), n, sent);
    post(c);
}

void copyop_file(struct copyop *c) {
    c->meter.files++;
    c->meter.changed = true;
    post(c);
}

/* -- the beginning -- */

static int take_links(struct copyop *c, const struct xs_options *o) {
    static const char *const words[] = {"copy", "follow", "skip"};
    const char *word = xs_options_get(o, XS_OPT_LINKS, "copy");
    for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            c->links = (enum copyop_links)i;
            return 0;
        }
    }
    return XS_EINVAL;
}

static bool flag(const struct xs_options *o, const char *key, bool otherwise) {
    return xs_options_get_num(o, key, otherwise) != 0;
}

static int silent(void *user, const struct xs_progress *p) {
    (void)user;
    (void)p;
    return 0;
}

int copyop_new(struct xs_client *client, const struct xs_options *o, size_t size,
               xs_progress_fn *progress, void *user, struct xs_call *k, void *out) {
    struct copyop *c;
    int r = op_new(client, k, size, op_end, &c);
    if (r < 0)
        return r;
    list_init(&c->jobs);
    list_init(&c->warnings);
    notice_init(&c->notice, tell);
    c->recursive = flag(o, XS_OPT_RECURSIVE, false);
    c->preserve = flag(o, XS_OPT_PRESERVE, false);
    c->resume = flag(o, XS_OPT_RESUME, true);
    c->atomic = flag(o, XS_OPT_ATOMIC, true);
    c->sync = flag(o, XS_OPT_FSYNC, false);
    int64_t in_flight = xs_options_get_num(o, XS_OPT_IN_FLIGHT, 0);
    c->in_flight = in_flight < 0 ? 0 : (unsigned)MIN(in_flight, (int64_t)PACE_MAX);
    c->mask = localtree_umask();
    c->progress = progress != NULL ? progress : silent;
    c->user = user;
    pace_init(&c->pace);
    *(struct copyop **)out = c;
    if (take_links(c, o) < 0)
        return op_refuse(&c->op, XS_EINVAL, "links: copy, follow or skip");
    c->fs = fspart_space(client, o);
    return c->fs == NULL ? op_refuse(&c->op, XS_ENOMEM, "out of memory") : 0;
}

/* -- jobs -- */

bool copyop_has_room(const struct copyop *c, uint64_t bytes) {
    if (c->n_jobs == 0)
        return true;
    if (c->n_jobs >= COPYOP_JOBS_MAX || c->n_warnings >= COPYOP_WARNINGS_MAX)
        return false;
    if (bytes > COPYOP_SMALL || bytes == 0)
        return c->n_large < COPYOP_LARGE_MAX;
    return c->held + bytes <= COPYOP_HELD_MAX;
}

void copyop_add(struct copyop *c, struct copyjob *j, void (*free_job)(struct copyjob *)) {
    j->c = c;
    j->free = free_job;
    c->n_jobs++;
    c->held += j->held;
    c->n_large += j->is_large;
    list_append(&c->jobs, &j->node);
}

void copyop_done(struct copyjob *j) {
    struct copyop *c = j->c;
    c->n_jobs--;
    c->held -= j->held;
    c->n_large -= j->is_large;
    list_remove(&j->node);
    j->free(j);
    copyop_pump(c);
}

bool copyop_is_fatal(int err, const struct xs_error *e) {
    if (err == XS_EREMOTE || err == XS_ELOCAL)
        return e->os == ENOSPC || e->os == EDQUOT || e->os == EROFS;
    return err != XS_ENOTSUP && err != XS_EINVAL;
}

void copyop_job_failed(struct copyjob *j, const char *what, struct xs_error *e) {
    struct copyop *c = j->c;
    if (!c->in_tree || copyop_is_fatal(e->code, e)) {
        copyop_fail(c, e);
        return;
    }
    const char *text = xs_error_text(e);
    if (strncmp(text, what, strlen(what)) == 0)
        copyop_warn(c, true, "%s", text);
    else
        copyop_warn(c, true, "%s: %s", what, text);
    copyop_done(j);
}

void copyop_pump(struct copyop *c) {
    if (c->pumping || c->failed || c->finishing)
        return;
    c->pumping = true;
    bool left = c->more(c);
    if (c->failed)
        return;
    c->pumping = false;
    if (!left && c->n_jobs == 0)
        finish(c);
}

/* -- requests -- */

struct rawfile *copyop_raw(struct copyop *c, const char *remote, uint64_t at, uint64_t end,
                           bool write) {
    bool may =
        c->raw_failed < RAWFILE_TRIES && at < end && rawfile_can(c->fs, remote, end - at, write);
    return may ? rawfile_new(c->fs, remote, at, end) : NULL;
}

int copyop_raw_ended(struct copyop *c, const char *shown, int err, const struct xs_error *e) {
    if (err == 0 || err == XS_ELOCAL || err == XS_ENOMEM)
        return err;
    c->raw_failed++;
    client_log(c->op.client, XS_LOG_INFO, "%s: goes on in blocks: %s", shown, xs_error_text(e));
    return 1;
}

struct params copyop_begin(struct copyop *c, struct calls_request *r, const char *method,
                           const char *path, const char *to) {
    struct params p = {.b = calls_begin(c->op.client, r, method)};
    if (p.b == NULL)
        return p;
    params_open(&p, NULL, '{');
    params_path(&p, to != NULL ? "sourcePath" : "path", c->op.client, path);
    if (to != NULL)
        params_path(&p, "destinationPath", c->op.client, to);
    fspart_sandbox(c->fs, &p);
    r->after = CALLS_AGAIN;
    return p;
}

int copyop_send(struct copyop *c, struct calls_request *r, struct params *p,
                void (*done)(struct calls_request *, int, const struct json_node *,
                             struct xs_error *),
                struct xs_error *e) {
    if (p->b == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    params_close(p, '}');
    r->done = done;
    return calls_send(c->op.client, r, p->r, e);
}

char *copyop_join(const char *a, const char *b) {
    char *out = NULL;
    if (b[0] == '\0')
        return strdup(a);
    size_t n = strlen(a);
    const char *slash = n > 0 && a[n - 1] != '/' ? "/" : "";
    return asprintf(&out, "%s%s%s", a, slash, b) < 0 ? NULL : out;
}
