#include "client/downtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define LISTING_MAX (64u << 20) /* bytes of the names of one walk */
#define NODES_MAX 100000        /* directories that are not complete */
#define DEPTH_MAX 512
#define WALK_DEPTH 64 /* the most that servers allow */
#define WALK_DIRECTORIES 10000
#define WALK_ENTRIES 50000

/* Beside enum fsanswer_kind: the server could not look at it; the target is its message. */
#define KIND_ERROR 9

/* A directory that is not complete. */
struct dirnode {
    struct list node;  /* in downtree.dirs, in the order of the walk */
    struct list queue; /* in downtree.queue, when it is to be walked */
    struct downtree *t;
    struct dirnode *parent; /* NULL: the root */
    char *name;             /* relative; "" the root */
    char *real;             /* when links are followed: its real path there; owned */
    unsigned pending;       /* what is under way in it */
    unsigned depth;
    bool ready, failed, made; /* made: by us */
    bool has_stat;
    struct fsanswer_stat st;
};

struct downtree {
    struct copyop c; /* first */
    char *remote, *local;
    struct localtree *tree;
    bool copying;  /* the root is known */
    bool one_walk; /* of the whole tree */
    bool walking;  /* a request for names is in flight */
    bool truncated;
    struct list dirs, queue;
    unsigned n_nodes;
    struct dirnode *root, *cursor; /* cursor: the directory of the last item, a guess */
    struct dirnode *listed;        /* the one of the listing */
    /* Names that wait. Packed: kind, name, target, each text with its NUL. */
    struct buf items;
    size_t at;
    struct calls_request request;
};

/* A directory whose metadata are asked for. */
struct dirjob {
    struct copyjob job; /* first */
    struct dirnode *dir;
    struct calls_request request;
};

struct item {
    unsigned kind; /* enum fsanswer_kind, or KIND_ERROR */
    const char *name, *target;
};

/* -- directories -- */

static void dirnode_free(struct dirnode *d) {
    d->t->n_nodes--;
    if (d->t->cursor == d)
        d->t->cursor = NULL;
    list_remove(&d->node);
    list_remove(&d->queue);
    free(d->name);
    free(d->real);
    free(d);
}

static void tree_end(struct copyop *c) {
    struct downtree *t = container_of(c, struct downtree, c);
    calls_drop(&t->request);
    while (!list_empty(&t->dirs))
        dirnode_free(list_entry(list_first(&t->dirs), struct dirnode, node));
    localtree_free(steal_ptr(&t->tree));
    buf_fini(&t->items);
    free(steal_ptr(&t->remote));
    free(steal_ptr(&t->local));
}

static const char *shown(const struct dirnode *d) {
    return d->name[0] == '\0' ? d->t->remote : d->name;
}

static void warn_local(struct downtree *t, const char *name, int r) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_sys(&e, XS_ELOCAL, -r, "%s", name);
    copyop_warn(&t->c, true, "%s", xs_error_text(&e));
}

/* Everything in it is there. */
static void settle(struct dirnode *d) {
    struct copyop *c = &d->t->c;
    if (!d->ready || !d->has_stat || !(d->made || c->preserve))
        return;
    struct localtree_traits traits = {
        .has_mode = d->made || d->st.has_mode,
        .mode = copydown_mode(c, &d->st, 0777),
        .has_time = c->preserve,
    };
    if (__builtin_mul_overflow(d->st.modified_ms, (int64_t)1000000, &traits.modified_ns))
        traits.has_time = false;
    int r = localtree_set_directory(d->t->tree, d->name, &traits);
    if (r < 0)
        warn_local(d->t, shown(d), r);
}

static void release(struct dirnode *d) {
    while (d != NULL && --d->pending == 0) {
        struct dirnode *parent = d->parent;
        settle(d);
        dirnode_free(d);
        d = parent;
    }
}

static struct dirnode *dirnode_new(struct downtree *t, struct dirnode *parent, const char *name,
                                   struct xs_error *e) {
    if (t->n_nodes == NODES_MAX || (parent != NULL && parent->depth == DEPTH_MAX)) {
        xs_error_set(e, XS_EPROTO, "%s: more directories than a copy can keep", name);
        return NULL;
    }
    struct dirnode *d = calloc(1, sizeof(*d));
    if (d == NULL || (d->name = strdup(name)) == NULL) {
        free(d);
        xs_error_set(e, XS_ENOMEM, "out of memory");
        return NULL;
    }
    d->t = t;
    d->parent = parent;
    d->pending = 1; /* its names are not read */
    if (parent != NULL) {
        parent->pending++;
        d->depth = parent->depth + 1;
    }
    t->n_nodes++;
    list_append(&t->dirs, &d->node);
    list_init(&d->queue);
    return d;
}

/* Makes it here, as narrow as it will be, but usable by its owner. */
static int make(struct dirnode *d, struct xs_error *e) {
    struct downtree *t = d->t;
    if (d->parent == NULL)
        return 0; /* it is open */
    int r = localtree_mkdir(t->tree, d->name);
    d->made = r == 0;
    if (r == 0) {
        struct localtree_traits wide = {
            .has_mode = true,
            .mode = (copydown_mode(&t->c, &d->st, 0777) & 0777) | 0700,
        };
        r = localtree_set_directory(t->tree, d->name, &wide);
    }
    return r < 0 ? xs_error_sys(e, XS_ELOCAL, -r, "%s", shown(d)) : 0;
}

static void dirjob_free(struct copyjob *j) {
    struct dirjob *o = container_of(j, struct dirjob, job);
    calls_drop(&o->request);
    free(o);
}

/* The directory can be filled, or is left out. */
static void dir_over(struct dirjob *o, int err, struct xs_error *e) {
    struct dirnode *d = o->dir;
    struct downtree *t = d->t;
    if (err == 0)
        err = make(d, e);
    d->ready = err == 0;
    d->failed = err < 0;
    if (err < 0) {
        _cleanup_free_ char *name = strdup(shown(d));
        if (!t->one_walk)
            release(d); /* nobody reads its names */
        release(d);
        copyop_job_failed(&o->job, name != NULL ? name : "", e);
        return;
    }
    if (!t->one_walk)
        list_append(&t->queue, &d->queue);
    release(d);
    copyop_done(&o->job);
}

/* With links followed a directory may be inside itself. */
static void dir_real(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct dirjob *o = container_of(r, struct dirjob, request);
    struct dirnode *d = o->dir;
    if (err == 0 && fsanswer_path(result, &d->real) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/canonicalize: a malformed answer");
    for (struct dirnode *up = d->parent; err == 0 && up != NULL; up = up->parent) {
        if (up->real != NULL && strcmp(up->real, d->real) == 0)
            err = xs_error_set(e, XS_EREMOTE, "%s: leads to a directory that it is in", shown(d));
    }
    dir_over(o, err, e);
}

static void dir_stat(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct dirjob *o = container_of(r, struct dirjob, request);
    struct dirnode *d = o->dir;
    struct copyop *c = &d->t->c;
    if (err == 0 && fsanswer_stat(result, &d->st) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    d->has_stat = err == 0;
    if (err == 0 && c->links == COPYOP_FOLLOW) {
        _cleanup_free_ char *path = copyop_join(d->t->remote, d->name);
        struct params p = {.b = NULL};
        if (path != NULL)
            p = copyop_begin(c, &o->request, "fs/canonicalize", path, NULL);
        err = copyop_send(c, &o->request, &p, dir_real, e);
        if (err == 0)
            return;
    }
    dir_over(o, err, e);
}

static int begin_dir(struct dirnode *d, struct xs_error *e) {
    struct copyop *c = &d->t->c;
    struct dirjob *o = calloc(1, sizeof(*o));
    _cleanup_free_ char *path = copyop_join(d->t->remote, d->name);
    if (o == NULL || path == NULL) {
        free(o);
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    }
    o->dir = d;
    d->pending++;
    copyop_add(c, &o->job, dirjob_free);
    struct params p = copyop_begin(c, &o->request, "fs/getMetadata", path, NULL);
    return copyop_send(c, &o->request, &p, dir_stat, e);
}

/* -- names -- */

static int add_item(struct downtree *t, unsigned kind, const char *dir, const char *name,
                    const char *target) {
    int r = buf_putc(&t->items, (char)kind);
    if (r == 0 && dir[0] != '\0' && name[0] != '\0')
        r = buf_putf(&t->items, "%s/", dir);
    else if (r == 0 && dir[0] != '\0')
        r = buf_putz(&t->items, dir);
    if (r == 0)
        r = buf_put(&t->items, name, strlen(name) + 1);
    if (r == 0)
        r = buf_put(&t->items, target, strlen(target) + 1);
    return r;
}

static int add_walked(void *user, const struct fsanswer_item *i) {
    struct downtree *t = user;
    unsigned kind = i->message != NULL ? KIND_ERROR : i->kind;
    const char *target = i->message != NULL ? i->message : i->target != NULL ? i->target : "";
    return add_item(t, kind, t->listed->name, i->name, target);
}

/* Reads an item at an offset; returns that of the next one. */
static size_t item_at(const struct buf *items, size_t at, struct item *i) {
    const char *p = items->p + at;
    i->kind = (unsigned char)p[0];
    i->name = p + 1;
    i->target = i->name + strlen(i->name) + 1;
    return (size_t)(i->target + strlen(i->target) + 1 - items->p);
}

/* A walk names no links on an older server, and none to files when it follows. fs/readDirectory
 * does, so that what it has more are those. */
struct rest {
    struct downtree *t;
    const char **known; /* names of the walk, sorted; owned */
    size_t n;
    struct buf more; /* items to add */
};

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int collect_known(struct rest *r) {
    const struct buf *items = &r->t->items;
    struct item i;
    size_t n = 0;
    for (size_t at = 0; at < items->len; at = item_at(items, at, &i))
        n++;
    r->known = calloc(n + 1, sizeof(*r->known));
    if (r->known == NULL)
        return -ENOMEM;
    for (size_t at = 0; at < items->len;) {
        at = item_at(items, at, &i);
        const char *slash = strrchr(i.name, '/');
        r->known[r->n++] = slash == NULL ? i.name : slash + 1;
    }
    qsort(r->known, r->n, sizeof(*r->known), by_text);
    return 0;
}

static int add_rest(void *user, const struct fsanswer_item *i) {
    struct rest *r = user;
    struct downtree *t = r->t;
    const char *dir = t->listed->name;
    if (bsearch(&i->name, r->known, r->n, sizeof(*r->known), by_text) != NULL)
        return 0;
    bool is_special = i->kind != FSANSWER_FILE && i->kind != FSANSWER_DIRECTORY;
    const char *slash = dir[0] != '\0' ? "/" : "";
    if (is_special)
        copyop_warn(&t->c, true, "%s%s%s: is no file, directory or link", dir, slash, i->name);
    else if (t->c.links == COPYOP_FOLLOW)
        return buf_putc(&r->more, (char)i->kind) < 0 ||
                       buf_putf(&r->more, "%s%s%s", dir, slash, i->name) < 0 ||
                       buf_put(&r->more, "\0", 2) < 0
                   ? -ENOMEM
                   : 0;
    else if (t->c.links == COPYOP_COPY)
        copyop_warn(&t->c, true, "%s%s%s: the server cannot copy links", dir, slash, i->name);
    return 0;
}

static void walked(struct downtree *t) {
    t->walking = false;
    t->at = 0;
    copyop_pump(&t->c);
}

static void have_list(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct downtree *t = container_of(req, struct downtree, request);
    struct rest rest = {.t = t, .more = BUF_INIT(LISTING_MAX)};
    if (err == XS_EREMOTE) { /* too many names, for example: they are not compared */
        copyop_warn(&t->c, true, "%s: links in it may be missing: %s", shown(t->listed),
                    xs_error_text(e));
        walked(t);
        return;
    }
    int r = err < 0 ? 0 : collect_known(&rest);
    if (err == 0 && r == 0)
        r = fsanswer_list(result, add_rest, &rest);
    if (r == 0 && rest.more.len > 0)
        r = buf_put(&t->items, rest.more.p, rest.more.len);
    free(rest.known);
    buf_fini(&rest.more);
    if (r < 0)
        err = r == -EPROTO ? xs_error_set(e, XS_EPROTO, "fs/readDirectory: a malformed answer")
                           : xs_error_set(e, XS_ENOMEM, "out of memory");
    if (err < 0)
        copyop_fail(&t->c, e);
    else
        walked(t);
}

static bool needs_list(const struct downtree *t) {
    return t->c.links == COPYOP_FOLLOW || !client_can(t->c.op.client, "fsLinks");
}

static int ask_names(struct downtree *t, struct xs_error *e);

static void have_walk(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct downtree *t = container_of(req, struct downtree, request);
    _cleanup_free_ char *root = copyop_join(t->remote, t->one_walk ? "" : t->listed->name);
    bool truncated = false;
    if (err == XS_EREMOTE && !copyop_is_fatal(err, e) && t->listed != t->root) {
        copyop_warn(&t->c, true, "%s: %s", shown(t->listed), xs_error_text(e));
        walked(t);
        return;
    }
    if (err == 0) {
        int r = root == NULL ? -ENOMEM : fsanswer_walk(result, root, add_walked, t, &truncated);
        if (r < 0)
            err = r == -EPROTO ? xs_error_set(e, XS_EPROTO, "fs/walk: a malformed answer")
                               : xs_error_set(e, XS_ENOMEM, "too many names");
    }
    if (err == 0 && truncated && t->one_walk) { /* one walk for each directory instead */
        t->one_walk = false;
        t->items.len = 0;
        err = ask_names(t, e);
        if (err == 0)
            return;
    } else if (err == 0 && truncated) {
        copyop_warn(&t->c, true, "%s: has more names than the server lists", shown(t->listed));
    }
    if (err == 0 && needs_list(t)) {
        _cleanup_free_ char *path = copyop_join(t->remote, t->listed->name);
        struct params p = {.b = NULL};
        if (path != NULL)
            p = copyop_begin(&t->c, &t->request, "fs/readDirectory", path, NULL);
        err = copyop_send(&t->c, &t->request, &p, have_list, e);
        if (err == 0)
            return;
    }
    if (err < 0)
        copyop_fail(&t->c, e);
    else
        walked(t);
}

/* Asks for the names in t->listed, or, in one walk, for all of them. */
static int ask_names(struct downtree *t, struct xs_error *e) {
    struct copyop *c = &t->c;
    _cleanup_free_ char *path = copyop_join(t->remote, t->listed->name);
    if (path == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    struct params p = copyop_begin(c, &t->request, "fs/walk", path, NULL);
    if (p.b != NULL) {
        params_open(&p, "options", '{');
        params_u64(&p, "maxDepth", t->one_walk ? WALK_DEPTH : 0);
        params_u64(&p, "maxDirectories", t->one_walk ? WALK_DIRECTORIES : 1);
        params_u64(&p, "maxEntries", WALK_ENTRIES);
        params_bool(&p, "followDirectorySymlinks", c->links == COPYOP_FOLLOW);
        if (!needs_list(t))
            params_bool(&p, "links", true);
        params_close(&p, '}');
    }
    t->items.len = 0;
    t->at = 0;
    int r = copyop_send(c, &t->request, &p, have_walk, e);
    t->walking = r == 0;
    return r;
}

/* -- items -- */

/* Whether `name` is an entry of the directory. */
static bool is_in(const struct dirnode *d, const char *name) {
    const char *slash = strrchr(name, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - name);
    return strlen(d->name) == n && memcmp(d->name, name, n) == 0;
}

/* The directory of an item. In one walk the names of a directory follow each other, in the order of
 * the directories. */
static struct dirnode *directory_of(struct downtree *t, const char *name) {
    if (!t->one_walk)
        return t->listed;
    struct list *from = t->cursor == NULL ? t->dirs.next : &t->cursor->node;
    for (int round = 0; round < 2; round++, from = t->dirs.next) {
        for (struct list *i = from; i != &t->dirs; i = i->next) {
            struct dirnode *d = list_entry(i, struct dirnode, node);
            if (is_in(d, name)) {
                t->cursor = d;
                return d;
            }
        }
    }
    return NULL;
}

static void file_over(void *user) {
    release(user);
}

static int begin_file(struct dirnode *d, const char *name, struct xs_error *e) {
    struct downtree *t = d->t;
    int dir;
    const char *leaf;
    _cleanup_free_ char *path = copyop_join(t->remote, name);
    if (path == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    int r = localtree_parent(t->tree, name, &dir, &leaf);
    if (r < 0) {
        warn_local(t, name, r);
        return 0;
    }
    struct copydown_file f = {
        .remote = path, .shown = name, .dir = dir, .leaf = leaf, .done = file_over, .user = d};
    d->pending++;
    return copydown_start(&t->c, &f, e);
}

static void make_link(struct downtree *t, const struct item *i) {
    if (t->c.links == COPYOP_SKIP)
        return;
    if (i->target[0] == '\0') {
        copyop_warn(&t->c, true, "%s: the server does not tell where the link leads", i->name);
        return;
    }
    int r = localtree_symlink(t->tree, i->name, i->target);
    if (r < 0)
        warn_local(t, i->name, r);
    else
        copyop_file(&t->c);
}

static int new_dir(struct dirnode *parent, const char *name, struct xs_error *e) {
    struct dirnode *d = dirnode_new(parent->t, parent, name, e);
    if (d == NULL)
        return e->code;
    d->failed = parent->failed;
    return d->failed ? 0 : begin_dir(d, e);
}

/* Begins one item. 1: begun, or done with; 0: its directory is not ready; or a failure. */
static int begin_item(struct downtree *t, const struct item *i, struct xs_error *e) {
    int r = 0;
    if (i->kind == KIND_ERROR) {
        copyop_warn(&t->c, true, "%s: %s", i->name[0] != '\0' ? i->name : t->remote, i->target);
        return 1;
    }
    struct dirnode *d = directory_of(t, i->name);
    if (d == NULL)
        return xs_error_set(e, XS_EPROTO, "fs/walk: %s comes without its directory", i->name);
    if (!d->ready && !d->failed)
        return 0;
    if (i->kind == FSANSWER_DIRECTORY)
        r = new_dir(d, i->name, e);
    else if (d->failed)
        return 1;
    else if (i->kind == FSANSWER_LINK)
        make_link(t, i);
    else if (i->kind == FSANSWER_FILE)
        r = begin_file(d, i->name, e);
    else
        copyop_warn(&t->c, true, "%s: is no file, directory or link", i->name);
    return r < 0 ? r : 1;
}

/* The names are all begun. */
static void listing_over(struct downtree *t) {
    buf_fini(&t->items);
    t->at = 0;
    struct dirnode *d = t->listed;
    t->listed = NULL;
    if (!t->one_walk) {
        release(d);
        return;
    }
    /* From the last one: a directory comes behind the one that it is in, which it keeps. */
    for (struct list *i = t->dirs.prev; i != &t->dirs;) {
        d = list_entry(i, struct dirnode, node);
        i = i->prev;
        release(d);
    }
}

/* 1: go on; 0: wait; or a failure. */
static int step(struct downtree *t, struct xs_error *e) {
    if (t->walking || t->c.n_warnings >= COPYOP_WARNINGS_MAX)
        return 0;
    if (t->listed != NULL && t->at < t->items.len) {
        struct item i;
        size_t next = item_at(&t->items, t->at, &i);
        if (!copyop_has_room(&t->c, 0))
            return 0;
        int r = begin_item(t, &i, e);
        if (r > 0)
            t->at = next;
        return r;
    }
    if (t->listed != NULL) {
        listing_over(t);
        return 1;
    }
    if (list_empty(&t->queue))
        return 0;
    /* The last one: so few of them wait. */
    t->listed = list_entry(t->queue.prev, struct dirnode, queue);
    list_remove(&t->listed->queue);
    return ask_names(t, e);
}

static bool more(struct copyop *c) {
    struct downtree *t = container_of(c, struct downtree, c);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    int r = 1;
    while (t->copying && r > 0)
        r = step(t, &e);
    if (r < 0) {
        copyop_fail(c, &e);
        return false;
    }
    return !t->copying || t->walking || t->listed != NULL || !list_empty(&t->queue);
}

/* -- the root -- */

/* A local name that is a link stands for what it leads to. */
static char *resolved(const char *path) {
    struct stat st;
    char *real = NULL;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        real = realpath(path, NULL);
    return real != NULL ? real : strdup(path);
}

static int begin_single(struct downtree *t, const struct fsanswer_stat *st, struct xs_error *e) {
    _cleanup_free_ char *path = resolved(t->local);
    if (path == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    char *slash = strrchr(path, '/');
    const char *leaf = slash == NULL ? path : slash + 1;
    if (leaf[0] == '\0' || strcmp(leaf, ".") == 0 || strcmp(leaf, "..") == 0)
        return xs_error_sys(e, XS_ELOCAL, EISDIR, "%s", t->local);
    const char *parent = slash == NULL ? "." : slash == path ? "/" : path;
    if (slash != NULL && slash != path)
        *slash = '\0';
    _cleanup_close_ int dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", parent);
    struct copydown_file f = {
        .remote = t->remote, .shown = t->local, .dir = dir, .leaf = leaf, .st = st};
    t->copying = true;
    t->c.meter.files_total = 1;
    return copydown_start(&t->c, &f, e);
}

static int begin_tree(struct downtree *t, const struct fsanswer_stat *st, struct xs_error *e) {
    if (!t->c.recursive)
        return xs_error_set(e, XS_EINVAL, "%s: is a directory", t->remote);
    bool made = mkdir(t->local, 0700) == 0;
    if (!made && errno != EEXIST)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", t->local);
    int fd = open(t->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", t->local);
    t->tree = localtree_new(fd);
    t->root = t->tree == NULL ? NULL : dirnode_new(t, NULL, "", e);
    if (t->root == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    t->root->made = made;
    t->root->has_stat = true;
    t->root->st = *st;
    struct localtree_traits wide = {.has_mode = true,
                                    .mode = (copydown_mode(&t->c, st, 0777) & 0777) | 0700};
    int r = made ? localtree_set(fd, &wide) : 0;
    if (r < 0)
        return xs_error_sys(e, XS_ELOCAL, -r, "%s", t->local);
    t->c.in_tree = true;
    t->copying = true;
    t->one_walk = !needs_list(t);
    if (t->c.links == COPYOP_FOLLOW)
        return begin_dir(t->root, e); /* its real path is needed, and then its names */
    t->root->ready = true;
    t->listed = t->root;
    return ask_names(t, e);
}

static void have_root(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct downtree *t = container_of(req, struct downtree, request);
    struct fsanswer_stat st;
    if (err == 0 && fsanswer_stat(result, &st) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    if (err == 0 && st.kind == FSANSWER_DIRECTORY)
        err = begin_tree(t, &st, e);
    else if (err == 0)
        err = begin_single(t, &st, e);
    if (err < 0)
        copyop_fail(&t->c, e);
    else
        copyop_pump(&t->c);
}

int downtree_run(struct xs_client *client, const char *remote, const char *local,
                 const struct xs_options *o, xs_progress_fn *progress, void *user,
                 struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct downtree *t;
    int r = copyop_new(client, o, sizeof(*t), progress, user, k, &t);
    if (r < 0)
        return r;
    list_init(&t->dirs);
    list_init(&t->queue);
    t->items = BUF_INIT(LISTING_MAX);
    t->c.more = more;
    t->c.end = tree_end;
    t->local = strdup(local);
    r = t->local == NULL ? XS_ENOMEM : fspart_path(client, remote, &t->remote, &e);
    if (r == 0) {
        struct params p = copyop_begin(&t->c, &t->request, "fs/getMetadata", t->remote, NULL);
        r = copyop_send(&t->c, &t->request, &p, have_root, &e);
    }
    return r < 0 ? op_refuse(&t->c.op, r, "%s", xs_error_text(&e)) : op_wait(&t->c.op);
}
