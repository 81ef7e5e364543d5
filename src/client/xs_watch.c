#include "client/xs_watch.h"

#include "base/uri.h"
#include "client/fsanswer.h"

#include <inttypes.h>
#include <stdio.h>

#define PATHS_MAX 4096 /* that wait for the caller; then overflow */
#define PATHS_BYTES_MAX (1 << 20)
#define MISSING_MAX 64

struct watch_op {
    struct op op; /* first */
    struct xs_watch *watch;
};

static struct xs_client *client_of(const struct xs_watch *w) {
    return w->fs->files->client;
}

/* -- to the caller -- */

static void tell(struct notice *n) {
    struct xs_watch *w = container_of(n, struct xs_watch, notice);
    size_t count = w->n_changed;
    const char **paths = calloc(count + 1, sizeof(*paths));
    struct buf text = w->changed;
    struct xs_change c = {.overflow = w->overflow, .failed = w->failed};
    char *failed = steal_ptr(&w->failed);
    w->changed = BUF_INIT(PATHS_BYTES_MAX);
    w->n_changed = 0;
    w->overflow = false;
    const char *at = text.p;
    for (size_t i = 0; paths != NULL && i < count; i++) {
        paths[i] = at;
        at += strlen(at) + 1;
    }
    c.paths = paths;
    c.n = paths == NULL ? 0 : count;
    c.overflow = c.overflow || (paths == NULL && count > 0);
    w->fn(w, &c, w->user);
    /* The watch may be gone. */
    free(paths);
    free(failed);
    buf_fini(&text);
}

static void overflow(struct xs_watch *w) {
    buf_fini(&w->changed);
    w->n_changed = 0;
    w->overflow = true;
}

static void changed(struct xs_watch *w, const char *path) {
    if (w->overflow)
        return;
    if (w->n_changed == PATHS_MAX || buf_put(&w->changed, path, strlen(path) + 1) < 0)
        overflow(w);
    else
        w->n_changed++;
}

static void post(struct xs_watch *w) {
    if (w->op == NULL) /* else the caller does not have it yet; nothing was told before */
        notice_post(client_of(w), &w->notice);
}

static void end(struct xs_watch *w, const char *why) {
    if (w->over)
        return;
    w->over = true;
    w->active = false;
    free(w->failed);
    w->failed = why == NULL ? NULL : strdup(why);
    if (w->fs->files->missing == w)
        w->fs->files->missing = NULL;
    post(w);
}

static void tell_missing(struct xs_watch *w) {
    for (char **p = w->paths; *p != NULL; p++)
        changed(w, *p);
    end(w, NULL);
}

/* -- notifications -- */

static struct xs_watch *find(struct files *files, const struct json_node *id) {
    list_for_each(i, &files->watches) {
        struct xs_watch *w = list_entry(i, struct xs_watch, node);
        if (!w->is_missing && !w->over && id->type == JSON_STRING && str_eqz(json_str(id), w->id))
            return w;
    }
    return NULL;
}

static int note_changed(struct files *files, const struct fsanswer_change *c) {
    struct xs_watch *w = find(files, c->id);
    if (w == NULL)
        return 1; /* freed meanwhile */
    if (c->overflow)
        overflow(w);
    if (c->paths != NULL) {
        json_for_each(v, c->paths) {
            struct err e = ERR_INIT;
            char *path = NULL;
            int r = uri_to_path(json_str(v), &path, &e);
            err_fini(&e);
            if (r < 0)
                return XS_EPROTO;
            changed(w, path);
            free(path);
        }
    }
    post(w);
    return 1;
}

int xs_watch_note(struct files *files, struct str method, const struct json_node *params) {
    bool is_missing = str_eqz(method, "fs/missingChanged");
    if (!is_missing && !str_eqz(method, "fs/changed"))
        return 0;
    struct fsanswer_change c;
    if (fsanswer_change(params, &c) < 0)
        return XS_EPROTO;
    if (!is_missing)
        return note_changed(files, &c);
    uint64_t number;
    if (json_u64(c.id, &number) < 0)
        return XS_EPROTO;
    struct xs_watch *w = files->missing;
    if (w != NULL && w->active && w->number == number)
        tell_missing(w);
    return 1;
}

/* -- making them -- */

static int send_watch(struct xs_watch *w, struct xs_error *e);

static void watch_drop(struct xs_watch *w) {
    notice_drop(&w->notice);
    calls_drop(&w->request);
    list_remove(&w->node);
    if (w->fs->files->missing == w)
        w->fs->files->missing = NULL;
    fspart_release(w->fs);
    buf_fini(&w->changed);
    for (char **p = w->paths; p != NULL && *p != NULL; p++)
        free(*p);
    free(w->paths);
    free(w->path);
    free(w->failed);
    free(w);
}

/* fs/unwatch, without waiting for the answer. */
struct unwatch {
    struct calls_request request;
};

static void unwatched(struct calls_request *r, int err, const struct json_node *result,
                      struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    free(container_of(r, struct unwatch, request));
}

static void unwatch_lost(struct calls_request *r) {
    free(container_of(r, struct unwatch, request));
}

static void send_unwatch(struct xs_watch *w) {
    struct xs_client *c = client_of(w);
    struct unwatch *u = calloc(1, sizeof(*u));
    struct params p = {.b = NULL};
    if (u != NULL)
        p.b = calls_begin(c, &u->request, w->is_missing ? "fs/watchMissing" : "fs/unwatch");
    if (p.b == NULL) {
        free(u);
        return;
    }
    u->request.done = unwatched;
    u->request.after = CALLS_ASK; /* it ends with the connection */
    u->request.lost = unwatch_lost;
    params_open(&p, NULL, '{');
    if (w->is_missing) { /* an empty one takes its place */
        params_u64(&p, "watchId", ++w->fs->files->missing_id);
        params_open(&p, "missing", '[');
        params_close(&p, ']');
    } else {
        params_strz(&p, "watchId", w->id);
    }
    params_close(&p, '}');
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (calls_send(c, &u->request, p.r, &e) < 0)
        free(u);
}

void xs_watch_free(struct xs_watch *w) {
    if (w == NULL)
        return;
    if (w->active && !w->over && !w->fs->files->ending)
        send_unwatch(w);
    watch_drop(w);
}

static void op_end(struct op *op) {
    struct watch_op *o = container_of(op, struct watch_op, op);
    if (o->watch != NULL)
        watch_drop(steal_ptr(&o->watch));
}

/* The first answer ends the operation. */
static void made(struct xs_watch *w, int err, struct xs_error *e) {
    struct watch_op *o = container_of(w->op, struct watch_op, op);
    if (err < 0) {
        op_fail_with(&o->op, e); /* frees the watch */
        return;
    }
    *w->out = steal_ptr(&o->watch);
    w->op = NULL;
    op_finish(&o->op, 0);
    if (w->n_changed > 0 || w->overflow || w->over)
        post(w);
}

static void answered(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct xs_watch *w = container_of(r, struct xs_watch, request);
    bool watching = true;
    if (err == 0 && w->is_missing && fsanswer_watching(result, &watching) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/watchMissing: a malformed answer");
    if (err == 0 && !watching && w->op != NULL)
        err = xs_error_set(e, XS_EREMOTE, "the server does not watch these paths");
    w->active = err == 0 && watching;
    if (w->op != NULL) {
        made(w, err, e);
    } else if (err < 0) {
        end(w, xs_error_text(e));
    } else if (!watching) {
        tell_missing(w); /* one of them is there now */
    } else if (!w->is_missing) {
        overflow(w);
        post(w);
    }
}

static int send_watch(struct xs_watch *w, struct xs_error *e) {
    struct xs_client *c = client_of(w);
    const char *method = w->is_missing ? "fs/watchMissing" : "fs/watch";
    struct params p = {.b = calls_begin(c, &w->request, method)};
    if (p.b == NULL)
        return xs_error_set(e, XS_ENOMEM, "%s: out of memory", method);
    w->request.done = answered;
    w->request.after = CALLS_AGAIN;
    params_open(&p, NULL, '{');
    if (w->is_missing) {
        w->number = ++w->fs->files->missing_id;
        params_u64(&p, "watchId", w->number);
        params_open(&p, "missing", '[');
        for (char **path = w->paths; *path != NULL; path++)
            params_path(&p, NULL, c, *path);
        params_close(&p, ']');
    } else {
        params_strz(&p, "watchId", w->id);
        params_path(&p, "path", c, w->path);
        params_bool(&p, "recursive", w->recursive);
        fspart_sandbox(w->fs, &p);
    }
    params_close(&p, '}');
    return calls_send(c, &w->request, p.r, e);
}

static struct xs_watch *watch_new(struct xs_fs *f, xs_watch_fn *fn, void *user) {
    struct xs_watch *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->fs = fspart_hold(f);
    w->fn = fn;
    w->user = user;
    w->changed = BUF_INIT(PATHS_BYTES_MAX);
    notice_init(&w->notice, tell);
    list_append(&f->files->watches, &w->node);
    return w;
}

static int start(struct xs_watch *w, struct xs_watch **out, struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct watch_op *o;
    int r = op_new(client_of(w), k, sizeof(*o), op_end, &o);
    if (r < 0) {
        watch_drop(w);
        return r;
    }
    o->watch = w;
    w->op = &o->op;
    w->out = out;
    r = send_watch(w, &e);
    return r < 0 ? op_refuse(&o->op, r, "%s", xs_error_text(&e)) : op_wait(&o->op);
}

int xs_watch_start(struct xs_fs *f, const char *path, unsigned flags, xs_watch_fn *fn, void *user,
                   struct xs_watch **out, struct xs_call *k) {
    struct files *files = f->files;
    struct xs_watch *w = watch_new(f, fn, user);
    if (w == NULL)
        return client_error(files->client, XS_ENOMEM, "out of memory");
    w->recursive = (flags & XS_RECURSIVE) != 0;
    snprintf(w->id, sizeof(w->id), "w%" PRIu64, ++files->next_id);
    w->path = strdup(path);
    if (w->path == NULL) {
        watch_drop(w);
        return client_error(files->client, XS_ENOMEM, "out of memory");
    }
    return start(w, out, k);
}

static int copy_paths(struct xs_watch *w, const char *const *paths, size_t n) {
    w->paths = calloc(n + 1, sizeof(*w->paths));
    if (w->paths == NULL)
        return XS_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        w->paths[i] = strdup(paths[i]);
        if (w->paths[i] == NULL)
            return XS_ENOMEM;
    }
    return 0;
}

int xs_watch_start_missing(struct xs_fs *f, const char *const *paths, xs_watch_fn *fn, void *user,
                           struct xs_watch **out, struct xs_call *k) {
    struct files *files = f->files;
    struct xs_client *c = files->client;
    size_t n = 0;
    while (n <= MISSING_MAX && paths[n] != NULL)
        n++;
    if (n == 0 || n > MISSING_MAX)
        return client_error(c, XS_EINVAL, "1 to 64 missing paths can be watched");
    if (files->missing != NULL)
        return client_error(c, XS_EBUSY, "a server watches missing paths once per client");
    if (fspart_is_confined(f))
        return client_error(c, XS_ENOTSUP, "missing paths cannot be watched in a sandbox");
    struct xs_watch *w = watch_new(f, fn, user);
    if (w == NULL)
        return client_error(c, XS_ENOMEM, "out of memory");
    w->is_missing = true;
    files->missing = w;
    if (copy_paths(w, paths, n) < 0) {
        watch_drop(w);
        return client_error(c, XS_ENOMEM, "out of memory");
    }
    return start(w, out, k);
}

/* -- resume and end -- */

void xs_watch_resumed(struct files *files) {
    list_for_each(i, &files->watches) {
        struct xs_watch *w = list_entry(i, struct xs_watch, node);
        if (!w->active || w->over)
            continue; /* its request goes out again by itself */
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        w->active = false;
        if (send_watch(w, &e) < 0)
            end(w, xs_error_text(&e));
    }
}

void xs_watch_failed(struct files *files, const struct xs_error *why) {
    list_for_each(i, &files->watches) {
        struct xs_watch *w = list_entry(i, struct xs_watch, node);
        if (w->op == NULL)
            end(w, xs_error_text(why));
    }
}
