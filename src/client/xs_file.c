#include "client/xs_file.h"

/* A read or a write. */
struct file_op {
    struct op op; /* first */
    struct list node;
    struct fshandle_io io;
    struct calls_waiter waiter; /* for room to send */
    struct xs_file *file;
    char *data; /* to write: an owned copy */
    void *buf;  /* to read: the caller's */
};

struct file_open {
    struct op op;         /* first */
    struct xs_file *file; /* owned until it is open */
    struct xs_file **out;
};

/* fs/close with an answer. */
struct file_close {
    struct op op; /* first */
    struct xs_file *file;
};

static struct xs_client *client_of(const struct xs_file *f) {
    return f->handle->fs->files->client;
}

void xs_file_free(struct xs_file *f) {
    if (f == NULL)
        return;
    list_for_each(i, &f->ops) {
        struct file_op *o = list_entry(i, struct file_op, node);
        op_fail(&o->op, XS_ECANCELED, "the file is closed");
    }
    fshandle_free(f->handle);
    list_remove(&f->node);
    free(f);
}

static void open_end(struct op *op) {
    struct file_open *o = container_of(op, struct file_open, op);
    xs_file_free(steal_ptr(&o->file));
}

static void opened(struct fshandle *h, int err) {
    struct file_open *o = h->user;
    h->user = NULL;
    if (err < 0) {
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        xs_error_copy(&e, &h->why);
        op_fail_with(&o->op, &e);
        return;
    }
    *o->out = steal_ptr(&o->file);
    op_finish(&o->op, 0);
}

int xs_file_start(struct xs_fs *f, const char *path, enum xs_open mode, struct xs_file **out,
                  struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct file_open *o;
    int r = op_new(f->files->client, k, sizeof(*o), open_end, &o);
    if (r < 0)
        return r;
    o->out = out;
    o->file = calloc(1, sizeof(*o->file));
    if (o->file == NULL)
        return op_refuse(&o->op, XS_ENOMEM, "out of memory");
    list_init(&o->file->ops);
    list_append(&f->files->opened, &o->file->node);
    o->file->handle = fshandle_open(f, path, mode, opened, o, &e);
    if (o->file->handle == NULL)
        return op_refuse(&o->op, e.code, "%s", xs_error_text(&e));
    return op_wait(&o->op);
}

static void io_end(struct op *op) {
    struct file_op *o = container_of(op, struct file_op, op);
    calls_stop_waiting(&o->waiter);
    fshandle_drop(&o->io);
    list_remove(&o->node);
    free(steal_ptr(&o->data));
}

static void io_done(struct fshandle_io *io, int err, struct str data, bool eof,
                    struct xs_error *e) {
    struct file_op *o = container_of(io, struct file_op, io);
    (void)eof;
    if (err < 0) {
        op_fail_with(&o->op, e);
        return;
    }
    if (o->buf != NULL && data.n > 0)
        memcpy(o->buf, data.p, data.n);
    op_finish(&o->op, (int)(o->buf != NULL ? data.n : io->n));
}

static const void *give(struct fshandle_io *io) {
    return container_of(io, struct file_op, io)->data;
}

static void room(struct calls_waiter *w);

/* 0, also when it waits for room. */
static int send_io(struct file_op *o, struct xs_error *e) {
    int r = fshandle_send(o->file->handle, &o->io, e);
    if (r != XS_EBUSY)
        return r;
    o->waiter.fn = room;
    calls_wait_room(o->op.client, &o->waiter);
    return 0;
}

static void room(struct calls_waiter *w) {
    struct file_op *o = container_of(w, struct file_op, waiter);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (send_io(o, &e) < 0)
        op_fail_with(&o->op, &e);
}

static int io_start(struct xs_file *f, uint64_t offset, void *buf, const void *data, size_t n,
                    struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct file_op *o;
    if (offset > INT64_MAX - n)
        return client_error(client_of(f), XS_EINVAL, "the offset is too large");
    int r = op_new(client_of(f), k, sizeof(*o), io_end, &o);
    if (r < 0)
        return r;
    o->file = f;
    o->buf = buf;
    o->io = (struct fshandle_io){.offset = offset, .n = n, .done = io_done};
    list_append(&f->ops, &o->node);
    if (data != NULL) {
        o->io.give = give;
        o->data = malloc(n);
        if (o->data == NULL)
            return op_refuse(&o->op, XS_ENOMEM, "out of memory");
        memcpy(o->data, data, n);
    }
    r = send_io(o, &e);
    if (r < 0)
        return op_refuse(&o->op, r, "%s", xs_error_text(&e));
    return op_wait(&o->op);
}

int xs_file_read(struct xs_file *f, uint64_t offset, void *buf, size_t n, struct xs_call *k) {
    if (n == 0 || buf == NULL)
        return client_error(client_of(f), XS_EINVAL, "nothing to read");
    return io_start(f, offset, buf, NULL, MIN(n, (size_t)CLIENT_BLOCK_MAX), k);
}

int xs_file_write(struct xs_file *f, uint64_t offset, const void *data, size_t n,
                  struct xs_call *k) {
    if (n == 0 || n > CLIENT_BLOCK_MAX || data == NULL)
        return client_error(client_of(f), XS_EINVAL, "1 to 1048576 bytes can be written at a time");
    return io_start(f, offset, NULL, data, n, k);
}

static void close_end(struct op *op) {
    struct file_close *o = container_of(op, struct file_close, op);
    xs_file_free(steal_ptr(&o->file));
}

static void closed(struct fshandle *h, int err, struct xs_error *e) {
    struct file_close *o = h->user;
    if (err < 0)
        op_fail_with(&o->op, e);
    else
        op_finish(&o->op, 0);
}

int xs_file_close(struct xs_file *f, struct xs_call *k) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct file_close *o;
    int r = op_new(client_of(f), k, sizeof(*o), close_end, &o);
    if (r < 0)
        return r;
    o->file = f;
    r = fshandle_close(f->handle, closed, o, &e);
    if (r < 0)
        return op_refuse(&o->op, r, "%s", xs_error_text(&e));
    return op_wait(&o->op);
}
