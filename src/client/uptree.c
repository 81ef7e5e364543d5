#include "client/uptree.h"

#include "client/fsanswer.h"
#include "client/localwalk.h"
#include "client/partnote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define USUAL_MODE 0755

enum phase { ASKING, MAKING, COPYING, SETTLING, ENDED };

struct uptree {
    struct copyop c; /* first */
    char *local, *remote;
    int source; /* the local file or directory; owned */
    struct localwalk *walk;
    struct localwalk_item item; /* begun next, if has_item */
    bool has_item;
    enum phase phase;
    bool fresh; /* nothing was there */
    bool made;  /* the root directory is there */
    bool asked; /* ... is being made */
    struct calls_request request;
};

/* A directory or link: a chain of requests about one path. */
struct upjob {
    struct copyjob job; /* first */
    struct uptree *t;
    char *path, *shown; /* there; for the user */
    char *target;       /* of a link */
    char *part;         /* what a link is renamed from */
    mode_t mode;
    int64_t modified_ms;
    struct calls_request request;
    void (*then)(struct upjob *o, int err, struct xs_error *e);
};

static void tree_end(struct copyop *c) {
    struct uptree *t = container_of(c, struct uptree, c);
    calls_drop(&t->request);
    localwalk_free(steal_ptr(&t->walk));
    util_close_fd(&t->source);
    free(steal_ptr(&t->local));
    free(steal_ptr(&t->remote));
}

static void job_free(struct copyjob *j) {
    struct upjob *o = container_of(j, struct upjob, job);
    calls_drop(&o->request);
    free(o->path);
    free(o->shown);
    free(o->target);
    free(o->part);
    free(o);
}

static int64_t ms_of(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static struct upjob *job_new(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    struct upjob *o = calloc(1, sizeof(*o));
    if (o == NULL) {
        xs_error_set(e, XS_ENOMEM, "out of memory");
        return NULL;
    }
    o->t = t;
    o->path = copyop_join(t->remote, i->name);
    o->shown = strdup(i->name[0] != '\0' ? i->name : t->local);
    o->mode = i->st.st_mode;
    o->modified_ms = ms_of(&i->st);
    copyop_add(&t->c, &o->job, job_free);
    if (o->path == NULL || o->shown == NULL) {
        xs_error_set(e, XS_ENOMEM, "out of memory");
        return NULL;
    }
    return o;
}

static void job_answered(struct calls_request *r, int err, const struct json_node *result,
                         struct xs_error *e) {
    struct upjob *o = container_of(r, struct upjob, request);
    (void)result;
    o->then(o, err, e);
}

static void job_send(struct upjob *o, struct params *p,
                     void (*then)(struct upjob *, int, struct xs_error *)) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    o->then = then;
    if (copyop_send(&o->t->c, &o->request, p, job_answered, &e) < 0)
        copyop_job_failed(&o->job, o->shown, &e);
}

static void job_over(struct upjob *o, int err, struct xs_error *e) {
    if (err < 0)
        copyop_job_failed(&o->job, o->shown, e);
    else
        copyop_done(&o->job);
}

static bool can(const struct uptree *t, const char *capability) {
    return client_can(t->c.op.client, capability);
}

/* -- directories -- */

static bool can_set_mode(struct uptree *t) {
    if (can(t, "fsSetPermissions"))
        return true;
    if (t->c.preserve)
        copyop_warn_once(&t->c, COPYOP_NO_MODE, "the server cannot set permissions");
    return false;
}

static void send_mode(struct upjob *o, unsigned mode,
                      void (*then)(struct upjob *, int, struct xs_error *)) {
    struct params p = copyop_begin(&o->t->c, &o->request, "fs/setPermissions", o->path, NULL);
    if (p.b != NULL)
        params_u64(&p, "mode", mode);
    job_send(o, &p, then);
}

/* What is private here is private there before anything is in it. */
static void made(struct upjob *o, int err, struct xs_error *e) {
    struct uptree *t = o->t;
    unsigned mode = copyup_mode(&t->c, o->mode) & 0777;
    if (!t->made && err < 0 && e->os == EEXIST)
        err = 0; /* what cannot be filled fails later */
    if (!t->made && err < 0) {
        copyop_fail(&t->c, e);
        return;
    }
    t->made = true;
    if (err == 0 && (t->fresh || t->c.preserve) && mode != USUAL_MODE && can_set_mode(t))
        send_mode(o, mode | 0700, job_over);
    else
        job_over(o, err, e);
}

static int make(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    struct upjob *o = job_new(t, i, e);
    if (o == NULL)
        return e->code;
    struct params p = copyop_begin(&t->c, &o->request, "fs/createDirectory", o->path, NULL);
    if (p.b != NULL) /* parents may be on their way */
        params_bool(&p, "recursive", i->name[0] != '\0');
    t->asked = true;
    job_send(o, &p, made);
    return 1;
}

static void have_mode(struct upjob *o, int err, struct xs_error *e) {
    struct uptree *t = o->t;
    if (err < 0 || !t->c.preserve) {
        job_over(o, err, e);
        return;
    }
    if (!can(t, "fsTimes")) {
        copyop_warn_once(&t->c, COPYOP_NO_TIMES, "the server cannot set times");
        job_over(o, 0, e);
        return;
    }
    struct params p = copyop_begin(&t->c, &o->request, "fs/setTimes", o->path, NULL);
    if (p.b != NULL)
        params_i64(&p, "modifiedAtMs", o->modified_ms);
    job_send(o, &p, job_over);
}

static int settle(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    unsigned mode = copyup_mode(&t->c, i->st.st_mode);
    bool sets_mode = (t->fresh || t->c.preserve) && mode != (mode | 0700) && can_set_mode(t);
    if (!t->c.preserve && !sets_mode)
        return 1;
    /* Behind a directory without a way in nothing can be set: all else comes first. */
    if (sets_mode && t->c.n_jobs > 0)
        return 0;
    struct upjob *o = job_new(t, i, e);
    if (o == NULL)
        return e->code;
    if (t->c.preserve ? can_set_mode(t) : sets_mode)
        send_mode(o, mode, have_mode);
    else
        have_mode(o, 0, e);
    return 1;
}

/* -- links -- */

static void link_over(struct upjob *o, int err, struct xs_error *e) {
    if (err == 0)
        copyop_file(&o->t->c);
    job_over(o, err, e);
}

static void link_made(struct upjob *o, int err, struct xs_error *e) {
    if (err < 0 && !(e->rpc != 0 && e->os == EEXIST)) {
        job_over(o, err, e);
        return;
    }
    struct params p = copyop_begin(&o->t->c, &o->request, "fs/rename", o->part, o->path);
    job_send(o, &p, link_over);
}

static void send_link(struct upjob *o, const char *path,
                      void (*then)(struct upjob *, int, struct xs_error *)) {
    struct params p = copyop_begin(&o->t->c, &o->request, "fs/symlink", path, NULL);
    if (p.b != NULL)
        params_base64(&p, "targetBase64", o->target, strlen(o->target));
    job_send(o, &p, then);
}

/* Something has the name: another link takes its place. */
static void link_tried(struct upjob *o, int err, struct xs_error *e) {
    if (err == 0 || e->os != EEXIST) {
        link_over(o, err, e);
        return;
    }
    char token[PARTNOTE_TOKEN_LEN + 1], name[PARTNOTE_NAME_MAX + 1];
    const char *slash = strrchr(o->path, '/');
    partnote_token(token);
    partnote_part_name(str_of(slash + 1), token, name);
    if (asprintf(&o->part, "%.*s/%s", (int)(slash - o->path), o->path, name) < 0) {
        o->part = NULL;
        xs_error_set(e, XS_ENOMEM, "out of memory");
        job_over(o, XS_ENOMEM, e);
        return;
    }
    send_link(o, o->part, link_made);
}

static int copy_link(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    char target[4097];
    if (t->c.links == COPYOP_SKIP)
        return 1;
    if (!can(t, "fsLinks")) {
        copyop_warn(&t->c, true, "%s: the server cannot make links", i->name);
        return 1;
    }
    ssize_t n = readlinkat(i->dir, i->leaf, target, sizeof(target) - 1);
    if (n < 0) {
        _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
        xs_error_sys(&why, XS_ELOCAL, errno, "%s", i->name);
        copyop_warn(&t->c, true, "%s", xs_error_text(&why));
        return 1;
    }
    target[n] = '\0';
    struct upjob *o = job_new(t, i, e);
    if (o == NULL)
        return e->code;
    o->target = strdup(target);
    if (o->target == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    send_link(o, o->path, link_tried);
    return 1;
}

/* -- files -- */

static int copy_file(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    /* Not through a link that has taken its place, unless links are followed. */
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (i->is_link ? 0 : O_NOFOLLOW);
    int fd = openat(i->dir, i->leaf, flags);
    if (fd < 0) {
        _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT;
        xs_error_sys(&why, XS_ELOCAL, errno, "%s", i->name);
        copyop_warn(&t->c, true, "%s", xs_error_text(&why));
        return 1;
    }
    _cleanup_free_ char *path = copyop_join(t->remote, i->name);
    if (path == NULL) {
        close(fd);
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    }
    struct copyup_file f = {.fd = fd, .remote = path, .shown = i->name, .fresh = t->fresh};
    int r = copyup_start(&t->c, &f, e);
    return r < 0 ? r : 1;
}

/* -- the walks -- */

static void warn_fault(struct uptree *t, const struct localwalk_item *i) {
    const char *name = i->name[0] != '\0' ? i->name : t->local;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (i->error == ELOOP)
        xs_error_set(&e, XS_ELOCAL, "%s: leads to a directory that it is in", name);
    else if (i->error == EMFILE)
        xs_error_set(&e, XS_ELOCAL, "%s: is too deep", name);
    else
        xs_error_sys(&e, XS_ELOCAL, i->error, "%s", name);
    copyop_warn(&t->c, true, "%s", xs_error_text(&e));
}

static bool is_file(const struct localwalk_item *i) {
    return S_ISREG(i->st.st_mode);
}

/* Counts on the first walk, which also makes the directories. */
static int first_walk(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    if (i->what == LOCALWALK_FAULT) {
        warn_fault(t, i);
        return 1;
    }
    if (i->what != LOCALWALK_ENTRY)
        return 1;
    if (is_file(i))
        t->c.meter.total += (uint64_t)i->st.st_size;
    if (is_file(i) || S_ISLNK(i->st.st_mode))
        t->c.meter.files_total++;
    return S_ISDIR(i->st.st_mode) ? make(t, i, e) : 1;
}

static int second_walk(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    if (i->what != LOCALWALK_ENTRY || S_ISDIR(i->st.st_mode))
        return 1;
    if (S_ISLNK(i->st.st_mode))
        return copy_link(t, i, e);
    if (is_file(i))
        return copy_file(t, i, e);
    copyop_warn(&t->c, true, "%s: is no file, directory or link", i->name);
    return 1;
}

static int visit(struct uptree *t, const struct localwalk_item *i, struct xs_error *e) {
    if (t->phase == MAKING)
        return first_walk(t, i, e);
    if (t->phase == COPYING)
        return second_walk(t, i, e);
    return i->what == LOCALWALK_LEAVE ? settle(t, i, e) : 1;
}

static int next_phase(struct uptree *t, struct xs_error *e) {
    localwalk_free(steal_ptr(&t->walk));
    t->phase++;
    if (t->phase == ENDED)
        return 0;
    int fd = openat(t->source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", t->local);
    t->walk = localwalk_new(fd, t->c.links == COPYOP_FOLLOW);
    return t->walk == NULL ? xs_error_set(e, XS_ENOMEM, "out of memory") : 1;
}

/* 1: go on; 0: wait; or a failure. */
static int step(struct uptree *t, struct xs_error *e) {
    if (t->phase == ASKING || t->phase == ENDED)
        return 0;
    if (!t->has_item) {
        if (localwalk_next(t->walk, &t->item) < 0)
            return xs_error_set(e, XS_ENOMEM, "out of memory");
        t->has_item = true;
    }
    if (t->item.what == LOCALWALK_END) {
        if (t->c.n_jobs > 0)
            return 0;
        t->has_item = false;
        return next_phase(t, e);
    }
    bool has_data = t->phase == COPYING && is_file(&t->item);
    uint64_t size = has_data ? MAX((uint64_t)t->item.st.st_size, 1) : 1;
    /* The root directory comes first: the others would make it, and its parents. */
    if (!copyop_has_room(&t->c, size) || (t->asked && !t->made))
        return 0;
    int r = visit(t, &t->item, e);
    if (r > 0)
        t->has_item = false;
    return r;
}

static bool more(struct copyop *c) {
    struct uptree *t = container_of(c, struct uptree, c);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    int r;
    do
        r = step(t, &e);
    while (r > 0 && !c->failed);
    if (r < 0) {
        copyop_fail(c, &e);
        return false;
    }
    return t->phase != ENDED;
}

/* -- the root -- */

static int begin_single(struct uptree *t, struct xs_error *e) {
    struct stat st;
    if (fstat(t->source, &st) < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", t->local);
    if (!S_ISREG(st.st_mode))
        return xs_error_set(e, XS_EINVAL, "%s: is not a regular file", t->local);
    t->phase = ENDED;
    t->c.meter.total = (uint64_t)st.st_size;
    t->c.meter.files_total = 1;
    struct copyup_file f = {
        .fd = steal_fd(&t->source), .remote = t->remote, .shown = t->local, .fresh = t->fresh};
    return copyup_start(&t->c, &f, e);
}

static int begin_tree(struct uptree *t, struct xs_error *e) {
    if (!t->c.recursive)
        return xs_error_set(e, XS_EINVAL, "%s: is a directory", t->local);
    t->c.in_tree = true;
    int r = next_phase(t, e);
    return r < 0 ? r : 0;
}

static int begin(struct uptree *t, struct xs_error *e) {
    struct stat st;
    if (fstat(t->source, &st) < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", t->local);
    return S_ISDIR(st.st_mode) ? begin_tree(t, e) : begin_single(t, e);
}

/* The name is a link: the part belongs beside what it leads to. */
static void have_real(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct uptree *t = container_of(req, struct uptree, request);
    char *real = NULL;
    if (err == 0 && fsanswer_path(result, &real) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/canonicalize: a malformed answer");
    if (err == 0) {
        free(t->remote);
        t->remote = real;
        err = begin(t, e);
    }
    if (err < 0)
        copyop_fail(&t->c, e);
    else
        copyop_pump(&t->c);
}

static void have_root(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct uptree *t = container_of(req, struct uptree, request);
    struct fsanswer_stat st;
    struct copyop *c = &t->c;
    t->fresh = err == XS_EREMOTE && (e->rpc == -32004 || e->os == ENOENT);
    if (t->fresh)
        err = 0;
    else if (err == 0 && fsanswer_stat(result, &st) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    if (err == 0 && !t->fresh && st.is_link) {
        struct params p = copyop_begin(c, &t->request, "fs/canonicalize", t->remote, NULL);
        err = copyop_send(c, &t->request, &p, have_real, e);
        if (err == 0)
            return;
    }
    if (err == 0)
        err = begin(t, e);
    if (err < 0)
        copyop_fail(c, e);
    else
        copyop_pump(c);
}

int uptree_run(struct xs_client *client, const char *local, const char *remote,
               const struct xs_options *o, xs_progress_fn *progress, void *user,
               struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct uptree *t;
    int r = copyop_new(client, o, sizeof(*t), progress, user, k, &t);
    if (r < 0)
        return r;
    t->c.more = more;
    t->c.end = tree_end;
    t->source = open(local, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (t->source < 0) {
        xs_error_sys(&e, XS_ELOCAL, errno, "%s", local);
        return op_refuse(&t->c.op, XS_ELOCAL, "%s", xs_error_text(&e));
    }
    t->local = strdup(local);
    r = t->local == NULL ? XS_ENOMEM : fspart_path(client, remote, &t->remote, &e);
    if (r == 0) {
        struct params p = copyop_begin(&t->c, &t->request, "fs/getMetadata", t->remote, NULL);
        r = copyop_send(&t->c, &t->request, &p, have_root, &e);
    }
    return r < 0 ? op_refuse(&t->c.op, r, "%s", xs_error_text(&e)) : op_wait(&t->c.op);
}
