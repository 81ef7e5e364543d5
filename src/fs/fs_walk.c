#include "fs/fs_walk.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/uri.h"
#include "fs/fs_link.h"
#include "fs/fs_walk_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>

#define WALK_ITEM 64 /* cost of an item beside its texts */
/* Bytes of the path of a name in a directory that can be opened, and of its URI. */
#define WALK_PATH_MAX (PATH_MAX + 3 * FS_NAME_MAX + 2)
#define WALK_URI_MAX (3 * WALK_PATH_MAX + 64)
#define WALK_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* A directory that is to be read. Lives in the arena, as its texts do. */
struct walk_dir {
    struct walk_dir *next;
    const char *path;
    size_t path_len;
    const char *real; /* its real path; NULL while links are not followed */
    size_t depth;     /* below the root */
    struct hash_node claim;
};

struct walk {
    const struct fs_walk *args;
    const atomic_bool *stop;
    int root;                      /* owned; directories are opened relative to it */
    struct walk_dir *first, *last; /* the directory being read, and those to be read after it */
    size_t directories;            /* read, or to be read */
    size_t seen;                   /* names */
    size_t cost;                   /* of the items so far, up to FS_WALK_BUDGET */
    bool truncated;
    bool over;           /* nothing more is to be added */
    struct fs_list list; /* of the first directory */
    struct fs_walk_names names;
    struct hash claims; /* real paths of all directories so far */
    struct arena arena;
    const struct fs_sink *sink;
    struct buf uri;  /* of the first directory, or of the name at hand in it */
    size_t uri_len;  /* without a name, and without a slash at the end */
    struct buf path; /* native path of the first directory, or of the name at hand */
    bool opaque;     /* names in it have no URI */
    bool look;       /* types of its entries cannot be trusted: it is not searchable */
};

/* -- items -- */

/* Hands an item on if the budget allows; else the walk is over. */
static int walk_put(struct walk *w, enum fs_item_kind kind, struct str uri, struct str message) {
    size_t cost = WALK_ITEM + uri.n + message.n;
    if (w->cost + cost > FS_WALK_BUDGET) {
        w->truncated = w->over = true;
        return 0;
    }
    w->cost += cost;
    const struct fs_item item = {kind, uri, message};
    return w->sink->put(w->sink->arg, &item);
}

/* Adds the name at hand. */
static int walk_put_entry(struct walk *w, enum fs_item_kind kind) {
    return walk_put(w, kind, buf_str(&w->uri), (struct str){"", 0});
}

/* Adds the error num of the name at hand, or of the directory itself. */
static int walk_put_errno(struct walk *w, int num) {
    char text[128];
    int n = snprintf(text, sizeof text, "%s (os error %d)", err_os_text(num), num);
    return walk_put(w, FS_ITEM_ERROR, buf_str(&w->uri), (struct str){text, (size_t)n});
}

/* Adds the error of a URI that a reader would take for that of another host. */
static int walk_put_invalid(struct walk *w, struct str uri) {
    _cleanup_buf_ struct buf text = BUF_INIT(uri.n + 64);
    int r = buf_putf(&text, "'%.*s' is invalid on 'linux'", (int)uri.n, uri.p);
    return r < 0 ? r : walk_put(w, FS_ITEM_ERROR, uri, buf_str(&text));
}

/* -- paths -- */

/* Whether a URI surely has these bytes as they are. */
static bool walk_plain(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!letter && !(c >= '+' && c <= ':') && c != '_')
            return false;
    }
    return true;
}

/* Appends a name to the URI of its directory. */
static int walk_put_name_uri(struct buf *uri, struct str name) {
    if (walk_plain(name))
        return buf_put(uri, name.p, name.n);
    _cleanup_buf_ struct buf path = BUF_INIT(WALK_PATH_MAX), escaped = BUF_INIT(WALK_URI_MAX);
    const size_t before = strlen("file:///-/");
    int r = buf_putf(&path, "/-/%.*s", (int)name.n, name.p);
    if (r == 0)
        r = uri_from_path(&escaped, buf_str(&path));
    return r < 0 ? r : buf_put(uri, escaped.p + before, escaped.len - before);
}

/* Sets w->uri to the URI of a name in the directory at hand. */
static int walk_set_uri(struct walk *w, struct str name) {
    w->uri.len = w->uri_len;
    int r = buf_putc(&w->uri, '/');
    return r == 0 ? walk_put_name_uri(&w->uri, name) : r;
}

/* Sets w->path to the path of a name in the directory at hand; a NUL follows it. */
static int walk_set_path(struct walk *w, struct str name) {
    w->path.len = w->first->path_len;
    int r = w->path.len > 1 ? buf_putc(&w->path, '/') : 0;
    if (r == 0)
        r = buf_put(&w->path, name.p, name.n);
    if (r == 0)
        r = buf_putc(&w->path, '\0');
    w->path.len -= r == 0;
    return r;
}

/* Appends the URI of a directory: that of the root as the client wrote it, and the rest. */
static int walk_put_dir_uri(struct walk *w, struct str path) {
    const char *root = w->args->path;
    if (w->args->uri == NULL)
        return uri_from_path(&w->uri, path);
    struct str uri = str_of(w->args->uri), rest = path;
    size_t n = root[1] == '\0' ? 0 : strlen(root); /* "/" is part of the rest */
    rest.p += n;
    rest.n -= n;
    if (rest.n <= 1)
        return buf_put(&w->uri, uri.p, uri.n);
    int r = buf_put(&w->uri, uri.p, uri.n - (uri.p[uri.n - 1] == '/'));
    if (r == 0)
        r = buf_putc(&w->uri, '/');
    return r == 0 ? walk_put_name_uri(&w->uri, (struct str){rest.p + 1, rest.n - 1}) : r;
}

/* Sets w->uri and w->path to those of the directory itself. */
static int walk_set_dir(struct walk *w) {
    struct str path = {w->first->path, w->first->path_len};
    w->uri.len = w->path.len = 0;
    int r = walk_put_dir_uri(w, path);
    if (r == 0)
        r = buf_put(&w->path, path.p, path.n);
    if (r < 0)
        return r;
    w->opaque = memmem(w->uri.p, w->uri.len, "/%00/", 5) != NULL;
    w->uri_len = w->uri.len - (w->uri.p[w->uri.len - 1] == '/');
    return 0;
}

/* "C:" in the root directory. */
static bool walk_is_drive(const struct walk *w, struct str name) {
    return w->first->path_len == 1 && name.n == 2 && name.p[1] == ':' &&
           (name.p[0] | 0x20) >= 'a' && (name.p[0] | 0x20) <= 'z';
}

/* -- directories to be read -- */

/*
 * Adds the directory of w->path to those to be read, unless its real path was added before; real
 * is NULL if links are not followed. 0 or -ENOMEM.
 */
static int walk_enqueue(struct walk *w, size_t depth, const char *real) {
    if (real != NULL && hash_find(&w->claims, str_of(real)) != NULL)
        return 0;
    /* Names that are the same once their bad bytes are replaced come one after the other. */
    if (w->last != NULL && str_eqz(buf_str(&w->path), w->last->path))
        return 0;
    if (w->directories >= w->args->max_directories) {
        w->truncated = true;
        return 0;
    }
    struct walk_dir *d = arena_alloc(&w->arena, sizeof *d);
    const char *path = arena_strdup(&w->arena, buf_str(&w->path));
    const char *own = real != NULL ? arena_strdup(&w->arena, str_of(real)) : NULL;
    if (d == NULL || path == NULL || (real != NULL && own == NULL)) {
        w->truncated = true;
        return 0;
    }
    *d = (struct walk_dir){.path = path, .path_len = w->path.len, .real = own, .depth = depth};
    if (own != NULL && hash_add(&w->claims, &d->claim, str_of(own)) < 0)
        return -ENOMEM;
    if (w->first == NULL)
        w->first = d;
    else
        w->last->next = d;
    w->last = d;
    w->directories++;
    return 0;
}

/* The real path of the name at hand, a directory or a link to one. Owned; NULL with errno. */
static char *walk_real(const struct walk *w, struct str name, bool link) {
    if (link)
        return realpath(w->path.p, NULL);
    const char *dir = w->first->real[1] != '\0' ? w->first->real : "";
    char *real;
    if (strlen(dir) + 1 + name.n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return asprintf(&real, "%s/%s", dir, name.p) < 0 ? NULL : real;
}

/* Lists a directory that was found, and enqueues it if the walk goes there. */
static int walk_found_dir(struct walk *w, struct str name, bool link) {
    int r = walk_put_entry(w, FS_ITEM_DIR);
    size_t depth = w->first->depth + 1;
    if (r < 0 || w->over || depth > w->args->max_depth ||
        (w->args->prune_hidden && name.p[0] == '.'))
        return r;
    r = walk_set_path(w, name);
    if (r < 0)
        return r;
    if (!w->args->follow_directory_links)
        return walk_enqueue(w, depth, NULL);
    _cleanup_free_ char *real = walk_real(w, name, link);
    return real == NULL ? walk_put_errno(w, errno) : walk_enqueue(w, depth, real);
}

/* -- one directory -- */

static enum walk_kind walk_kind_of(unsigned char type) {
    switch (type) {
    case DT_REG: return WALK_FILE;
    case DT_DIR: return WALK_DIR;
    case DT_UNKNOWN: return WALK_LOOK;
    default: return WALK_OTHER;
    }
}

/* Whether the path of a name of n bytes is too long to be used. */
static bool walk_too_long(const struct walk *w, size_t n) {
    size_t dir = w->first->path_len;
    return (dir > 1 ? dir : 0) + 1 + n >= PATH_MAX;
}

/* The kind of a link in the directory at hand. 0 or -errno. */
static int walk_link_kind(const struct walk *w, const char *name, enum walk_kind *kind) {
    struct stat st;
    *kind = WALK_LINK;
    if (w->args->links)
        return 0;
    if (fstatat(w->list.fd, name, &st, 0) < 0)
        return -errno;
    bool follow = w->args->follow_directory_links;
    *kind = follow && S_ISDIR(st.st_mode) ? WALK_DIR_LINK : WALK_OTHER;
    return 0;
}

/* Adds an entry to the names; unless links are listed, no link that leads nowhere. */
static int walk_add_name(struct walk *w, const struct fs_entry *entry) {
    enum walk_kind kind = walk_kind_of(entry->type);
    if (entry->type == DT_LNK && w->args->links)
        kind = WALK_LINK;
    else if (entry->type == DT_LNK &&
             (walk_too_long(w, entry->n) || walk_link_kind(w, entry->name, &kind) < 0))
        return 0;
    return fs_walk_names_add(&w->names, (struct str){entry->name, entry->n}, kind);
}

/* Reads the names of the directory at hand. 0 or -errno. */
static int walk_read_names(struct walk *w) {
    fs_walk_names_begin(&w->names, (size_t)w->args->max_entries - w->seen + 1);
    struct fs_entry entry;
    int r;
    while ((r = fs_list_next(&w->list, &entry)) > 0) {
        if (atomic_load_explicit(w->stop, memory_order_relaxed))
            return -ECANCELED;
        r = walk_add_name(w, &entry);
        if (r < 0)
            return r;
    }
    fs_walk_names_sort(&w->names);
    return r;
}

/* Finds out the kind of a name. 0 or -errno. */
static int walk_look(const struct walk *w, const char *name, enum walk_kind *kind) {
    struct stat st;
    if (fstatat(w->list.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    *kind = walk_kind_of(FS_LIST_TYPE(st.st_mode));
    return S_ISLNK(st.st_mode) ? walk_link_kind(w, name, kind) : 0;
}

/* Whether the client may know where the link at hand leads. */
static bool walk_may_tell(struct walk *w, struct str name) {
    const struct fs_walk *args = w->args;
    char path[PATH_MAX];
    if (args->check == NULL)
        return true;
    if (args->at == NULL)
        return false;
    const char *root = args->at->path[1] != '\0' ? args->at->path : "";
    const char *below = w->first->path + strlen(args->path);
    below += *below == '/';
    int n =
        snprintf(path, sizeof path, "%s%s%s/%s", root, *below != '\0' ? "/" : "", below, name.p);
    return n > 0 && (size_t)n < sizeof path &&
           args->check->ask(args->check->arg, FS_READS, path, S_IFLNK) == 0;
}

/* Lists a link that was found. */
static int walk_found_link(struct walk *w, struct str name) {
    struct fs_link link;
    if (!walk_may_tell(w, name))
        return walk_put_entry(w, FS_ITEM_LINK);
    int r = fs_link_read_at(w->list.fd, name.p, &link);
    if (r < 0)
        return walk_put_errno(w, -r);
    return walk_put(w, FS_ITEM_LINK, buf_str(&w->uri), (struct str){link.target, link.n});
}

/* Looks at one name of the directory at hand. */
static int walk_name(struct walk *w, const struct walk_name *item) {
    struct str name = fs_walk_names_str(&w->names, item);
    if (w->opaque)
        return walk_put_invalid(w, (struct str){w->uri.p, w->uri_len});
    if (walk_is_drive(w, name)) {
        char uri[] = "file:///C:";
        uri[8] = (char)(name.p[0] & ~0x20);
        return walk_put_invalid(w, str_of(uri));
    }
    enum walk_kind kind = item->kind;
    if (kind == WALK_OTHER && !w->look)
        return 0;
    int r = walk_set_uri(w, name);
    if (r < 0)
        return r;
    int num = walk_too_long(w, name.n) ? ENAMETOOLONG : 0;
    if (num == 0 && (kind == WALK_LOOK || w->look))
        num = -walk_look(w, name.p, &kind);
    if (num != 0)
        return walk_put_errno(w, num);
    if (kind == WALK_FILE)
        return walk_put_entry(w, FS_ITEM_FILE);
    if (kind == WALK_LINK)
        return walk_found_link(w, name);
    return kind == WALK_OTHER ? 0 : walk_found_dir(w, name, kind == WALK_DIR_LINK);
}

/* Whether names cannot be looked up, as in a directory without search permission. */
static bool walk_unsearchable(const struct walk *w) {
    if (fs_walk_names_count(&w->names) == 0)
        return false;
    struct stat st;
    const char *name = fs_walk_names_str(&w->names, fs_walk_names_at(&w->names, 0)).p;
    return fstatat(w->list.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == EACCES;
}

static int walk_look_at_names(struct walk *w) {
    w->look = walk_unsearchable(w);
    size_t n = fs_walk_names_count(&w->names);
    for (size_t i = 0; i < n && !w->over; i++) {
        if (w->seen == w->args->max_entries) {
            w->truncated = w->over = true;
            break;
        }
        w->seen++;
        int r = walk_name(w, fs_walk_names_at(&w->names, i));
        if (r < 0)
            return r;
    }
    if (w->names.cut)
        w->truncated = w->over = true;
    return 0;
}

/*
 * Opens the directory at hand. If the walk follows no links, it passes none here either, also if
 * one has replaced a directory of the path meanwhile.
 */
static int walk_open(const struct walk *w) {
    const char *relative = w->first->path + strlen(w->args->path);
    int nofollow = w->args->follow_directory_links ? 0 : O_NOFOLLOW;
    if (*relative == '\0' && w->args->at != NULL)
        return openat(w->args->at->dir, fs_place_name(w->args->at), WALK_FLAGS | O_NOFOLLOW);
    if (*relative == '\0') /* not as "." of itself: that needs search permission */
        return open(w->args->path, WALK_FLAGS | nofollow);
    relative += *relative == '/';
    if (nofollow == 0)
        return openat(w->root, relative, WALK_FLAGS);
    struct open_how how = {.flags = WALK_FLAGS, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, w->root, relative, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(w->root, relative, WALK_FLAGS | O_NOFOLLOW);
    return fd;
}

static int walk_directory(struct walk *w) {
    int r = walk_set_dir(w);
    if (r < 0)
        return r;
    _cleanup_close_ int fd = walk_open(w);
    if (fd < 0)
        return walk_put_errno(w, errno);
    fs_list_begin(&w->list, &fd);
    r = walk_read_names(w);
    if (r < 0 && r != -ECANCELED && r != -ENOMEM)
        return walk_put_errno(w, -r);
    return r < 0 ? r : walk_look_at_names(w);
}

/* -- the walk -- */

/* Starts with the directory at a place. 0 or -errno. */
static int walk_begin_at(struct walk *w, const struct fs_place *at) {
    w->root = fs_place_open(at, O_PATH | O_DIRECTORY, 0);
    if (w->root < 0)
        return steal_fd(&w->root);
    int r = buf_putz(&w->path, w->args->path);
    return r < 0 ? r : walk_enqueue(w, 0, NULL);
}

/* Starts with the root, if it is a directory; 0, or -errno. */
static int walk_begin(struct walk *w) {
    const char *path = w->args->path;
    bool follow = w->args->follow_directory_links;
    struct stat st;
    if (w->args->at != NULL)
        return walk_begin_at(w, w->args->at);
    if (lstat(path, &st) < 0)
        return -errno;
    bool link = S_ISLNK(st.st_mode);
    if (link && stat(path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode) || (link && !follow))
        return 0;
    w->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    if (w->root < 0)
        return -errno;
    _cleanup_free_ char *real = follow ? realpath(path, NULL) : NULL;
    if (follow && real == NULL)
        return -errno;
    int r = buf_putz(&w->path, path);
    return r < 0 ? r : walk_enqueue(w, 0, real);
}

static int walk_all(struct walk *w) {
    int r = walk_begin(w);
    while (r == 0 && w->first != NULL && !w->over) {
        r = walk_directory(w);
        w->first = w->first->next;
    }
    if (r < 0 || !w->truncated)
        return r;
    return w->sink->put(w->sink->arg, &(struct fs_item){.kind = FS_ITEM_TRUNCATED});
}

int fs_walk_check(const struct fs_walk *a, struct err *e) {
    if (a->max_directories == 0 || a->max_entries == 0)
        return fs_fail_as(e, FS_FAIL_WALK_ZERO);
    if (a->links && a->follow_directory_links)
        return fs_fail_as(e, FS_FAIL_WALK_LINKS);
    if (a->max_depth <= FS_WALK_DEPTH_MAX && a->max_directories <= FS_WALK_DIRECTORIES_MAX &&
        a->max_entries <= FS_WALK_ENTRIES_MAX)
        return 0;
    return fs_fail_as(e, FS_FAIL_WALK_LIMITS);
}

int fs_walk(const struct fs_walk *args, const atomic_bool *stop, const struct fs_sink *sink,
            struct err *e) {
    int r = fs_walk_check(args, e);
    if (r < 0)
        return r;
    struct walk w = {
        .args = args,
        .stop = stop,
        .root = -1,
        .list = FS_LIST_NONE,
        .arena = ARENA_INIT(FS_WALK_PATHS),
        .sink = sink,
        .uri = BUF_INIT(WALK_URI_MAX + (args->uri != NULL ? strlen(args->uri) : 0)),
        .path = BUF_INIT(WALK_PATH_MAX),
    };
    fs_walk_names_init(&w.names);
    w.names.exact = args->links;
    hash_init(&w.claims);
    r = walk_all(&w);
    util_close_fd(&w.root);
    fs_list_fini(&w.list);
    fs_walk_names_fini(&w.names);
    hash_fini(&w.claims);
    arena_fini(&w.arena);
    buf_fini(&w.uri);
    buf_fini(&w.path);
    return fs_fail_check(e, r);
}
