#include "client/fsanswer.h"
#include "client/fsbulk.h"
#include "client/fsop.h"
#include "client/xs_entries.h"
#include "client/xs_file.h"
#include "client/xs_watch.h"

#define WALK_DEPTH 64 /* the most that servers allow */
#define WALK_DIRECTORIES 10000
#define WALK_ENTRIES 50000

int xs_fs_new(struct xs_client *c, const struct xs_options *sandbox, struct xs_fs **out) {
    *out = fspart_space(c, sandbox);
    return *out != NULL ? 0 : client_error(c, XS_ENOMEM, "out of memory");
}

void xs_fs_free(struct xs_fs *f) {
    fspart_release(f);
}

/* -- one request each -- */

static int simple(struct xs_fs *f, struct xs_call *k, struct fsop **o) {
    return fsop_new(f, k, sizeof(**o), NULL, o);
}

static int malformed(const struct fsop *o, struct xs_error *e) {
    return xs_error_set(e, XS_EPROTO, "%s: a malformed answer", o->method);
}

int xs_fs_mkdir(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    bool recursive = (flags & XS_RECURSIVE) != 0;
    struct params p = fsop_begin(o, "fs/createDirectory", path, NULL);
    if (p.b != NULL)
        params_bool(&p, "recursive", recursive);
    fsop_follow(&p, flags);
    return fsop_run(o, &p, recursive ? CALLS_AGAIN : CALLS_LOST, NULL);
}

int xs_fs_remove(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/remove", path, NULL);
    if (p.b != NULL) {
        params_bool(&p, "recursive", (flags & XS_RECURSIVE) != 0);
        params_bool(&p, "force", (flags & XS_FORCE) != 0);
    }
    fsop_follow(&p, flags);
    return fsop_run(o, &p, CALLS_LOST, NULL);
}

int xs_fs_chmod(struct xs_fs *f, const char *path, unsigned mode, unsigned flags,
                struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/setPermissions", path, NULL);
    if (p.b != NULL)
        params_u64(&p, "mode", mode);
    fsop_follow(&p, flags);
    return fsop_run(o, &p, CALLS_AGAIN, NULL);
}

int xs_fs_copy(struct xs_fs *f, const char *from, const char *to, unsigned flags,
               struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/copy", from, to);
    if (p.b != NULL)
        params_bool(&p, "recursive", (flags & XS_RECURSIVE) != 0);
    return fsop_run(o, &p, CALLS_LOST, NULL);
}

int xs_fs_rename(struct xs_fs *f, const char *from, const char *to, unsigned flags,
                 struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/rename", from, to);
    if (p.b != NULL && (flags & XS_NOREPLACE) != 0)
        params_bool(&p, "replace", false);
    return fsop_run(o, &p, CALLS_LOST, NULL);
}

int xs_fs_set_times(struct xs_fs *f, const char *path, int64_t modified_ms, unsigned flags,
                    struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/setTimes", path, NULL);
    if (p.b != NULL)
        params_i64(&p, "modifiedAtMs", modified_ms);
    fsop_follow(&p, flags);
    return fsop_run(o, &p, CALLS_AGAIN, NULL);
}

static int take_text(struct fsop *o, char *text) {
    struct xs_bytes *out = o->out;
    *out = (struct xs_bytes){text, strlen(text)};
    return 0;
}

static int take_path(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    char *path = NULL;
    return fsanswer_path(result, &path) < 0 ? malformed(o, e) : take_text(o, path);
}

static int take_target(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    char *target = NULL;
    return fsanswer_target(result, &target) < 0 ? malformed(o, e) : take_text(o, target);
}

static int text_of(struct xs_fs *f, const char *method, const char *path, struct xs_bytes *out,
                   fsop_take *take, struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    *out = (struct xs_bytes){NULL, 0};
    o->out = out;
    struct params p = fsop_begin(o, method, path, NULL);
    return fsop_run(o, &p, CALLS_AGAIN, take);
}

int xs_fs_canonicalize(struct xs_fs *f, const char *path, struct xs_bytes *out, struct xs_call *k) {
    return text_of(f, "fs/canonicalize", path, out, take_path, k);
}

int xs_fs_read_link(struct xs_fs *f, const char *path, struct xs_bytes *out, struct xs_call *k) {
    return text_of(f, "fs/readLink", path, out, take_target, k);
}

int xs_fs_symlink(struct xs_fs *f, const char *path, const char *target, struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    struct params p = fsop_begin(o, "fs/symlink", path, NULL);
    if (p.b != NULL)
        params_base64(&p, "targetBase64", target, strlen(target));
    return fsop_run(o, &p, CALLS_LOST, NULL);
}

/* -- whole files, handles, watches -- */

int xs_fs_read(struct xs_fs *f, const char *path, unsigned flags, uint64_t max,
               struct xs_bytes *out, struct xs_call *k) {
    return fsbulk_read(f, path, flags, max, out, k);
}

int xs_fs_write(struct xs_fs *f, const char *path, const void *data, size_t n, unsigned flags,
                struct xs_call *k) {
    if ((flags & XS_ATOMIC) != 0) {
        int r = fsop_needs(f->files->client, "fsAtomicWrite", path);
        if (r < 0)
            return r;
    }
    return fsbulk_write(f, path, data, n, flags, k);
}

int xs_fs_open(struct xs_fs *f, const char *path, enum xs_open mode, struct xs_file **out,
               struct xs_call *k) {
    struct xs_client *c = f->files->client;
    int r = 0;
    if (mode == XS_OPEN_UPDATE)
        r = fsop_needs(c, "fsOpenUpdate", path);
    else if (mode == XS_OPEN_REPLACE)
        r = fsop_needs(c, "fileWriteStreaming", path); /* others would open it for reading */
    else if (mode != XS_OPEN_READ)
        r = client_error(c, XS_EINVAL, "%s: an unknown mode", path);
    return r < 0 ? r : xs_file_start(f, path, mode, out, k);
}

int xs_fs_watch(struct xs_fs *f, const char *path, unsigned flags, xs_watch_fn *fn, void *user,
                struct xs_watch **out, struct xs_call *k) {
    return xs_watch_start(f, path, flags, fn, user, out, k);
}

int xs_fs_watch_missing(struct xs_fs *f, const char *const *paths, xs_watch_fn *fn, void *user,
                        struct xs_watch **out, struct xs_call *k) {
    return xs_watch_start_missing(f, paths, fn, user, out, k);
}

/* -- metadata -- */

static int kind_of(enum fsanswer_kind kind) {
    if (kind == FSANSWER_FILE)
        return XS_KIND_FILE;
    return kind == FSANSWER_DIRECTORY ? XS_KIND_DIRECTORY : XS_KIND_OTHER;
}

/* The struct of the caller may be that of another version. */
static void give_stat(struct xs_stat *out, const struct xs_stat *s) {
    size_t n = MIN(out->size, sizeof(*s));
    if (n > sizeof(size_t))
        memcpy((char *)out + sizeof(size_t), (const char *)s + sizeof(size_t), n - sizeof(size_t));
}

static int give_link(struct fsop *o) {
    give_stat(o->out, &(struct xs_stat){.kind = XS_KIND_LINK, .is_link = 1, .mode = ~0U});
    return 0;
}

static int take_stat(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    struct fsanswer_stat got;
    if (fsanswer_stat(result, &got) < 0)
        return malformed(o, e);
    if (got.is_link && (o->flags & XS_NOFOLLOW) != 0)
        return give_link(o);
    struct xs_stat s = {
        .kind = kind_of(got.kind),
        .is_link = got.is_link,
        .mode = got.has_mode ? got.mode : ~0U,
        .bytes = got.bytes,
        .created_ms = got.created_ms,
        .modified_ms = got.modified_ms,
    };
    give_stat(o->out, &s);
    return 0;
}

static int send_stat(struct fsop *o, bool follow, struct xs_error *e) {
    struct params p = fsop_begin(o, "fs/getMetadata", o->path, NULL);
    if (p.b != NULL && !follow)
        params_bool(&p, "followSymlinks", false);
    return fsop_send(o, &p, CALLS_AGAIN, take_stat, e);
}

/* The server refuses to look at a link; it says so. */
static int refused_link(struct fsop *o, int err, struct xs_error *e) {
    if (err != XS_EREMOTE || strstr(xs_error_text(e), "symbolic link") == NULL)
        return 0;
    op_finish(&o->op, give_link(o));
    return 1;
}

/* What the path leads to is not there: the path may be a link. */
static int no_target(struct fsop *o, int err, struct xs_error *e) {
    if (err != XS_EREMOTE)
        return 0;
    o->failed = refused_link;
    struct xs_error why = XS_ERROR_INIT;
    bool sent = send_stat(o, false, &why) == 0;
    xs_error_fini(&why);
    (void)e;
    return sent;
}

int xs_fs_stat(struct xs_fs *f, const char *path, unsigned flags, struct xs_stat *s,
               struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    o->out = s;
    o->flags = flags;
    o->path = strdup(path);
    if (o->path == NULL)
        return op_refuse(&o->op, XS_ENOMEM, "out of memory");
    if ((flags & XS_NOFOLLOW) != 0)
        o->failed = no_target;
    r = send_stat(o, true, &e);
    return r < 0 ? op_refuse(&o->op, r, "%s", xs_error_text(&e)) : op_wait(&o->op);
}

/* -- lists -- */

static int take_entries(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    int r = xs_entries_new(result, o->path, o->out);
    if (r == XS_ENOMEM)
        return xs_error_set(e, r, "%s: out of memory", o->method);
    return r < 0 ? malformed(o, e) : 0;
}

int xs_fs_list(struct xs_fs *f, const char *path, struct xs_entries **out, struct xs_call *k) {
    struct fsop *o;
    int r = simple(f, k, &o);
    if (r < 0)
        return r;
    o->out = out;
    struct params p = fsop_begin(o, "fs/readDirectory", path, NULL);
    return fsop_run(o, &p, CALLS_AGAIN, take_entries);
}

static uint64_t limit(uint64_t asked, uint64_t most) {
    return asked == 0 ? most : asked;
}

int xs_fs_walk(struct xs_fs *f, const char *path, const struct xs_walk *limits,
               struct xs_entries **out, struct xs_call *k) {
    struct xs_walk w = {.size = sizeof(w)};
    if (limits != NULL)
        memcpy(&w, limits, MIN(limits->size, sizeof(w)));
    int r = w.links ? fsop_needs(f->files->client, "fsLinks", path) : 0;
    if (r < 0)
        return r;
    struct fsop *o;
    r = simple(f, k, &o);
    if (r < 0)
        return r;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    o->out = out;
    r = fspart_path(f->files->client, path, &o->path, &e);
    if (r < 0)
        return op_refuse(&o->op, r, "%s", xs_error_text(&e));
    struct params p = fsop_begin(o, "fs/walk", o->path, NULL);
    if (p.b != NULL) {
        params_open(&p, "options", '{');
        params_u64(&p, "maxDepth", limit(w.max_depth, WALK_DEPTH));
        params_u64(&p, "maxDirectories", limit(w.max_directories, WALK_DIRECTORIES));
        params_u64(&p, "maxEntries", limit(w.max_entries, WALK_ENTRIES));
        params_bool(&p, "followDirectorySymlinks", w.follow != 0);
        params_bool(&p, "pruneHiddenDirectories", w.prune_hidden != 0);
        if (w.links)
            params_bool(&p, "links", true);
        params_close(&p, '}');
    }
    return fsop_run(o, &p, CALLS_AGAIN, take_entries);
}
