#include "fs/fs_call.h"

#include "fs/fs_atomic.h"
#include "fs/fs_copy.h"
#include "fs/fs_copy_file.h"
#include "fs/fs_dir.h"
#include "fs/fs_file.h"
#include "fs/fs_meta.h"
#include "fs/fs_mkdir.h"
#include "fs/fs_remove.h"
#include "fs/fs_rename.h"
#include "fs/fs_walk.h"

#include <errno.h>
#include <fcntl.h>

#define RUN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define RUN_MODE 0666

static const atomic_bool run_never;

/* A call being made: the paths to act on. */
struct run {
    const struct fs_call *c;
    const struct fs_call_gate *g;
    char path[PATH_MAX], destination[PATH_MAX];
};

static int run_pass(const struct run *run, struct fs_call_path p, char out[PATH_MAX],
                    struct err *e) {
    int r = run->g->pass(run->g->arg, &p, out);
    return r < 0 ? fs_fail(e, -r) : 0;
}

/* Lets the path of the call pass. */
static int run_enter(struct run *run, enum fs_call_need need, bool leaf, struct err *e) {
    const struct fs_call *c = run->c;
    return run_pass(run,
                    (struct fs_call_path){.need = need,
                                          .path = c->path,
                                          .follow = c->follow,
                                          .leaf = leaf && c->follow,
                                          .parents = need == FS_CALL_MAKES && c->recursive,
                                          .tree = c->recursive},
                    run->path, e);
}

/* -- opening -- */

static int run_open_at(const char *path, int flags, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf = path;
    int r = strcmp(path, "/") == 0 ? 0 : fs_parent_open(path, &dir, &leaf, e);
    if (r < 0)
        return r;
    int fd = openat(dir, leaf, flags | RUN_FLAGS, RUN_MODE);
    return fd < 0 ? fs_fail(e, errno) : fd;
}

/* What may be had: handles are for regular files; what is written whole is no pipe. */
static bool run_is_file(enum fs_call_op op, bool follow, const struct stat *st) {
    bool whole = op == FS_CALL_WRITE && follow;
    return whole ? !S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode) : S_ISREG(st->st_mode);
}

static int run_open(struct run *run, struct fs_call_result *result, struct err *e) {
    const struct fs_call *c = run->c;
    bool read = c->op == FS_CALL_READ;
    int r = run_enter(run, read ? FS_CALL_READS : FS_CALL_CHANGES, true, e);
    if (r < 0)
        return r;
    int flags = read ? O_RDONLY : O_WRONLY | O_CREAT;
    _cleanup_close_ int fd = run_open_at(run->path, flags, e);
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (!run_is_file(c->op, c->follow, &st))
        return fs_not_file(e, c->path, c->follow);
    result->fd = steal_fd(&fd);
    return 0;
}

static int run_write_new(struct run *run, struct str data, struct err *e) {
    int r = run_enter(run, FS_CALL_CHANGES, true, e);
    if (r < 0)
        return r;
    struct stat st;
    if (run->c->follow && lstat(run->path, &st) == 0 && !S_ISREG(st.st_mode) &&
        !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return fs_not_file(e, run->c->path, true);
    struct fs_write w = {.path = run->path, .data = data.p, .n = data.n, .atomic = true};
    return fs_write_file(&w, e);
}

/* -- looking -- */

/* A file that may not be read shows no size. */
static int run_hide_size(struct buf *b) {
    static const char key[] = "\"size\":";
    _cleanup_buf_ struct buf copy = BUF_INIT(b->max);
    int r = buf_putc(b, '\0');
    if (r < 0)
        return r;
    const char *at = strstr(b->p, key);
    b->len--;
    if (at == NULL)
        return 0;
    size_t head = (size_t)(at - b->p) + sizeof key - 1;
    size_t skip = strspn(b->p + head, "0123456789");
    r = buf_put(&copy, b->p, head);
    if (r == 0)
        r = buf_putc(&copy, '0');
    if (r == 0)
        r = buf_put(&copy, b->p + head + skip, b->len - head - skip);
    if (r < 0)
        return r;
    b->len = 0;
    return buf_put(b, copy.p, copy.len);
}

/* What is denied is said to be so where nothing is to be seen of it, too. Returns r, or that. */
static int run_unseen(struct run *run, int r, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    if (r != -ENOENT || run_enter(run, FS_CALL_READS, true, &why) != -EACCES)
        return r;
    err_fini(e);
    return fs_fail(e, EACCES);
}

static int run_canonicalize(struct run *run, struct fs_call_result *result, struct err *e) {
    int r = fs_canonicalize(run->c->path, &result->text, e);
    return r < 0 ? run_unseen(run, r, e) : 0;
}

static int run_metadata(struct run *run, struct fs_call_result *result, struct err *e) {
    const struct fs_call *c = run->c;
    int r = fs_get_metadata(NULL, c->path, c->follow, &result->text, e);
    if (r < 0)
        return run_unseen(run, r, e);
    _cleanup_err_ struct err none = ERR_INIT;
    if (run_enter(run, FS_CALL_READS, true, &none) != -EACCES)
        return 0;
    r = run_hide_size(&result->text);
    return r < 0 ? fs_fail(e, -r) : 0;
}

/* What is not to be read shows no names either; whatever else is wrong, the call says itself. */
static int run_look_in(struct run *run, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    const struct fs_call_path p = {
        .need = FS_CALL_READS, .path = run->c->path, .follow = true, .leaf = true};
    return run_pass(run, p, run->path, &why) == -EACCES ? fs_fail(e, EACCES) : 0;
}

static int run_list(struct run *run, struct fs_call_result *result, struct err *e) {
    int r = run_look_in(run, e);
    return r < 0 ? r : fs_read_directory(run->c->path, &run_never, &result->text, e);
}

static int run_walk(const struct fs_call *c, struct fs_call_result *result, struct err *e) {
    struct fs_walk w = {.path = c->path,
                        .uri = c->uri,
                        .max_depth = c->max_depth,
                        .max_directories = c->max_directories,
                        .max_entries = c->max_entries,
                        .follow_directory_links = c->follow_directory_links,
                        .prune_hidden = c->prune_hidden};
    return fs_walk(&w, &run_never, &result->text, e);
}

/* -- changing -- */

static int run_mkdir(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    if (c->follow && strcmp(c->path, "/") == 0)
        return fs_create_directory(c->path, c->recursive, true, e);
    int r = run_enter(run, FS_CALL_MAKES, c->recursive, e);
    struct stat st;
    if (r == 0 && c->follow && lstat(run->path, &st) == 0 && !S_ISDIR(st.st_mode))
        return fs_fail(e, EEXIST);
    return r < 0 ? r : fs_create_directory(run->path, c->recursive, false, e);
}

static int run_remove(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    struct fs_remove remove = {
        .path = run->path, .recursive = c->recursive, .force = c->force, .follow = c->follow};
    if (c->recursive && !c->follow) { /* nothing is removed */
        remove.path = c->path;
        return fs_remove(&remove, &run_never, e);
    }
    int r = run_enter(run, FS_CALL_TAKES, false, e);
    if (r == -ENOENT && c->force && !run->g->hidden(run->g->arg, c->path)) {
        err_fini(e);
        return 0;
    }
    if (r < 0)
        return r;
    struct stat st;
    if (lstat(run->path, &st) < 0 && errno == ENOENT && run->g->hidden(run->g->arg, c->path))
        return fs_fail(e, ENOENT);
    return fs_remove(&remove, &run_never, e);
}

static int run_check_copy(void *arg, const char *source, const char *destination, bool dir) {
    const struct fs_call_gate *g = ((const struct run *)arg)->g;
    int r = dir ? 0 : g->check(g->arg, FS_CALL_READS, source);
    return r < 0 ? r : g->check(g->arg, dir ? FS_CALL_MAKES : FS_CALL_CHANGES, destination);
}

static int run_copy(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    int r =
        run_pass(run, (struct fs_call_path){.need = FS_CALL_READS, .path = c->path, .follow = true},
                 run->path, e);
    struct stat st;
    if (r == 0 && lstat(run->path, &st) < 0)
        r = fs_fail(e, errno);
    if (r == 0 && S_ISREG(st.st_mode) && faccessat(AT_FDCWD, run->path, R_OK, AT_EACCESS) < 0)
        r = fs_fail(e, errno); /* before anything is said about the destination */
    if (r < 0)
        return r;
    bool dir = S_ISDIR(st.st_mode), link = S_ISLNK(st.st_mode);
    if (!dir && !link && !S_ISREG(st.st_mode)) /* wherever it is to go */
        return fs_copy_unsupported(e);
    enum fs_call_need need = dir ? FS_CALL_MAKES : link ? FS_CALL_GETS : FS_CALL_CHANGES;
    if (!dir || c->recursive)
        r = run_pass(run,
                     (struct fs_call_path){.need = need,
                                           .path = c->destination,
                                           .follow = true,
                                           .leaf = !link,
                                           .parents = dir},
                     run->destination, e);
    if (r == 0 && dir && c->recursive && lstat(run->destination, &st) == 0 && !S_ISDIR(st.st_mode))
        r = fs_fail(e, EEXIST);
    if (r < 0)
        return r;
    struct fs_copy copy = {.source = run->path,
                           .destination = run->destination,
                           .recursive = c->recursive,
                           .check = run_check_copy,
                           .arg = run};
    return fs_copy(&copy, &run_never, e);
}

static int run_rename(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    struct fs_call_path from = {
        .need = FS_CALL_TAKES, .path = c->path, .follow = true, .tree = true};
    struct fs_call_path to = {.need = FS_CALL_GETS, .path = c->destination, .follow = true};
    if (strcmp(c->path, "/") == 0 || strcmp(c->destination, "/") == 0)
        return fs_fail(e, EBUSY);
    int r = run_pass(run, from, run->path, e);
    struct stat st;
    if (r == 0 && lstat(run->path, &st) < 0)
        r = fs_fail(e, errno);
    if (r == 0)
        r = run_pass(run, to, run->destination, e);
    if (r < 0)
        return r;
    _cleanup_close_ int source = -1, destination = -1;
    const char *source_leaf, *destination_leaf;
    r = fs_parent_open(run->path, &source, &source_leaf, e);
    if (r == 0)
        r = fs_parent_open(run->destination, &destination, &destination_leaf, e);
    if (r < 0)
        return r;
    r = fs_rename_at(source, source_leaf, destination, destination_leaf, c->replace);
    return r < 0 ? fs_fail(e, -r) : 0;
}

static int run_chmod(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    int r = run_enter(run, FS_CALL_CHANGES, true, e);
    return r < 0 ? r : fs_set_permissions(run->path, (mode_t)c->mode, false, e);
}

int fs_call_run(const struct fs_call *c, struct str data, const struct fs_call_gate *g,
                struct fs_call_result *result, struct err *e) {
    struct run run = {.c = c, .g = g};
    switch (c->op) {
    case FS_CALL_READ:
    case FS_CALL_REPLACE:
    case FS_CALL_WRITE: return run_open(&run, result, e);
    case FS_CALL_WRITE_NEW: return run_write_new(&run, data, e);
    case FS_CALL_MKDIR: return run_mkdir(&run, e);
    case FS_CALL_METADATA: return run_metadata(&run, result, e);
    case FS_CALL_CANONICALIZE: return run_canonicalize(&run, result, e);
    case FS_CALL_LIST: return run_list(&run, result, e);
    case FS_CALL_WALK: return run_walk(c, result, e);
    case FS_CALL_REMOVE: return run_remove(&run, e);
    case FS_CALL_COPY: return run_copy(&run, e);
    case FS_CALL_RENAME: return run_rename(&run, e);
    case FS_CALL_CHMOD: return run_chmod(&run, e);
    }
    return fs_fail(e, EINVAL);
}
