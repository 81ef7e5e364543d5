#include "client/copyup.h"

#include "client/copyup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define TRIES 3 /* for a source that changes, a part that someone takes, a handle that is lost */
#define USUAL_MODE 0644

static void job_free(struct copyjob *j) {
    struct copyup *u = container_of(j, struct copyup, job);
    calls_drop(&u->request);
    fshandle_drop(&u->tail);
    blockio_stop(&u->io);
    rawfile_free(u->raw);
    fshandle_free(u->handle);
    util_close_fd(&u->fd);
    xs_error_fini(&u->why);
    free(u->part);
    free(u->data);
    free(u->remote);
    free(u->shown);
    free(u);
}

void copyup_failed(struct copyup *u, struct xs_error *e) {
    copyop_job_failed(&u->job, u->shown, e);
}

/* -- one request at a time -- */

static void answered(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct copyup *u = container_of(r, struct copyup, request);
    u->then(u, err, result, e);
}

struct params copyup_begin(struct copyup *u, const char *method, const char *path, const char *to) {
    return copyop_begin(u->job.c, &u->request, method, path, to);
}

/* A request that cannot be sent is answered by `then` too. */
void copyup_ask(struct copyup *u, struct params *p, copyup_after *then) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    u->then = then;
    int r = copyop_send(u->job.c, &u->request, p, answered, &e);
    if (r < 0)
        copyup_failed(u, &e);
}

void copyup_ask_path(struct copyup *u, const char *method, const char *path, copyup_after *then) {
    struct params p = copyup_begin(u, method, path, NULL);
    copyup_ask(u, &p, then);
}

static bool is_missing(int err, const struct xs_error *e) {
    return err == XS_EREMOTE && (e->rpc == -32004 || e->os == ENOENT);
}

/* -- the end of both ways -- */

unsigned copyup_mode(const struct copyop *c, mode_t local) {
    return c->preserve ? local & 07777 : local & 0777 & ~c->mask;
}

/* The permissions to set, or -1: none. */
static int mode_to_set(const struct copyup *u) {
    const struct copyop *c = u->job.c;
    if (c->preserve || !u->exists)
        return (int)copyup_mode(c, u->st.st_mode);
    return u->part != NULL && u->has_old_mode ? (int)u->old_mode : -1;
}

static bool wants_mode(struct copyup *u) {
    int mode = mode_to_set(u);
    if (mode < 0 || (!u->job.c->preserve && !u->exists && mode == USUAL_MODE))
        return false;
    if (client_can(copyup_client(u), "fsSetPermissions"))
        return true;
    copyop_warn_once(u->job.c, COPYOP_NO_MODE, "the server cannot set permissions");
    return false;
}

static bool wants_times(struct copyup *u) {
    if (!u->job.c->preserve)
        return false;
    if (client_can(copyup_client(u), "fsTimes"))
        return true;
    copyop_warn_once(u->job.c, COPYOP_NO_TIMES, "the server cannot set times");
    return false;
}

static void place(struct copyup *u);

static void over(struct copyup *u) {
    struct copyop *c = u->job.c;
    copyop_file(c);
    copyop_done(&u->job);
}

static void have_times(struct copyup *u, int err, const struct json_node *result,
                       struct xs_error *e) {
    (void)result;
    if (err < 0)
        copyup_failed(u, e);
    else if (u->part != NULL)
        place(u);
    else
        over(u);
}

static void set_times(struct copyup *u) {
    if (!wants_times(u)) {
        have_times(u, 0, NULL, NULL);
        return;
    }
    int64_t ms = (int64_t)u->st.st_mtim.tv_sec * 1000 + u->st.st_mtim.tv_nsec / 1000000;
    struct params p = copyup_begin(u, "fs/setTimes", u->part != NULL ? u->part : u->remote, NULL);
    if (p.b != NULL)
        params_i64(&p, "modifiedAtMs", ms);
    copyup_ask(u, &p, have_times);
}

static void have_mode(struct copyup *u, int err, const struct json_node *result,
                      struct xs_error *e) {
    (void)result;
    if (err < 0)
        copyup_failed(u, e);
    else
        set_times(u);
}

static void set_mode(struct copyup *u) {
    if (!wants_mode(u)) {
        set_times(u);
        return;
    }
    struct params p =
        copyup_begin(u, "fs/setPermissions", u->part != NULL ? u->part : u->remote, NULL);
    if (p.b != NULL)
        params_u64(&p, "mode", (uint64_t)mode_to_set(u));
    copyup_ask(u, &p, have_mode);
}

/* -- in one message -- */

static void have_written(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)result;
    if (err < 0) {
        copyup_failed(u, e);
        return;
    }
    copyop_bytes(u->job.c, (uint64_t)u->st.st_size, true);
    set_mode(u);
}

ssize_t copyup_read(int fd, char *to, size_t n, uint64_t offset) {
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, to + got, n - got, (off_t)(offset + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

/* A file that grows is copied as it is now; up to the limit of a message. */
static void write_whole(struct copyup *u) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct copyop *c = u->job.c;
    u->data = malloc(COPYOP_SMALL);
    ssize_t n = u->data == NULL ? -ENOMEM : copyup_read(u->fd, u->data, COPYOP_SMALL, 0);
    if (n < 0) {
        xs_error_sys(&e, XS_ELOCAL, (int)-n, "%s", u->shown);
        copyup_failed(u, &e);
        return;
    }
    u->st.st_size = n;
    bool atomic = client_can(copyup_client(u), "fsAtomicWrite");
    if (!atomic && c->atomic)
        copyop_warn_once(c, COPYOP_NOT_ATOMIC, "the server replaces files in place");
    struct params p = copyup_begin(u, "fs/writeFile", u->remote, NULL);
    if (p.b != NULL) {
        if (atomic && c->atomic)
            params_bool(&p, "atomic", true);
        params_base64(&p, "dataBase64", u->data, (size_t)n);
    }
    free(steal_ptr(&u->data));
    copyup_ask(u, &p, have_written);
}

/* -- in blocks: the part -- */

bool copyup_can_rename(const struct copyup *u) {
    return client_can(copyup_client(u), "fsRename");
}

void copyup_no_memory(struct copyup *u) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_set(&e, XS_ENOMEM, "out of memory");
    copyup_failed(u, &e);
}

static void begin_in_place(struct copyup *u);

static void uncount(struct copyup *u) {
    struct meter *m = &u->job.c->meter;
    m->bytes -= MIN(u->counted, m->bytes);
    u->counted = 0;
}

static void part_dropped(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    copyup_part_begin(u);
}

/* From the beginning, with a new part. */
static void again(struct copyup *u, struct xs_error *e) {
    if (++u->tries >= TRIES) {
        copyup_failed(u, e);
        return;
    }
    uncount(u);
    fshandle_free(steal_ptr(&u->handle));
    if (fstat(u->fd, &u->st) < 0) {
        xs_error_sys(e, XS_ELOCAL, errno, "%s", u->shown);
        copyup_failed(u, e);
        return;
    }
    if (u->part == NULL)
        begin_in_place(u);
    else if (u->alone) /* nothing else names it */
        copyup_part_remove(u, u->part, part_dropped);
    else
        copyup_part_begin(u);
}

/* -- in blocks: the end -- */

static void note_removed(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    over(u);
}

static void placed(struct copyup *u) {
    free(steal_ptr(&u->part));
    copyup_part_sweep(u, note_removed);
}

static void part_removed(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    placed(u);
}

/* The part is not there: an answer was lost and the rename has happened, or another copy has taken
 * the part away. */
static void looked(struct copyup *u, int err, const struct json_node *result, struct xs_error *e) {
    struct fsanswer_stat s;
    bool is_there = err == 0 && fsanswer_stat(result, &s) == 0 && u->job.c->preserve &&
                    s.bytes == (uint64_t)u->st.st_size &&
                    s.modified_ms / 1000 == (int64_t)u->st.st_mtim.tv_sec;
    if (is_there) {
        placed(u);
        return;
    }
    if (err == 0)
        xs_error_set(e, XS_EREMOTE, "%s: another copy has taken the part away", u->shown);
    u->alone = true;
    again(u, e);
}

static void renamed(struct copyup *u, int err, const struct json_node *result, struct xs_error *e) {
    (void)result;
    if (is_missing(err, e))
        copyup_ask_path(u, "fs/getMetadata", u->remote, looked);
    else if (err < 0)
        copyup_failed(u, e);
    else if (copyup_can_rename(u))
        placed(u);
    else
        copyup_part_remove(u, u->part, part_removed);
}

static void place(struct copyup *u) {
    bool rename = copyup_can_rename(u);
    struct params p = copyup_begin(u, rename ? "fs/rename" : "fs/copy", u->part, u->remote);
    if (p.b != NULL && !rename)
        params_bool(&p, "recursive", false);
    copyup_ask(u, &p, renamed);
}

static void closed(struct fshandle *h, int err, struct xs_error *e) {
    struct copyup *u = h->user;
    fshandle_free(steal_ptr(&u->handle));
    if (err < 0)
        copyup_failed(u, e);
    else
        set_mode(u);
}

/* -- in blocks: the data -- */

static const void *give(struct blockio *io, uint64_t offset, size_t n) {
    struct copyup *u = container_of(io, struct copyup, io);
    return copyup_read(u->fd, u->data, n, offset) == (ssize_t)n ? u->data : NULL;
}

static void moved(struct blockio *io, size_t n) {
    struct copyup *u = container_of(io, struct copyup, io);
    u->counted += n;
    copyop_bytes(u->job.c, n, true);
}

static void cleaned_note(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    struct xs_error why = XS_ERROR_INIT;
    xs_error_move(&why, &u->why);
    copyup_failed(u, &why);
    xs_error_fini(&why);
}

static void cleaned_part(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    copyup_part_drop_note(u, cleaned_note);
}

/* A block was refused: the part has a hole or fills the disk. Nobody goes on with it. */
static void clean(struct copyup *u, struct xs_error *e) {
    fshandle_free(steal_ptr(&u->handle));
    if (u->part == NULL) {
        copyup_failed(u, e);
        return;
    }
    xs_error_move(&u->why, e);
    copyup_part_remove(u, u->part, cleaned_part);
}

static bool has_changed(const struct copyup *u) {
    struct stat now;
    return fstat(u->fd, &now) < 0 || now.st_size != u->st.st_size ||
           now.st_mtim.tv_sec != u->st.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != u->st.st_mtim.tv_nsec;
}

static void blocks_done(struct blockio *io, int err, struct xs_error *e) {
    struct copyup *u = container_of(io, struct copyup, io);
    u->job.c->pace = io->pace;
    if ((err == 0 || err == XS_ELOCAL) && has_changed(u)) {
        xs_error_set(e, XS_ELOCAL, "%s: changes while it is copied", u->shown);
        again(u, e);
    } else if (err == XS_ELOST) {
        again(u, e);
    } else if (err == XS_EREMOTE) {
        clean(u, e);
    } else if (err < 0) {
        copyup_failed(u, e);
    } else {
        int r = fshandle_close(u->handle, closed, u, e);
        if (r < 0)
            copyup_failed(u, e);
    }
}

static void blocks(struct copyup *u) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    u->io.handle = u->handle;
    u->io.next = u->kept;
    u->io.end = (uint64_t)u->st.st_size;
    u->io.give = give;
    u->io.moved = moved;
    u->io.done = blocks_done;
    u->io.fixed = u->job.c->in_flight;
    u->io.pace = u->job.c->pace;
    u->counted = u->kept;
    copyop_bytes(u->job.c, u->kept, false);
    int r = blockio_start(&u->io, &e);
    if (r > 0)
        blocks_done(&u->io, 0, &e);
    else if (r < 0)
        copyup_failed(u, &e);
}

static bool raw_give(struct rawfile *r, uint64_t offset, void *data, size_t n) {
    struct copyup *u = r->user;
    return copyup_read(u->fd, data, n, offset) == (ssize_t)n;
}

static void raw_moved(struct rawfile *r, size_t n) {
    moved(&((struct copyup *)r->user)->io, n);
}

/* How much of the file is there: it grew in order, if it was this one. A proxy may have led the
 * bytes to another server. */
static void raw_measured(struct copyup *u, int err, const struct json_node *result,
                         struct xs_error *e) {
    struct fsanswer_stat s;
    if (err < 0 && err != XS_EREMOTE) {
        copyup_failed(u, e);
        return;
    }
    uint64_t there = err == 0 && fsanswer_stat(result, &s) == 0 ? s.bytes : 0;
    uint64_t size = (uint64_t)u->st.st_size;
    if (u->raw_complete && there == size) {
        blocks_done(&u->io, 0, e);
        return;
    }
    uncount(u);
    if (there > u->kept && there <= size)
        u->kept = there;
    blocks(u);
}

static void raw_done(struct rawfile *r, int err, struct xs_error *e) {
    struct copyup *u = r->user;
    rawfile_free(steal_ptr(&u->raw));
    err = copyop_raw_ended(u->job.c, u->shown, err, e);
    u->raw_complete = err == 0;
    if (err < 0)
        blocks_done(&u->io, err, e);
    else
        copyup_ask_path(u, "fs/getMetadata", u->part != NULL ? u->part : u->remote, raw_measured);
}

/* The rest of the file. */
static void transfer(struct copyup *u) {
    const char *path = u->part != NULL ? u->part : u->remote;
    u->io.pace = u->job.c->pace;
    u->raw = copyop_raw(u->job.c, path, u->kept, (uint64_t)u->st.st_size, true);
    if (u->raw == NULL) {
        blocks(u);
        return;
    }
    u->raw->give = raw_give;
    u->raw->moved = raw_moved;
    u->raw->done = raw_done;
    u->raw->user = u;
    u->counted = u->kept;
    copyop_bytes(u->job.c, u->kept, false);
    rawfile_start(u->raw);
}

static void narrowed(struct copyup *u, int err, const struct json_node *result,
                     struct xs_error *e) {
    (void)result;
    if (err < 0)
        copyup_failed(u, e);
    else
        transfer(u);
}

/* Nobody may read the part who may not read the file. */
static void narrow(struct copyup *u) {
    int mode = mode_to_set(u);
    if (mode < 0 || (USUAL_MODE & ~mode) == 0 ||
        !client_can(copyup_client(u), "fsSetPermissions")) {
        transfer(u);
        return;
    }
    const char *path = u->part != NULL ? u->part : u->remote;
    struct params p = copyup_begin(u, "fs/setPermissions", path, NULL);
    if (p.b != NULL)
        params_u64(&p, "mode", ((unsigned)mode & 0777) | 0600);
    copyup_ask(u, &p, narrowed);
}

static void part_open(struct fshandle *h, int err) {
    struct copyup *u = h->user;
    if (err < 0) {
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_copy(&e, &h->why);
        copyup_failed(u, &e);
        return;
    }
    if (u->kept > 0)
        transfer(u);
    else
        narrow(u);
}

void copyup_open_part(struct copyup *u) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    enum xs_open mode = u->kept > 0 ? XS_OPEN_UPDATE : XS_OPEN_REPLACE;
    u->handle = fshandle_open(u->job.c->fs, u->part, mode, part_open, u, &e);
    if (u->handle == NULL)
        copyup_failed(u, &e);
}

/* Straight to the name. */
static void begin_in_place(struct copyup *u) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    u->kept = 0;
    if (u->data == NULL)
        u->data = malloc(CLIENT_BLOCK_MAX);
    if (u->data == NULL) {
        copyup_no_memory(u);
        return;
    }
    u->handle = fshandle_open(u->job.c->fs, u->remote, XS_OPEN_REPLACE, part_open, u, &e);
    if (u->handle == NULL)
        copyup_failed(u, &e);
}

/* -- the beginning -- */

static void choose(struct copyup *u) {
    struct copyop *c = u->job.c;
    /* One message makes the file with the usual permissions; a secret is not readable for as long
     * as it takes to set others. */
    bool is_secret = !u->exists && (USUAL_MODE & ~copyup_mode(c, u->st.st_mode)) != 0 &&
                     client_can(copyup_client(u), "fsSetPermissions");
    if (u->st.st_size <= COPYOP_SMALL && !(is_secret && copyup_can_rename(u))) {
        write_whole(u);
    } else if (!client_can(copyup_client(u), "fileWriteStreaming")) {
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_set(&e, XS_ENOTSUP, "%s: the server takes no files in blocks", u->shown);
        copyup_failed(u, &e);
    } else {
        if (c->sync)
            copyop_warn_once(c, COPYOP_NO_SYNC, "the server brings only small files to disk");
        if (!copyup_can_rename(u))
            copyop_warn_once(c, COPYOP_NOT_ATOMIC, "the server replaces files in place");
        if (c->atomic)
            copyup_part_begin(u);
        else
            begin_in_place(u);
    }
}

static void have_old(struct copyup *u, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct fsanswer_stat s;
    if (err < 0 && !is_missing(err, e)) {
        copyup_failed(u, e);
        return;
    }
    u->exists = err == 0;
    if (u->exists) {
        if (fsanswer_stat(result, &s) < 0)
            xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
        else if (s.kind == FSANSWER_DIRECTORY)
            xs_error_set(e, XS_EREMOTE, "%s: is a directory", u->remote);
        if (e->code < 0) {
            copyup_failed(u, e);
            return;
        }
        u->has_old_mode = s.has_mode;
        u->old_mode = s.mode;
    }
    choose(u);
}

int copyup_start(struct copyop *c, const struct copyup_file *f, struct xs_error *e) {
    struct copyup *u = calloc(1, sizeof(*u));
    if (u == NULL) {
        close(f->fd);
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    }
    u->fd = f->fd;
    u->remote = strdup(f->remote);
    u->shown = strdup(f->shown);
    bool has_stat = fstat(u->fd, &u->st) == 0;
    u->job.is_large = u->st.st_size > COPYOP_SMALL;
    u->job.held = u->job.is_large ? 0 : (size_t)u->st.st_size;
    copyop_add(c, &u->job, job_free);
    if (u->remote == NULL || u->shown == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    if (!has_stat)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", f->shown);
    if (c->name == NULL)
        copyop_name(c, u->shown);
    if (f->fresh)
        choose(u);
    else
        copyup_ask_path(u, "fs/getMetadata", u->remote, have_old);
    return 0;
}
