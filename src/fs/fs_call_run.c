#include "fs/fs_call.h"

#include "fs/fs_atomic.h"
#include "fs/fs_copy.h"
#include "fs/fs_copy_file.h"
#include "fs/fs_dir.h"
#include "fs/fs_file.h"
#include "fs/fs_link.h"
#include "fs/fs_meta.h"
#include "fs/fs_mkdir.h"
#include "fs/fs_remove.h"
#include "fs/fs_rename.h"
#include "fs/fs_walk.h"

#include <errno.h>
#include <fcntl.h>

#define RUN_FLAGS (O_NONBLOCK | O_NOCTTY)
#define RUN_MODE 0666

static const atomic_bool run_never;

/* A call being made, and the places that it acts on. */
struct run {
    const struct fs_call *c;
    const struct fs_call_access *g;
    struct fs_place at, to;
};

static int run_pass(const struct run *run, struct fs_call_path p, struct fs_place *out,
                    struct err *e) {
    return fs_fail_check(e, run->g->pass(run->g->arg, &p, out));
}

/* Lets the path of the call pass. */
static int run_enter(struct run *run, enum fs_need need, bool leaf, struct err *e) {
    const struct fs_call *c = run->c;
    return run_pass(run,
                    (struct fs_call_path){.need = need,
                                          .path = c->path,
                                          .follow = c->follow,
                                          .leaf = leaf && c->follow,
                                          .parents = need == FS_MAKES && c->recursive,
                                          .tree = c->recursive},
                    &run->at, e);
}

/* The policy may have let a directory pass because its own mount is read-only. It may be gone by
 * now: a file must not be made in its place. */
static int run_refuse_dir(const struct fs_place *at, struct err *e) {
    return S_ISDIR(at->mode) ? fs_fail(e, EISDIR) : 0;
}

/* -- opening -- */

/* Handles are for regular files; what is written whole may be a device, but no pipe. */
static bool run_is_file(enum fs_call_op op, bool follow, const struct stat *st) {
    bool whole = op == FS_CALL_WRITE && follow;
    return whole ? !S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode) : S_ISREG(st->st_mode);
}

static int run_open(struct run *run, struct fs_call_result *result, struct err *e) {
    const struct fs_call *c = run->c;
    bool read = c->op == FS_CALL_READ;
    int r = run_enter(run, read ? FS_READS : FS_CHANGES, true, e);
    if (r == 0 && !read)
        r = run_refuse_dir(&run->at, e);
    if (r < 0)
        return r;
    int flags = read ? O_RDONLY : O_WRONLY | O_CREAT;
    _cleanup_close_ int fd = fs_place_open(&run->at, flags | RUN_FLAGS, RUN_MODE);
    struct stat st;
    if (fd < 0)
        return fs_fail(e, -fd);
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (run->at.mode != 0 && ((st.st_mode ^ run->at.mode) & S_IFMT) != 0)
        return fs_fail(e, ESTALE); /* not what was decided on */
    if (!run_is_file(c->op, c->follow, &st))
        return c->follow ? fs_fail_not_file(e, c->path) : fs_fail_as(e, FS_FAIL_IRREGULAR);
    result->fd = steal_fd(&fd);
    return 0;
}

static int run_write_new(struct run *run, struct str data, struct err *e) {
    int r = run_enter(run, FS_CHANGES, true, e);
    if (r == 0)
        r = run_refuse_dir(&run->at, e);
    if (r < 0)
        return r;
    mode_t mode = run->at.mode;
    if (run->c->follow && mode != 0 && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
        return fs_fail_not_file(e, run->c->path);
    struct fs_write w = {.path = run->c->path, .data = data.p, .n = data.n, .atomic = true};
    return fs_atomic_write(&w, &run->at, e);
}

/* -- looking -- */

/* Turns ENOENT into EACCES where the policy hides the path. Returns r or -EACCES, e set. */
static int run_unseen(struct run *run, int r, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    if (r != -ENOENT || run_enter(run, FS_READS, true, &why) != -EACCES)
        return r;
    err_fini(e);
    return fs_fail(e, EACCES);
}

static int run_canonicalize(struct run *run, struct buf *result, struct err *e) {
    _cleanup_free_ char *real = NULL;
    int r = fs_meta_canonicalize(run->c->path, &real, e);
    if (r < 0)
        return run_unseen(run, r, e);
    return fs_fail_check(e, buf_putz(result, real));
}

/* Tells the size only of the very object that may be read. */
static int run_metadata(struct run *run, struct buf *result, struct err *e) {
    const struct fs_call *c = run->c;
    _cleanup_err_ struct err none = ERR_INIT;
    struct stat st;
    struct fs_meta meta;
    bool link = c->follow && lstat(c->path, &st) == 0 && S_ISLNK(st.st_mode);
    int r = run_enter(run, FS_READS, true, &none);
    bool seen = r == 0 && run->at.mode != 0 && (c->follow || !S_ISLNK(run->at.mode));
    if (!seen || fs_meta_get_at(&run->at, c->follow, link, &meta) < 0) {
        r = fs_meta_get(NULL, c->path, c->follow, &meta, e);
        if (r < 0)
            return run_unseen(run, r, e);
        meta.size = 0;
    }
    return fs_fail_check(e, buf_put(result, &meta, sizeof meta));
}

/* A client that may not read a directory sees no names either. */
static int run_list(struct run *run, struct buf *result, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    const struct fs_call_path p = {
        .need = FS_READS, .path = run->c->path, .follow = true, .leaf = true};
    const struct fs_sink sink = {fs_item_encode, result};
    int r = run_pass(run, p, &run->at, &why);
    if (r == 0 && run->at.mode != 0)
        return fs_dir_read_at(&run->at, run->c->path, &run_never, &sink, e);
    return fs_fail(e, r == 0 ? ENOENT : -r);
}

static int run_read_link(struct run *run, struct buf *result, struct err *e) {
    const struct fs_call_path p = {.need = FS_READS, .path = run->c->path, .follow = true};
    struct fs_link link;
    int r = run_pass(run, p, &run->at, e);
    if (r < 0)
        return r;
    r = fs_link_read_place(&run->at, &link, e);
    return r < 0 ? r : fs_fail_check(e, buf_put(result, link.target, link.n));
}

/* Mounts decide what a walk sees; the gate is asked for the targets of links. */
static int run_walk(struct run *run, struct buf *result, struct err *e) {
    const struct fs_call *c = run->c;
    const struct fs_call_path root = {.need = FS_READS, .path = c->path, .follow = true};
    bool placed = c->links && run->g->pass(run->g->arg, &root, &run->at) == 0;
    const struct fs_place_check check = {run->g->check, run->g->arg};
    struct fs_walk w = {.path = c->path,
                        .uri = c->uri,
                        .max_depth = c->max_depth,
                        .max_directories = c->max_directories,
                        .max_entries = c->max_entries,
                        .follow_directory_links = c->follow_directory_links,
                        .prune_hidden = c->prune_hidden,
                        .links = c->links,
                        .check = &check,
                        .at = placed && S_ISDIR(run->at.mode) ? &run->at : NULL};
    const struct fs_sink sink = {fs_item_encode, result};
    return fs_walk(&w, &run_never, &sink, e);
}

/* -- changing -- */

static int run_mkdir(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    const struct fs_place_check check = {run->g->check, run->g->arg};
    if (strcmp(c->path, "/") == 0)
        return fs_mkdir(c->path, c->recursive, c->follow, e);
    int r = run_enter(run, FS_MAKES, c->recursive, e);
    if (r < 0)
        return r;
    if (c->follow && run->at.mode != 0 && !S_ISDIR(run->at.mode))
        return fs_fail(e, EEXIST);
    _cleanup_close_ int fd = c->recursive ? fs_mkdir_all_at(&run->at, &check) : -1;
    return fs_fail_check(e, c->recursive ? MIN(fd, 0) : fs_mkdir_at(&run->at));
}

static int run_remove(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    const struct fs_place_check check = {run->g->check, run->g->arg};
    struct fs_remove remove = {
        .path = c->path, .recursive = c->recursive, .force = c->force, .follow = c->follow};
    if (c->recursive && !c->follow) /* fs_remove() refuses it */
        return fs_remove(&remove, &run_never, e);
    int r = run_enter(run, FS_TAKES, false, e);
    if (r == -ENOENT && c->force && !run->g->hidden(run->g->arg, c->path)) {
        err_fini(e);
        return 0;
    }
    if (r < 0)
        return r;
    if (run->at.mode == 0) /* nobody decided on what came since */
        return c->force && !run->g->hidden(run->g->arg, c->path) ? 0 : fs_fail(e, ENOENT);
    remove.at = &run->at;
    remove.check = &check;
    return fs_remove(&remove, &run_never, e);
}

/* Lets both ends of a copy pass. */
static int run_enter_copy(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    const struct fs_call_path from = {.need = FS_READS, .path = c->path, .follow = true};
    int r = run_pass(run, from, &run->at, e);
    if (r < 0)
        return r;
    mode_t mode = run->at.mode;
    bool dir = S_ISDIR(mode), link = S_ISLNK(mode);
    if (mode == 0)
        return fs_fail(e, ENOENT);
    if (S_ISREG(mode) &&
        faccessat(run->at.dir, fs_place_name(&run->at), R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
        return fs_fail(e, errno);        /* before any error about the destination */
    if (!dir && !link && !S_ISREG(mode)) /* wherever it is to go */
        return fs_fail_as(e, FS_FAIL_COPY_KIND);
    if (dir && !c->recursive) /* fs_copy() refuses it */
        return 0;
    const struct fs_call_path to = {.need = dir    ? FS_MAKES
                                            : link ? FS_GETS
                                                   : FS_CHANGES,
                                    .path = c->destination,
                                    .follow = true,
                                    .leaf = !link,
                                    .parents = dir};
    r = run_pass(run, to, &run->to, e);
    if (r == 0 && dir && run->to.mode != 0 && !S_ISDIR(run->to.mode))
        return fs_fail(e, EEXIST);
    return r == 0 && S_ISREG(mode) ? run_refuse_dir(&run->to, e) : r;
}

static int run_copy(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    const struct fs_place_check check = {run->g->check, run->g->arg};
    int r = run_enter_copy(run, e);
    if (r < 0)
        return r;
    struct fs_copy copy = {.source = c->path,
                           .destination = run->to.path,
                           .recursive = c->recursive,
                           .from = &run->at,
                           .to = &run->to,
                           .check = &check};
    return fs_copy(&copy, &run_never, e);
}

static int run_rename(struct run *run, struct err *e) {
    const struct fs_call *c = run->c;
    struct fs_call_path from = {.need = FS_TAKES, .path = c->path, .follow = true, .tree = true};
    struct fs_call_path to = {.need = FS_GETS, .path = c->destination, .follow = true};
    if (strcmp(c->path, "/") == 0 || strcmp(c->destination, "/") == 0)
        return fs_fail(e, EBUSY);
    int r = run_pass(run, from, &run->at, e);
    if (r == 0 && run->at.mode == 0)
        r = fs_fail(e, ENOENT);
    if (r == 0)
        r = run_pass(run, to, &run->to, e);
    if (r < 0)
        return r;
    r = fs_rename_at(run->at.dir, fs_place_name(&run->at), run->to.dir, fs_place_name(&run->to),
                     c->replace);
    return fs_fail_check(e, r);
}

static int run_chmod(struct run *run, struct err *e) {
    int r = run_enter(run, FS_CHANGES, true, e);
    return r < 0 ? r : fs_meta_set_permissions_at(&run->at, (mode_t)run->c->mode, e);
}

static int run_times(struct run *run, struct err *e) {
    int r = run_enter(run, FS_CHANGES, true, e);
    return r < 0 ? r : fs_meta_set_times_at(&run->at, run->c->modified_ms, e);
}

/* The target is not looked at: a path through the link is decided on by where it leads. */
static int run_symlink(struct run *run, struct err *e) {
    const struct fs_call_path p = {.need = FS_GETS, .path = run->c->path, .follow = true};
    int r = run_pass(run, p, &run->at, e);
    return r < 0 ? r : fs_link_make_place(&run->at, run->c->target, e);
}

static int run_call(struct run *run, struct str data, struct fs_call_result *result,
                    struct err *e) {
    switch (run->c->op) {
    case FS_CALL_READ:
    case FS_CALL_REPLACE:
    case FS_CALL_UPDATE:
    case FS_CALL_WRITE: return run_open(run, result, e);
    case FS_CALL_WRITE_NEW: return run_write_new(run, data, e);
    case FS_CALL_MKDIR: return run_mkdir(run, e);
    case FS_CALL_METADATA: return run_metadata(run, &result->bytes, e);
    case FS_CALL_CANONICALIZE: return run_canonicalize(run, &result->bytes, e);
    case FS_CALL_LIST: return run_list(run, &result->bytes, e);
    case FS_CALL_WALK: return run_walk(run, &result->bytes, e);
    case FS_CALL_REMOVE: return run_remove(run, e);
    case FS_CALL_COPY: return run_copy(run, e);
    case FS_CALL_RENAME: return run_rename(run, e);
    case FS_CALL_CHMOD: return run_chmod(run, e);
    case FS_CALL_TIMES: return run_times(run, e);
    case FS_CALL_READ_LINK: return run_read_link(run, &result->bytes, e);
    case FS_CALL_SYMLINK: return run_symlink(run, e);
    }
    return fs_fail(e, EINVAL);
}

int fs_call_run(const struct fs_call *c, struct str data, const struct fs_call_access *g,
                struct fs_call_result *result, struct err *e) {
    struct run run = {.c = c, .g = g, .at = FS_PLACE_INIT, .to = FS_PLACE_INIT};
    int r = run_call(&run, data, result, e);
    fs_place_fini(&run.at);
    fs_place_fini(&run.to);
    return r;
}
