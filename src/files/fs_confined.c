#include "files/fs_confined.h"

#include "fs/fs_site.h"
#include "files/files_host.h"
#include "files/fs_json.h"
#include "confine/fs_helper_main.h"
#include "process/session.h"

#include <errno.h>
#include <fcntl.h>

/* Plans what the profile asks for. 0 or -errno with e set. */
static int confined_plan(const struct files_host *host, const struct profile *profile,
                         struct arena *a, struct plan *plan, struct err *e) {
    char cwd[PATH_MAX];
    const char *home = getenv("HOME");
    const struct profile_context context = {
        .call = PROFILE_FILES,
        .cwd = getcwd(cwd, sizeof cwd) != NULL && cwd[0] == '/' ? cwd : "/",
        .tmpdir = getenv("TMPDIR"),
        .home = home != NULL && home[0] != '\0' ? home : host->processes->sandbox.home,
        .inherit_pids = host->processes->sandbox.inherit_pids,
    };
    return profile_plan(profile, &context, a, plan, e);
}

int fs_confined_begin(struct fs_confined *x, struct rpc_call *c, const struct profile *profile,
                      struct err *e) {
    struct session *s = c->peer->user;
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct plan plan;
    *x = (struct fs_confined){.call = BUF_INIT(FS_CALL_BYTES_MAX), .data = -1};
    x->devices = &s->host->files->confined_devices;
    int r = confined_plan(s->host->files, profile, &a, &plan, e);
    if (r == 0 && (x->helper = fs_helper_get(s, &plan, e)) == NULL)
        r = -ENOMEM;
    if (r < 0)
        fs_confined_fini(x);
    return r;
}

int fs_confined_set(struct fs_confined *x, const struct fs_call *call, struct err *e) {
    enum fs_call_op op = call->op;
    x->op = op;
    x->write = op == FS_CALL_WRITE || op == FS_CALL_REPLACE || op == FS_CALL_UPDATE;
    x->call.len = 0;
    return fs_fail_check(e, fs_call_encode(call, &x->call));
}

int fs_confined_init(struct fs_confined *x, struct rpc_call *c, const struct fs_params *p,
                     enum fs_call_op op, struct err *e) {
    const struct fs_call call = {
        .op = op,
        .path = p->path.native,
        .destination = p->destination.native,
        .uri = op == FS_CALL_WALK ? p->uri.p : NULL,
        .follow = p->follow,
        .recursive = p->recursive,
        .force = p->force,
        .replace = p->replace,
        .target = p->target_bytes,
        .links = p->walk.links,
        .follow_directory_links = p->walk.follow_directory_links,
        .prune_hidden = p->walk.prune_hidden,
        .max_depth = p->walk.max_depth,
        .max_directories = p->walk.max_directories,
        .max_entries = p->walk.max_entries,
        .mode = p->mode,
        .modified_ms = p->modified_ms,
    };
    int r = fs_confined_begin(x, c, p->profile, e);
    if (r < 0)
        return r;
    r = fs_confined_set(x, &call, e);
    if (r < 0)
        fs_confined_fini(x);
    return r;
}

void fs_confined_fini(struct fs_confined *x) {
    if (x->call.max == 0) /* zeroed: not confined */
        return;
    if (x->helper != NULL)
        fs_helper_unref(steal_ptr(&x->helper));
    buf_fini(&x->call);
    util_close_fd(&x->data);
}

/* -- in a thread -- */

int fs_confined_attach(struct fs_confined *x, struct str data, struct err *e) {
    if (x->data >= 0)
        return 0;
    x->data = fs_helper_main_memfd(data);
    return x->data < 0 ? fs_fail(e, -steal_fd(&x->data)) : 0;
}

static int confined_call(struct fs_confined *x, struct fs_helper_reply *reply, struct err *e) {
    int r = fs_helper_call(x->helper, buf_str(&x->call), x->data, reply, e);
    x->tries += r == FS_HELPER_RENEW;
    x->retired += r == FS_HELPER_RETIRED;
    if (r <= 0 || (x->tries < FS_CONFINED_TRIES && x->retired < FS_CONFINED_RETIRED))
        return r;
    err_set(e, ERR_INTERNAL, "fs sandbox helper failed: what it is to confine keeps changing");
    return -EAGAIN;
}

/* Writes the result that came. 0 or -errno with e set. */
static int confined_write(const struct fs_confined *x, struct str bytes, struct buf *result,
                          struct err *e) {
    int r = fs_json_call(result, x->op, bytes);
    if (r == -EINVAL)
        return fs_helper_distrust(x->helper, e);
    if (r == -ENOBUFS && x->op == FS_CALL_LIST)
        return fs_fail_as(e, FS_FAIL_LIST_SIZE);
    return fs_fail_check(e, r);
}

int fs_confined_run(struct fs_confined *x, struct buf *result, struct err *e) {
    struct fs_helper_reply reply = {.bytes = BUF_INIT(FS_RESULT_MAX), .fd = -1};
    int r = confined_call(x, &reply, e);
    if (r == 0)
        r = reply.fd < 0 ? confined_write(x, buf_str(&reply.bytes), result, e)
                         : fs_helper_distrust(x->helper, e);
    buf_fini(&reply.bytes);
    util_close_fd(&reply.fd);
    return MIN(r, 1);
}

int fs_confined_ask(struct fs_confined *x, struct buf *bytes, struct err *e) {
    struct fs_helper_reply reply = {.bytes = BUF_INIT(FS_RESULT_MAX), .fd = -1};
    int r = confined_call(x, &reply, e);
    if (r == 0 && reply.fd >= 0)
        r = fs_helper_distrust(x->helper, e);
    if (r == 0)
        r = fs_fail_check(e, buf_put(bytes, reply.bytes.p, reply.bytes.len));
    buf_fini(&reply.bytes);
    util_close_fd(&reply.fd);
    return MIN(r, 1);
}

int fs_confined_distrust(struct fs_confined *x, struct err *e) {
    return fs_helper_distrust(x->helper, e);
}

/* Checks that the helper sent a file of the right kind, opened as asked. 0 or -EIO. */
static int confined_check(const struct fs_confined *x, int fd, struct statx *st) {
    int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) || fs_statx(fd, "", AT_EMPTY_PATH, st) < 0)
        return -EIO;
    if (!S_ISREG(st->stx_mode) && !(x->write && S_ISCHR(st->stx_mode)))
        return -EIO;
    return (flags & O_ACCMODE) == (x->write ? O_WRONLY : O_RDONLY) ? 0 : -EIO;
}

/*
 * Takes the set-user-ID and set-group-ID bits from a file that will be written. The kernel does so
 * when a sandboxed command writes; it would let this process, which may be root, keep them.
 */
static int confined_drop_ids(int fd, struct statx *st) {
    mode_t ids = S_ISUID | ((st->stx_mode & S_IXGRP) ? S_ISGID : 0u);
    if (!S_ISREG(st->stx_mode) || (st->stx_mode & ids) == 0)
        return 0;
    st->stx_mode = (uint16_t)(st->stx_mode & ~ids);
    return fchmod(fd, st->stx_mode & 07777) < 0 ? -errno : 0;
}

int fs_confined_open(struct fs_confined *x, struct fs_file *f, struct err *e) {
    struct fs_helper_reply reply = {.bytes = BUF_INIT(FS_RESULT_MAX), .fd = -1};
    int r = confined_call(x, &reply, e);
    _cleanup_close_ int fd = reply.fd;
    struct statx st;
    buf_fini(&reply.bytes);
    if (r != 0)
        return MIN(r, 1);
    if (confined_check(x, fd, &st) < 0)
        return fs_helper_distrust(x->helper, e);
    r = x->write ? confined_drop_ids(fd, &st) : 0;
    if (r < 0)
        return fs_fail(e, -r);
    bool replace = x->write && x->op != FS_CALL_UPDATE && S_ISREG(st.stx_mode);
    if (replace && ftruncate(fd, 0) < 0)
        return fs_fail(e, errno);
    if (replace)
        st.stx_size = 0;
    *f = fs_file_adopt(x->devices, &fd, &st, !x->write);
    return 0;
}

/* -- in the loop -- */

int fs_confined_again(struct fs_confined *x, struct session *s, struct err *e) {
    if (fs_helper_is_useless(x->helper)) {
        struct fs_helper *old = x->helper;
        x->helper = fs_helper_renew(s, old, e);
        fs_helper_unref(old);
    }
    return x->helper == NULL ? -EAGAIN : fs_helper_start(x->helper, e);
}
