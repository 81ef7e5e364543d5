#include "fs/fs_watch.h"

#include <errno.h>
#include <limits.h>
#include <sys/inotify.h>

/* Directories that one scan begins with, at most. */
#define WATCH_BATCH 256

/* The path of a directory that could be watched, and a name in it. */
#define WATCH_PATH_SIZE (PATH_MAX + NAME_MAX + 2)

/* A directory of a watch: scanned, or waiting for it. */
struct fs_watch_dir {
    struct fs_watch_dir *chain; /* in by_wd */
    struct hash_node named;     /* in by_name, unless it is the top */
    struct list sibling, children;
    struct list fresh; /* in set->fresh */
    struct fs_watch *watch;
    struct fs_watch_dir *parent; /* NULL: the top */
    uint64_t event;              /* number of the last event it has heard of */
    int wd;                      /* -1: not watched */
    size_t n;                    /* bytes of its name; the top has none */
    char key[];                  /* bytes of `parent`, then the name */
};

#define WATCH_KEY_HEAD sizeof(struct fs_watch_dir *)

/* -- the trees -- */

static struct fs_watch_dir **watch_bucket(const struct fs_watch_set *s, int wd) {
    return &s->by_wd[(unsigned)wd % FS_WATCH_BUCKETS];
}

static void watch_set_wd(struct fs_watch_dir *d, int wd) {
    struct fs_watch_set *s = d->watch->set;
    if (d->wd >= 0) {
        struct fs_watch_dir **p = watch_bucket(s, d->wd);
        while (*p != d)
            p = &(*p)->chain;
        *p = d->chain;
    }
    d->wd = wd;
    if (wd >= 0) {
        d->chain = *watch_bucket(s, wd);
        *watch_bucket(s, wd) = d;
    }
}

static bool watch_knows_wd(const struct fs_watch_set *s, int wd) {
    const struct fs_watch_dir *d = s->by_wd != NULL ? *watch_bucket(s, wd) : NULL;
    while (d != NULL && d->wd != wd)
        d = d->chain;
    return d != NULL;
}

static struct fs_watch_dir *watch_child(const struct fs_watch_dir *d, struct str name) {
    char key[WATCH_KEY_HEAD + NAME_MAX + 1];
    if (name.n > NAME_MAX)
        return NULL;
    memcpy(key, &d, WATCH_KEY_HEAD);
    memcpy(key + WATCH_KEY_HEAD, name.p, name.n);
    struct hash_node *n =
        hash_find(&d->watch->set->by_name, (struct str){key, WATCH_KEY_HEAD + name.n});
    return n ? container_of(n, struct fs_watch_dir, named) : NULL;
}

/* A new directory, of which nothing is known; `parent` NULL: the top of w. NULL: no memory. */
static struct fs_watch_dir *watch_dir_new(struct fs_watch *w, struct fs_watch_dir *parent,
                                          struct str name) {
    struct fs_watch_set *s = w->set;
    if (s->by_wd == NULL && (s->by_wd = calloc(FS_WATCH_BUCKETS, sizeof(void *))) == NULL)
        return NULL;
    struct fs_watch_dir *d = calloc(1, sizeof *d + WATCH_KEY_HEAD + name.n + 1);
    if (d == NULL)
        return NULL;
    *d = (struct fs_watch_dir){.watch = w, .parent = parent, .wd = -1, .n = name.n};
    list_init(&d->sibling);
    list_init(&d->children);
    list_init(&d->fresh);
    memcpy(d->key, &parent, WATCH_KEY_HEAD);
    if (parent == NULL) {
        w->top = d;
    } else {
        memcpy(d->key + WATCH_KEY_HEAD, name.p, name.n);
        if (hash_add(&s->by_name, &d->named, (struct str){d->key, WATCH_KEY_HEAD + d->n}) < 0) {
            free(d);
            return NULL;
        }
        list_append(&parent->children, &d->sibling);
    }
    s->dirs++;
    return d;
}

/* The kernel may forget the directory, unless another watch has it. */
static void watch_unuse(struct fs_watch_set *s, int wd) {
    if (watch_knows_wd(s, wd) || buf_put(&s->unused, &wd, sizeof wd) == 0)
        return;
    /* No memory: its events go unheard until the next scan finds it. */
}

/* Frees one that has no children. */
static void watch_dir_free(struct fs_watch_dir *d, bool exists) {
    struct fs_watch_set *s = d->watch->set;
    int wd = d->wd;
    watch_set_wd(d, -1);
    if (exists && wd >= 0)
        watch_unuse(s, wd);
    if (d->parent != NULL)
        hash_remove(&s->by_name, &d->named);
    else
        d->watch->top = NULL;
    list_remove(&d->sibling);
    list_remove(&d->fresh);
    s->dirs--;
    free(d);
}

/* Frees d and all below. `exists`: they may still exist elsewhere, so their watches must go. */
static void watch_tree_free(struct fs_watch_dir *d, bool exists) {
    for (struct fs_watch_dir *at = d, *up; at != NULL; at = up) {
        struct list *child = list_first(&at->children);
        if (child != NULL) {
            up = list_entry(child, struct fs_watch_dir, sibling);
        } else {
            up = at == d ? NULL : at->parent;
            watch_dir_free(at, exists);
        }
    }
}

/* -- changes -- */

static void watch_forget(struct fs_watch *w) {
    for (struct list *n; (n = list_first(&w->changes)) != NULL;) {
        struct fs_watch_change *c = list_entry(n, struct fs_watch_change, order);
        list_remove(n);
        w->set->bytes -= c->node.key.n;
        free(c);
    }
    hash_fini(&w->changed);
}

static void watch_overflow(struct fs_watch *w) {
    watch_forget(w);
    w->overflow = true;
}

static void watch_changed(struct fs_watch *w, struct str path) {
    struct fs_watch_set *s = w->set;
    if (w->overflow || hash_find(&w->changed, path) != NULL)
        return;
    struct fs_watch_change *c = NULL;
    if (w->changed.count < FS_WATCH_PATHS_MAX && path.n <= FS_WATCH_BYTES_MAX - s->bytes)
        c = malloc(sizeof *c + path.n);
    if (c != NULL) {
        memcpy(c->path, path.p, path.n);
        if (hash_add(&w->changed, &c->node, (struct str){c->path, path.n}) == 0) {
            list_append(&w->changes, &c->order);
            s->bytes += path.n;
            return;
        }
        free(c);
    }
    watch_overflow(w);
}

/* The path of the directory at the top. */
static struct str watch_top_path(const struct fs_watch *w) {
    size_t n = w->leaf != NULL ? (size_t)(w->leaf - w->root) - 1 : strlen(w->root);
    return n == 0 ? STR_LIT("/") : (struct str){w->root, n};
}

/* The path of a name in a directory, or of the directory, in buf. n 0: too long. */
static struct str watch_path(const struct fs_watch_dir *d, struct str name,
                             char buf[WATCH_PATH_SIZE]) {
    const struct str none = {NULL, 0}, top = watch_top_path(d->watch);
    size_t at = WATCH_PATH_SIZE;
    for (;;) {
        if (name.n + 1 > at)
            return none;
        if (name.n > 0) {
            at -= name.n + 1;
            buf[at] = '/';
            memcpy(buf + at + 1, name.p, name.n);
        }
        if (d->parent == NULL)
            break;
        name = (struct str){d->key + WATCH_KEY_HEAD, d->n};
        d = d->parent;
    }
    if (top.n == 1 && at < WATCH_PATH_SIZE)
        return (struct str){buf + at, WATCH_PATH_SIZE - at};
    if (top.n > at)
        return none;
    at -= top.n;
    memcpy(buf + at, top.p, top.n);
    return (struct str){buf + at, WATCH_PATH_SIZE - at};
}

static void watch_changed_in(const struct fs_watch_dir *d, struct str name) {
    char buf[WATCH_PATH_SIZE];
    struct str path = watch_path(d, name, buf);
    if (path.n > 0)
        watch_changed(d->watch, path);
    else
        watch_overflow(d->watch);
}

/* -- events -- */

/* A directory has appeared: it waits to be scanned. */
static void watch_enter(struct fs_watch_dir *parent, struct str name) {
    struct fs_watch *w = parent->watch;
    struct fs_watch_dir *d = NULL;
    if (w->set->dirs < FS_WATCH_DIRS_MAX)
        d = watch_dir_new(w, parent, name);
    if (d != NULL)
        list_append(&w->set->fresh, &d->fresh);
    else
        watch_overflow(w);
}

/* An event of a directory itself. */
static void watch_on_self(struct fs_watch_dir *d, uint32_t mask) {
    bool top = d->parent == NULL;
    if (top && (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) {
        watch_changed(d->watch, str_of(d->watch->root)); /* the last that its watch tells */
        watch_tree_free(d, (mask & IN_MOVE_SELF) != 0);
        return;
    }
    if ((mask & (IN_ATTRIB | IN_UNMOUNT)) != 0 && !(top && d->watch->leaf != NULL))
        watch_changed_in(d, (struct str){NULL, 0});
    if ((mask & IN_UNMOUNT) != 0) { /* uncovers what is below the mount */
        struct fs_watch_dir *parent = d->parent;
        char name[NAME_MAX + 1];
        size_t n = MIN(d->n, (size_t)NAME_MAX);
        memcpy(name, d->key + WATCH_KEY_HEAD, n);
        watch_tree_free(d, false);
        watch_enter(parent, (struct str){name, n});
    } else if ((mask & IN_IGNORED) != 0) {
        watch_set_wd(d, -1);
    }
}

/* A name in a recursive watch is that of a directory: the tree changes. */
static void watch_on_dir(struct fs_watch_dir *d, uint32_t mask, struct str name) {
    struct fs_watch_dir *child = watch_child(d, name);
    bool comes = (mask & (IN_CREATE | IN_MOVED_TO)) != 0;
    bool goes = (mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
    /* The event of making may come after a scan has found it. */
    if (child != NULL && (mask & (IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) != 0)
        watch_tree_free(child, (mask & IN_DELETE) == 0);
    else if (child != NULL)
        comes = false;
    if (comes && !goes)
        watch_enter(d, name);
}

static void watch_on_name(struct fs_watch_dir *d, uint32_t mask, struct str name) {
    struct fs_watch *w = d->watch;
    if (w->leaf != NULL) {
        if (str_eqz(name, w->leaf))
            watch_changed(w, str_of(w->root));
        return;
    }
    if (name.n <= NAME_MAX)
        watch_changed_in(d, name);
    else
        watch_overflow(w);
    if (w->recursive && (mask & IN_ISDIR) != 0 && name.n <= NAME_MAX)
        watch_on_dir(d, mask, name);
}

void fs_watch_lose(struct fs_watch *w) {
    watch_overflow(w);
    w->lost = true;
}

/* The kernel's queue was full. */
static void watch_on_lost(struct fs_watch_set *s) {
    list_for_each(n, &s->watches) {
        struct fs_watch *w = list_entry(n, struct fs_watch, node);
        watch_overflow(w);
        w->lost |= w->top != NULL;
    }
}

/* Several directories may have one number: a directory with two names, or in two watches. */
static struct fs_watch_dir *watch_next_heard(const struct fs_watch_set *s, int wd) {
    struct fs_watch_dir *d = wd >= 0 && s->by_wd != NULL ? *watch_bucket(s, wd) : NULL;
    while (d != NULL && (d->wd != wd || d->event == s->events))
        d = d->chain;
    return d;
}

static void watch_on_event(struct fs_watch_set *s, const struct inotify_event *ev,
                           struct str name) {
    s->events++;
    if ((ev->mask & IN_Q_OVERFLOW) != 0) {
        watch_on_lost(s);
        return;
    }
    for (struct fs_watch_dir *d; (d = watch_next_heard(s, ev->wd)) != NULL;) {
        d->event = s->events;
        if (name.n > 0)
            watch_on_name(d, ev->mask, name);
        else
            watch_on_self(d, ev->mask);
    }
}

void fs_watch_feed(struct fs_watch_set *s, const void *events, size_t n) {
    const char *p = events;
    for (struct inotify_event ev; n > 0; p += ev.len, n -= ev.len) {
        bool whole = n >= sizeof ev;
        if (whole) {
            memcpy(&ev, p, sizeof ev);
            p += sizeof ev;
            n -= sizeof ev;
        }
        if (!whole || ev.len > n) {
            watch_on_lost(s); /* not from a kernel */
            return;
        }
        watch_on_event(s, &ev, (struct str){p, strnlen(p, ev.len)});
    }
}

/* -- scans -- */

int fs_watch_put_drops(struct fs_watch_set *s, struct fs_watch_scan *scan) {
    size_t n = s->unused.len / sizeof(int);
    int *drop = n > 0 ? malloc(n * sizeof *drop) : NULL;
    if (n > 0 && drop == NULL)
        return -ENOMEM;
    scan->drop = drop;
    for (size_t i = 0; i < n; i++) {
        int wd;
        memcpy(&wd, s->unused.p + i * sizeof wd, sizeof wd);
        if (!watch_knows_wd(s, wd)) /* it was found again meanwhile */
            drop[scan->drops++] = wd;
    }
    buf_fini(&s->unused);
    return 0;
}

/* The next watch whose tree must be made anew, or NULL. */
static struct fs_watch *watch_next_lost(const struct fs_watch_set *s) {
    list_for_each(n, &s->watches) {
        struct fs_watch *w = list_entry(n, struct fs_watch, node);
        if (w->lost)
            return w;
    }
    return NULL;
}

/* The directories that wait, of the watch whose turn it is. */
static int watch_put_fresh(struct fs_watch_set *s, struct fs_watch_scan *scan,
                           struct fs_watch **w) {
    list_for_each(n, &s->fresh) {
        struct fs_watch_dir *d = list_entry(n, struct fs_watch_dir, fresh);
        char buf[WATCH_PATH_SIZE + 1];
        if (*w == NULL)
            *w = d->watch;
        if (*w != d->watch)
            continue;
        if (scan->dirs == WATCH_BATCH)
            break;
        struct str path = watch_path(d, (struct str){NULL, 0}, buf);
        buf[WATCH_PATH_SIZE] = '\0';
        int r = path.n > 0 ? fs_watch_scan_add(scan, path.p, d) : -ENAMETOOLONG;
        if (r < 0)
            return r;
        list_remove(n);
    }
    return 0;
}

/* The directory at the top, of a watch whose tree is given up. */
static int watch_put_top(struct fs_watch *w, struct fs_watch_scan *scan) {
    if (w->top != NULL)
        watch_tree_free(w->top, true);
    struct str top = watch_top_path(w);
    _cleanup_free_ char *path = str_dup(top);
    return path != NULL ? fs_watch_scan_add(scan, path, NULL) : -ENOMEM;
}

int fs_watch_next(struct fs_watch_set *s, struct fs_watch_scan *scan, struct fs_watch **w) {
    *w = watch_next_lost(s);
    if (*w == NULL && list_empty(&s->fresh) && s->unused.len == 0)
        return 0;
    scan->fresh = *w == NULL;
    int r = *w != NULL ? watch_put_top(*w, scan) : watch_put_fresh(s, scan, w);
    if (r == 0)
        r = fs_watch_put_drops(s, scan);
    scan->recursive = *w != NULL && (*w)->recursive;
    size_t used = s->dirs + (scan->fresh ? 0 : 1);
    scan->room = FS_WATCH_DIRS_MAX - MIN(used, (size_t)FS_WATCH_DIRS_MAX);
    if (r == 0)
        return 1;
    if (*w != NULL)
        fs_watch_lose(*w); /* else what the scan took would be forgotten */
    return r;
}

/* Finds or adds the tree node of a directory that a scan found. NULL: no memory, or no parent. */
static struct fs_watch_dir *watch_adopt_dir(struct fs_watch *w, struct fs_watch_scan *scan,
                                            size_t i) {
    struct fs_watch_found *f = &scan->dir[i];
    struct str name = str_of(scan->names.p + f->name);
    if (f->node != NULL)
        return f->node;
    if (f->parent == i) {
        f->node = watch_dir_new(w, NULL, (struct str){NULL, 0});
    } else {
        struct fs_watch_dir *parent = scan->dir[f->parent].node;
        if (parent != NULL) /* a directory that changes may be read with a name twice */
            f->node = watch_child(parent, name);
        if (parent != NULL && f->node == NULL)
            f->node = watch_dir_new(w, parent, name);
    }
    if (f->node == NULL)
        watch_overflow(w);
    return f->node;
}

static void watch_adopt_one(struct fs_watch_set *s, struct fs_watch *w, struct fs_watch_scan *scan,
                            size_t i) {
    int wd = scan->dir[i].wd;
    if (wd < 0)
        return;
    struct fs_watch_dir *d = w != NULL ? watch_adopt_dir(w, scan, i) : NULL;
    if (d != NULL) {
        int before = d->wd;
        watch_set_wd(d, wd);
        wd = before;
    }
    if (wd >= 0)
        watch_unuse(s, wd);
}

void fs_watch_adopt(struct fs_watch_set *s, struct fs_watch *w, struct fs_watch_scan *scan) {
    for (size_t i = 0; i < scan->dirs; i++)
        watch_adopt_one(s, w, scan, i);
    for (size_t i = 0; i < scan->drops; i++)
        watch_unuse(s, scan->drop[i]);
    if (w == NULL)
        return;
    for (size_t i = 0; i < scan->entries; i++) {
        const struct fs_watch_entry *ent = &scan->entry[i];
        if (scan->dir[ent->dir].node != NULL)
            watch_changed_in(scan->dir[ent->dir].node, str_of(scan->names.p + ent->name));
    }
    /* Directories that had waited and are gone, or cannot be watched. */
    for (size_t i = 0; i < scan->dirs; i++) {
        if (scan->dir[i].node != NULL && scan->dir[i].wd < 0)
            watch_tree_free(scan->dir[i].node, false);
    }
    w->lost = false;
    if (scan->missed)
        watch_overflow(w);
    if (w->top == NULL)
        watch_changed(w, str_of(w->root)); /* it has gone meanwhile */
}

/* -- life -- */

void fs_watch_set_init(struct fs_watch_set *s) {
    *s = (struct fs_watch_set){.unused = BUF_INIT(FS_WATCH_DROPS_MAX * sizeof(int))};
    list_init(&s->watches);
    list_init(&s->fresh);
    hash_init(&s->by_name);
}

void fs_watch_set_fini(struct fs_watch_set *s) {
    free(s->by_wd);
    s->by_wd = NULL;
    hash_fini(&s->by_name);
    buf_fini(&s->unused);
}

int fs_watch_init(struct fs_watch *w, struct fs_watch_set *s, const char *root, bool directory,
                  bool recursive) {
    *w = (struct fs_watch){.root = strdup(root), .recursive = recursive && directory};
    if (w->root == NULL)
        return -ENOMEM;
    w->set = s;
    list_init(&w->changes);
    hash_init(&w->changed);
    if (!directory)
        w->leaf = strrchr(w->root, '/') + 1;
    list_append(&s->watches, &w->node);
    return 0;
}

void fs_watch_fini(struct fs_watch *w) {
    if (w->top != NULL)
        watch_tree_free(w->top, true);
    watch_forget(w);
    list_remove(&w->node);
    free(w->root);
    w->root = NULL;
}

void fs_watch_told(struct fs_watch *w) {
    watch_forget(w);
    w->overflow = false;
}
