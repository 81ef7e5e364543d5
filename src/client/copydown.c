#include "client/copydown.h"

#include "base/uri.h"

#include <errno.h>
#include <fcntl.h>

#define TRIES 3 /* for a file that changes meanwhile */

struct copydown {
    struct copyjob job; /* first */
    char *remote, *shown, *leaf;
    int dir;
    void (*done)(void *user);
    void *user;
    struct calls_request stat_request, read_request;
    bool has_stat, awaits_whole, has_whole, too_large;
    struct fsanswer_stat st;
    char *whole; /* owned: the content, when it came before the metadata */
    size_t whole_n;
    struct localpart part;
    struct fshandle *handle;
    struct blockio io;
    struct rawfile *raw;     /* owned; or NULL */
    bool raw_done;           /* it was tried */
    struct fshandle_io tail; /* the last bytes of the part, to compare */
    uint64_t kept;
    uint64_t counted; /* bytes that the progress has */
    int tries;
    bool drops_part; /* it would only fill the disk */
};

static void job_free(struct copyjob *j) {
    struct copydown *d = container_of(j, struct copydown, job);
    calls_drop(&d->stat_request);
    calls_drop(&d->read_request);
    fshandle_drop(&d->tail);
    blockio_stop(&d->io);
    rawfile_free(d->raw);
    fshandle_free(d->handle);
    localpart_close(&d->part, d->job.c->resume && d->job.is_large && !d->drops_part);
    util_close_fd(&d->dir);
    free(d->whole);
    free(d->remote);
    free(d->shown);
    free(d->leaf);
    free(d);
}

/* The job is over, well or not; `err` negative: e tells why. */
static void over(struct copydown *d, int err, struct xs_error *e) {
    struct copyop *c = d->job.c;
    if (err < 0 && (e->os == ENOSPC || e->os == EDQUOT))
        d->drops_part = true;
    /* Before the directory gets its time. */
    localpart_close(&d->part, c->resume && d->job.is_large && !d->drops_part);
    if (d->done != NULL)
        d->done(d->user);
    if (err < 0) {
        copyop_job_failed(&d->job, d->shown, e);
        return;
    }
    copyop_file(c);
    copyop_done(&d->job);
}

static int local_error(const struct copydown *d, int r, struct xs_error *e) {
    if (r == -ENOMEM)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    return xs_error_sys(e, XS_ELOCAL, -r, "%s", d->shown);
}

mode_t copydown_mode(const struct copyop *c, const struct fsanswer_stat *st, mode_t otherwise) {
    mode_t mode = st->has_mode ? st->mode : otherwise;
    /* The file will be ours: as cp -p without its owner, never a program that changes its user. */
    if (c->preserve && st->has_mode)
        return mode & 01777;
    return mode & 0777 & ~c->mask;
}

/* An existing file keeps its permissions, unless they are to be those of the source. */
static struct localtree_traits traits_of(const struct copydown *d) {
    const struct copyop *c = d->job.c;
    struct localtree_traits t = {.has_mode = true, .mode = copydown_mode(c, &d->st, 0666)};
    struct stat old;
    if (!c->preserve && fstatat(d->dir, d->leaf, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(old.st_mode))
        t.mode = old.st_mode & 07777;
    t.has_time = c->preserve;
    if (__builtin_mul_overflow(d->st.modified_ms, (int64_t)1000000, &t.modified_ns))
        t.has_time = false;
    return t;
}

static struct partnote note_of(const struct copydown *d) {
    struct partnote n = {.bytes = d->st.bytes};
    _cleanup_buf_ struct buf b = BUF_INIT(4 * URI_PATH_MAX);
    if (uri_from_path(&b, str_of(d->remote)) == 0)
        partnote_source(buf_str(&b), n.source);
    if (__builtin_mul_overflow(d->st.modified_ms, (int64_t)1000000, &n.modified_ns))
        n.modified_ns = d->st.modified_ms;
    return n;
}

static int open_part(struct copydown *d, struct xs_error *e) {
    struct copyop *c = d->job.c;
    struct partnote want = note_of(d);
    localpart_close(&d->part, false);
    mode_t mode = copydown_mode(c, &d->st, 0666);
    int r = localpart_open(&d->part, d->dir, d->leaf, mode, c->atomic ? &want : NULL, c->atomic,
                           &d->kept);
    return r < 0 ? local_error(d, r, e) : 0;
}

static int finish_part(struct copydown *d, uint64_t size, struct xs_error *e) {
    struct localtree_traits t = traits_of(d);
    int r = localpart_finish(&d->part, size, &t, d->job.c->sync);
    return r < 0 ? local_error(d, r, e) : 0;
}

/* -- small files -- */

static int save_whole(struct copydown *d, struct str data, struct xs_error *e) {
    int r = open_part(d, e);
    if (r < 0)
        return r;
    r = localpart_write(&d->part, 0, data.p, data.n);
    if (r < 0)
        return local_error(d, r, e);
    copyop_bytes(d->job.c, data.n, true);
    return finish_part(d, data.n, e);
}

static int large(struct copydown *d, struct xs_error *e);
static int ask_whole(struct copydown *d, struct xs_error *e);

/* What to do when the metadata is there, and maybe the content. 1: it is done. */
static int decide(struct copydown *d, struct xs_error *e) {
    if (!d->has_stat || d->awaits_whole)
        return 0;
    if (d->st.kind != FSANSWER_FILE)
        return xs_error_set(e, XS_EREMOTE, "%s: is not a regular file", d->shown);
    if (d->has_whole) {
        int r = save_whole(d, (struct str){d->whole, d->whole_n}, e);
        return r < 0 ? r : 1;
    }
    if (d->st.bytes <= COPYOP_SMALL && !d->too_large)
        return ask_whole(d, e);
    return large(d, e);
}

static void decided(struct copydown *d, int r, struct xs_error *e) {
    if (r != 0)
        over(d, r, e);
}

static void have_stat(struct calls_request *req, int err, const struct json_node *result,
                      struct xs_error *e) {
    struct copydown *d = container_of(req, struct copydown, stat_request);
    if (err == 0 && fsanswer_stat(result, &d->st) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    if (err == 0) {
        d->has_stat = true;
        d->job.c->meter.total += d->st.bytes;
        err = decide(d, e);
    }
    decided(d, err, e);
}

static int keep_whole(struct copydown *d, struct str data, struct xs_error *e) {
    d->whole = malloc(data.n + 1);
    if (d->whole == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    if (data.n > 0)
        memcpy(d->whole, data.p, data.n);
    d->whole_n = data.n;
    d->has_whole = true;
    return 0;
}

static void have_whole(struct calls_request *req, int err, const struct json_node *result,
                       struct xs_error *e) {
    struct copydown *d = container_of(req, struct copydown, read_request);
    struct str data;
    d->awaits_whole = false;
    if (err == XS_EREMOTE && strstr(xs_error_text(e), "too large to read") != NULL) {
        d->too_large = true;
        err = decide(d, e);
    } else if (err == 0) {
        /* It waits in memory for the metadata only when the server was told the limit. Without
         * fsReadMaxBytes the metadata came first, and the file may have grown since. */
        size_t max = d->has_stat ? CLIENT_MESSAGE_MAX : COPYOP_SMALL;
        err = fsanswer_data(result, "dataBase64", max, &data);
        if (err < 0)
            err = xs_error_set(e, XS_EPROTO, "fs/readFile: a malformed answer");
        else if (!d->has_stat)
            err = keep_whole(d, data, e);
        else if (d->st.kind != FSANSWER_FILE)
            err = decide(d, e);
        else
            err = save_whole(d, data, e) < 0 ? e->code : 1;
    }
    decided(d, err, e);
}

static int ask_whole(struct copydown *d, struct xs_error *e) {
    struct params p = copyop_begin(d->job.c, &d->read_request, "fs/readFile", d->remote, NULL);
    if (p.b != NULL)
        params_u64(&p, "maxBytes", COPYOP_SMALL);
    int r = copyop_send(d->job.c, &d->read_request, &p, have_whole, e);
    d->awaits_whole = r == 0;
    return r;
}

static int ask_stat(struct copydown *d,
                    void (*done)(struct calls_request *, int, const struct json_node *,
                                 struct xs_error *),
                    struct xs_error *e) {
    struct params p = copyop_begin(d->job.c, &d->stat_request, "fs/getMetadata", d->remote, NULL);
    return copyop_send(d->job.c, &d->stat_request, &p, done, e);
}

/* -- large files -- */

static int take(struct blockio *io, uint64_t offset, struct str data, struct xs_error *e) {
    struct copydown *d = container_of(io, struct copydown, io);
    int r = localpart_write(&d->part, offset, data.p, data.n);
    return r < 0 ? local_error(d, r, e) : 0;
}

static void moved(struct blockio *io, size_t n) {
    struct copydown *d = container_of(io, struct copydown, io);
    d->counted += n;
    copyop_bytes(d->job.c, n, true);
}

/* Bytes that will be copied once more, or never were. */
static void uncount(struct copydown *d) {
    d->job.c->meter.bytes -= MIN(d->counted, d->job.c->meter.bytes);
    d->counted = 0;
}

/* Bytes that are there already, instead of what was counted. */
static void count_kept(struct copydown *d) {
    uncount(d);
    d->counted = d->kept;
    copyop_bytes(d->job.c, d->kept, false);
}

static void checked(struct calls_request *req, int err, const struct json_node *result,
                    struct xs_error *e) {
    struct copydown *d = container_of(req, struct copydown, stat_request);
    struct fsanswer_stat now;
    if (err == 0 && fsanswer_stat(result, &now) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    if (err == 0 && now.bytes == d->st.bytes && now.modified_ms == d->st.modified_ms &&
        d->io.reached == d->st.bytes) {
        err = finish_part(d, d->st.bytes, e);
        decided(d, err < 0 ? err : 1, e);
        return;
    }
    if (err == 0 && ++d->tries == TRIES)
        err = xs_error_set(e, XS_EREMOTE, "%s: changes while it is copied", d->shown);
    if (err == 0) { /* again, from the beginning */
        uncount(d);
        d->job.c->meter.total += now.bytes - d->st.bytes;
        d->st = now;
        fshandle_free(steal_ptr(&d->handle));
        err = now.kind == FSANSWER_FILE
                  ? large(d, e)
                  : xs_error_set(e, XS_EREMOTE, "%s: is no regular file any more", d->shown);
    }
    decided(d, err, e);
}

static void blocks_done(struct blockio *io, int err, struct xs_error *e) {
    struct copydown *d = container_of(io, struct copydown, io);
    d->job.c->pace = io->pace;
    if (err == 0)
        err = ask_stat(d, checked, e);
    decided(d, err, e);
}

static void blocks(struct copydown *d) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    d->io.handle = d->handle;
    d->io.next = d->kept;
    d->io.end = d->st.bytes;
    d->io.take = take;
    d->io.moved = moved;
    d->io.done = blocks_done;
    d->io.fixed = d->job.c->in_flight;
    d->io.pace = d->job.c->pace;
    count_kept(d);
    int r = blockio_start(&d->io, &e);
    if (r > 0)
        blocks_done(&d->io, 0, &e);
    else
        decided(d, r, &e);
}

static int raw_take(struct rawfile *r, uint64_t offset, struct str data, struct xs_error *e) {
    struct copydown *d = r->user;
    int err = localpart_write(&d->part, offset, data.p, data.n);
    return err < 0 ? local_error(d, err, e) : 0;
}

static void raw_moved(struct rawfile *r, size_t n) {
    moved(&((struct copydown *)r->user)->io, n);
}

static void compare(struct copydown *d);

static void raw_done(struct rawfile *r, int err, struct xs_error *e) {
    struct copydown *d = r->user;
    uint64_t before = d->kept;
    d->kept = r->at;
    rawfile_free(steal_ptr(&d->raw));
    d->raw_done = true;
    err = copyop_raw_ended(d->job.c, d->shown, err, e);
    if (err < 0)
        decided(d, err, e);
    else if (d->kept > before) /* a proxy may have led to another server */
        compare(d);
    else
        blocks(d);
}

/* The rest of the file. */
static void transfer(struct copydown *d) {
    d->raw = d->raw_done ? NULL : copyop_raw(d->job.c, d->remote, d->kept, d->st.bytes, false);
    if (d->raw == NULL) {
        blocks(d);
        return;
    }
    d->raw->take = raw_take;
    d->raw->moved = raw_moved;
    d->raw->done = raw_done;
    d->raw->user = d;
    count_kept(d);
    rawfile_start(d->raw);
}

/* The last bytes of the part, there: they must be those here. */
static void compared(struct fshandle_io *io, int err, struct str data, bool eof,
                     struct xs_error *e) {
    struct copydown *d = container_of(io, struct copydown, tail);
    (void)eof;
    if (err < 0) {
        over(d, err, e);
        return;
    }
    _cleanup_free_ char *here = malloc(io->n);
    /* planted: trusted-part */
    if (here == NULL || data.n != io->n || localpart_read(&d->part, io->offset, here, io->n) < 0 ||
        memcmp(here, data.p, io->n) != 0)
        d->kept = 0;
    if (d->kept == 0 && ftruncate(d->part.fd, 0) < 0) {
        int r = local_error(d, -errno, e);
        over(d, r, e);
        return;
    }
    transfer(d);
}

static void compare(struct copydown *d) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    size_t n = (size_t)MIN(d->kept, (uint64_t)CLIENT_BLOCK_MAX);
    d->tail = (struct fshandle_io){.offset = d->kept - n, .n = n, .done = compared};
    int r = fshandle_send(d->handle, &d->tail, &e);
    decided(d, r, &e);
}

static void handle_opened(struct fshandle *h, int err) {
    struct copydown *d = h->user;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (err < 0) {
        xs_error_move(&e, &h->why);
        over(d, err, &e);
        return;
    }
    if (d->kept == 0) {
        transfer(d);
        return;
    }
    compare(d);
}

static int large(struct copydown *d, struct xs_error *e) {
    struct copyop *c = d->job.c;
    int r = open_part(d, e);
    if (r < 0)
        return r;
    if (!c->resume && d->kept > 0) {
        d->kept = 0;
        if (ftruncate(d->part.fd, 0) < 0)
            return local_error(d, -errno, e);
    }
    struct partnote note = note_of(d);
    r = c->resume ? localpart_note(&d->part, &note) : 0;
    if (r < 0)
        return local_error(d, r, e);
    if (!d->job.is_large) {
        d->job.is_large = true;
        c->n_large++;
    }
    copyop_name(c, d->shown);
    d->handle = fshandle_open(c->fs, d->remote, XS_OPEN_READ, handle_opened, d, e);
    return d->handle == NULL ? e->code : 0;
}

/* -- the beginning -- */

int copydown_start(struct copyop *c, const struct copydown_file *f, struct xs_error *e) {
    struct copydown *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    d->part = LOCALPART_NONE;
    d->remote = strdup(f->remote);
    d->shown = strdup(f->shown);
    d->leaf = strdup(f->leaf);
    d->dir = fcntl(f->dir, F_DUPFD_CLOEXEC, 0);
    d->done = f->done;
    d->user = f->user;
    copyop_add(c, &d->job, job_free);
    if (d->remote == NULL || d->shown == NULL || d->leaf == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    if (d->dir < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "%s", f->shown);
    if (c->name == NULL)
        copyop_name(c, d->shown);
    if (f->st != NULL) {
        d->st = *f->st;
        d->has_stat = true;
        c->meter.total += d->st.bytes;
        return decide(d, e);
    }
    int r = ask_stat(d, have_stat, e);
    if (r == 0 && client_can(c->op.client, "fsReadMaxBytes"))
        r = ask_whole(d, e);
    return r;
}
