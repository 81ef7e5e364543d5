#include "client/fsbulk.h"

#include "client/fsanswer.h"
#include "client/partnote.h"

#include <stdio.h>

#define SINGLE_MAX (4u << 20)      /* bytes of a file that one answer may hold */
#define NOFOLLOW_MAX (40u << 20)   /* ... when there is no other way */
#define WHOLE_MAX CLIENT_BLOCK_MAX /* bytes that one fs/writeFile takes */

struct bulk {
    struct fsop o; /* first */
    struct fshandle *handle;
    struct blockio io;
    char *data; /* owned: a copy to write, or what was read */
    size_t n, cap;
    char *part; /* owned: what is written in place of the path; NULL: the path itself */
};

static struct bulk *bulk_of(struct fsop *o) {
    return container_of(o, struct bulk, o);
}

static void bulk_end(struct fsop *o) {
    struct bulk *b = bulk_of(o);
    blockio_stop(&b->io);
    fshandle_free(steal_ptr(&b->handle));
    free(steal_ptr(&b->data));
    free(steal_ptr(&b->part));
}

static void fail(struct bulk *b, struct xs_error *e) {
    op_fail_with(&b->o.op, e);
}

static void blocks_done(struct blockio *io, int err, struct xs_error *e);

static void handle_opened(struct fshandle *h, int err) {
    struct bulk *b = container_of(h->user, struct bulk, handle);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (err < 0) {
        xs_error_move(&e, &h->why);
        fail(b, &e);
        return;
    }
    b->io.handle = h;
    b->io.done = blocks_done;
    int r = blockio_start(&b->io, &e);
    if (r < 0)
        fail(b, &e);
    else if (r > 0)
        blocks_done(&b->io, 0, &e);
}

static int open_handle(struct bulk *b, const char *path, enum xs_open mode, struct xs_error *e) {
    b->handle = fshandle_open(b->o.fs, path, mode, handle_opened, &b->handle, e);
    return b->handle == NULL ? e->code : 0;
}

/* Reading. */

static int give_out(struct bulk *b) {
    struct xs_bytes *out = b->o.out;
    if (b->data == NULL && (b->data = calloc(1, 1)) == NULL)
        return XS_ENOMEM;
    b->data[b->n] = '\0';
    *out = (struct xs_bytes){steal_ptr(&b->data), b->n};
    return 0;
}

static int append(struct blockio *io, uint64_t offset, struct str data, struct xs_error *e) {
    struct bulk *b = container_of(io, struct bulk, io);
    (void)offset;
    if (data.n > b->o.max || b->n > b->o.max - data.n)
        return xs_error_set(e, XS_EREMOTE, "%s: the file is larger than %llu bytes", b->o.path,
                            (unsigned long long)b->o.max);
    if (b->cap - b->n < data.n + 1) {
        size_t cap = MAX(b->cap * 2, b->n + data.n + 1);
        char *more = realloc(b->data, cap);
        if (more == NULL)
            return xs_error_set(e, XS_ENOMEM, "%s: out of memory", b->o.path);
        b->data = more;
        b->cap = cap;
    }
    memcpy(b->data + b->n, data.p, data.n);
    b->n += data.n;
    return 0;
}

static int read_blocks(struct bulk *b, struct xs_error *e) {
    b->io.end = UINT64_MAX;
    b->io.take = append;
    return open_handle(b, b->o.path, XS_OPEN_READ, e);
}

static int take_whole(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    struct bulk *b = bulk_of(o);
    struct str data;
    if (fsanswer_data(result, "dataBase64", CLIENT_MESSAGE_MAX, &data) < 0)
        return xs_error_set(e, XS_EPROTO, "%s: a malformed answer", o->method);
    int r = append(&b->io, 0, data, e);
    return r < 0 ? r : give_out(b);
}

/* A file that is too large for one answer is read by a handle. */
static int whole_failed(struct fsop *o, int err, struct xs_error *e) {
    if (err != XS_EREMOTE || o->max <= SINGLE_MAX || (o->flags & XS_NOFOLLOW) != 0 ||
        strstr(xs_error_text(e), "too large to read") == NULL)
        return 0;
    o->failed = NULL;
    struct xs_error why = XS_ERROR_INIT;
    if (read_blocks(bulk_of(o), &why) < 0)
        op_fail_with(&o->op, &why);
    xs_error_fini(&why);
    return 1;
}

static int read_whole(struct bulk *b, struct xs_error *e) {
    struct fsop *o = &b->o;
    bool follow = (o->flags & XS_NOFOLLOW) == 0;
    struct params p = fsop_begin(o, "fs/readFile", o->path, NULL);
    if (p.b != NULL) {
        fsop_follow(&p, o->flags);
        params_u64(&p, "maxBytes", MIN(o->max, follow ? SINGLE_MAX : NOFOLLOW_MAX));
    }
    o->failed = whole_failed;
    return fsop_send(o, &p, CALLS_AGAIN, take_whole, e);
}

/* Either sends, or refuses the operation. */
static int run(struct bulk *b, int r, struct xs_error *e) {
    if (r < 0)
        r = op_refuse(&b->o.op, r, "%s", xs_error_text(e));
    else
        r = op_wait(&b->o.op);
    xs_error_fini(e);
    return r;
}

static int bulk_new(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k,
                    struct bulk **out) {
    int r = fsop_new(f, k, sizeof(**out), bulk_end, out);
    if (r < 0)
        return r;
    struct bulk *b = *out;
    b->o.flags = flags;
    b->o.path = strdup(path);
    return b->o.path == NULL ? op_refuse(&b->o.op, XS_ENOMEM, "out of memory") : 0;
}

int fsbulk_read(struct xs_fs *f, const char *path, unsigned flags, uint64_t max,
                struct xs_bytes *out, struct xs_call *k) {
    struct xs_error e = XS_ERROR_INIT;
    struct bulk *b;
    int r = bulk_new(f, path, flags, k, &b);
    if (r < 0)
        return r;
    *out = (struct xs_bytes){NULL, 0};
    b->o.out = out;
    b->o.max = max;
    struct xs_client *c = b->o.op.client;
    bool bounded = client_can(c, "fsReadMaxBytes") || (flags & XS_NOFOLLOW) != 0;
    return run(b, bounded ? read_whole(b, &e) : read_blocks(b, &e), &e);
}

/* Writing. */

static const void *give(struct blockio *io, uint64_t offset, size_t n) {
    (void)n;
    return container_of(io, struct bulk, io)->data + offset;
}

static int write_whole(struct bulk *b, struct xs_error *e) {
    struct params p = fsop_begin(&b->o, "fs/writeFile", b->o.path, NULL);
    if (p.b != NULL) {
        fsop_follow(&p, b->o.flags);
        if ((b->o.flags & XS_ATOMIC) != 0)
            params_bool(&p, "atomic", true);
        params_base64(&p, "dataBase64", b->data, b->n);
    }
    return fsop_send(&b->o, &p, CALLS_AGAIN, NULL, e);
}

/* `.NAME.xs-part-TOKEN` beside the path. */
static char *part_beside(const char *path) {
    const char *slash = strrchr(path, '/');
    struct str name = str_of(slash == NULL ? path : slash + 1);
    char token[PARTNOTE_TOKEN_LEN + 1], part[PARTNOTE_NAME_MAX + 1];
    partnote_token(token);
    partnote_part_name(name, token, part);
    char *out = NULL;
    int n = asprintf(&out, "%.*s%s", (int)(strlen(path) - name.n), path, part);
    return n < 0 ? NULL : out;
}

static int send_rename(struct bulk *b, struct xs_error *e) {
    struct params p = fsop_begin(&b->o, "fs/rename", b->part, b->o.path);
    return fsop_send(&b->o, &p, CALLS_LOST, NULL, e);
}

static int mode_set(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    (void)result;
    int r = send_rename(bulk_of(o), e);
    return r < 0 ? r : FSOP_GOES_ON;
}

/* The new file gets the permissions of the old one. */
static int mode_known(struct fsop *o, const struct json_node *result, struct xs_error *e) {
    struct bulk *b = bulk_of(o);
    struct fsanswer_stat s;
    if (fsanswer_stat(result, &s) < 0)
        return xs_error_set(e, XS_EPROTO, "%s: a malformed answer", o->method);
    o->failed = NULL;
    if (!s.has_mode)
        return mode_set(o, result, e);
    struct params p = fsop_begin(o, "fs/setPermissions", b->part, NULL);
    if (p.b != NULL)
        params_u64(&p, "mode", s.mode);
    int r = fsop_send(o, &p, CALLS_AGAIN, mode_set, e);
    return r < 0 ? r : FSOP_GOES_ON;
}

static int mode_unknown(struct fsop *o, int err, struct xs_error *e) {
    if (err != XS_EREMOTE)
        return 0;
    o->failed = NULL;
    if (send_rename(bulk_of(o), e) < 0)
        op_fail_with(&o->op, e);
    return 1;
}

static int ask_mode(struct bulk *b, struct xs_error *e) {
    struct params p = fsop_begin(&b->o, "fs/getMetadata", b->o.path, NULL);
    b->o.failed = mode_unknown;
    return fsop_send(&b->o, &p, CALLS_AGAIN, mode_known, e);
}

static int write_blocks(struct bulk *b, struct xs_error *e) {
    b->io.end = b->n;
    b->io.give = give;
    if ((b->o.flags & XS_ATOMIC) != 0 && (b->part = part_beside(b->o.path)) == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    return open_handle(b, b->part != NULL ? b->part : b->o.path, XS_OPEN_REPLACE, e);
}

int fsbulk_write(struct xs_fs *f, const char *path, const void *data, size_t n, unsigned flags,
                 struct xs_call *k) {
    struct xs_client *c = f->files->client;
    struct xs_error e = XS_ERROR_INIT;
    struct bulk *b;
    bool large = n > WHOLE_MAX;
    if (large && (flags & XS_NOFOLLOW) != 0)
        return client_error(c, XS_ENOTSUP, "%s: more than 1 MiB without following links", path);
    int r = bulk_new(f, path, flags, k, &b);
    if (r < 0)
        return r;
    b->data = malloc(n + 1);
    if (b->data == NULL)
        return op_refuse(&b->o.op, XS_ENOMEM, "out of memory");
    if (n > 0)
        memcpy(b->data, data, n);
    b->n = n;
    return run(b, large ? write_blocks(b, &e) : write_whole(b, &e), &e);
}

/* Both. */

static void blocks_done(struct blockio *io, int err, struct xs_error *e) {
    struct bulk *b = container_of(io, struct bulk, io);
    if (err == 0 && io->give == NULL)
        err = give_out(b);
    if (err == 0 && b->part != NULL) {
        err = ask_mode(b, e);
        if (err == 0)
            return;
    }
    if (err < 0)
        fail(b, e);
    else
        op_finish(&b->o.op, 0);
}
