#include "client/fshandle.h"

#include "client/fsanswer.h"

#include <inttypes.h>
#include <stdio.h>

static struct xs_client *client_of(const struct fshandle *h) {
    return h->fs->files->client;
}

static void opened(struct calls_request *r, int err, const struct json_node *result,
                   struct xs_error *e);

/* fs/open, in the mode for the first time or for a further one. */
static int send_open(struct fshandle *h, struct xs_error *e) {
    static const char *const words[] = {"read", "replace", "update"};
    enum xs_open mode = h->mode;
    if (mode == XS_OPEN_REPLACE && h->openings > 0)
        mode = XS_OPEN_UPDATE;
    struct params p = {.b = calls_begin(client_of(h), &h->request, "fs/open")};
    if (p.b == NULL)
        return xs_error_set(e, XS_ENOMEM, "fs/open: out of memory");
    h->request.done = opened;
    h->request.after = CALLS_AGAIN;
    params_open(&p, NULL, '{');
    params_strz(&p, "handleId", h->id);
    params_path(&p, "path", client_of(h), h->path);
    if (mode != XS_OPEN_READ)
        params_strz(&p, "mode", words[mode]);
    fspart_sandbox(h->fs, &p);
    params_close(&p, '}');
    return calls_send(client_of(h), &h->request, p.r, e);
}

struct fshandle *fshandle_open(struct xs_fs *f, const char *path, enum xs_open mode,
                               void (*fn)(struct fshandle *, int), void *user, struct xs_error *e) {
    struct fshandle *h = calloc(1, sizeof(*h));
    if (h == NULL || (h->path = strdup(path)) == NULL) {
        free(h);
        xs_error_set(e, XS_ENOMEM, "out of memory");
        return NULL;
    }
    h->opened = fn;
    h->user = user;
    h->fs = fspart_hold(f);
    h->mode = mode;
    h->state = FSHANDLE_OPENING;
    list_init(&h->waiting);
    list_init(&h->flying);
    snprintf(h->id, sizeof(h->id), "h%" PRIu64, ++f->files->next_id);
    list_append(&f->files->handles, &h->node);
    if (send_open(h, e) < 0) {
        fshandle_free(h);
        return NULL;
    }
    return h;
}

/* A close that nobody waits for. */
struct closing {
    struct calls_request request;
};

static void closed(struct calls_request *r, int err, const struct json_node *result,
                   struct xs_error *e) {
    (void)err;
    (void)result;
    (void)e;
    free(container_of(r, struct closing, request));
}

static void lost_close(struct calls_request *r) {
    free(container_of(r, struct closing, request));
}

static void send_close(struct fshandle *h) {
    struct closing *k = calloc(1, sizeof(*k));
    struct params p = {.b = NULL};
    if (k != NULL)
        p.b = calls_begin(client_of(h), &k->request, "fs/close");
    if (p.b == NULL) {
        free(k);
        return;
    }
    k->request.done = closed;
    k->request.after = CALLS_ASK; /* the handle ends with its connection */
    k->request.lost = lost_close;
    params_open(&p, NULL, '{');
    params_strz(&p, "handleId", h->id);
    params_close(&p, '}');
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (calls_send(client_of(h), &k->request, p.r, &e) < 0)
        free(k);
}

void fshandle_free(struct fshandle *h) {
    if (h == NULL)
        return;
    list_for_each(i, &h->waiting) fshandle_drop(list_entry(i, struct fshandle_io, node));
    list_for_each(i, &h->flying) fshandle_drop(list_entry(i, struct fshandle_io, node));
    if (h->gone != NULL)
        *h->gone = true;
    calls_stop_waiting(&h->waiter);
    bool sent =
        h->state == FSHANDLE_OPEN || (h->state != FSHANDLE_FAILED && h->state != FSHANDLE_CLOSING &&
                                      calls_was_sent(&h->request));
    calls_drop(&h->request);
    if (sent && !h->fs->files->ending)
        send_close(h);
    list_remove(&h->node);
    fspart_release(h->fs);
    xs_error_fini(&h->why);
    free(h->path);
    free(h);
}

static void asked_close(struct calls_request *r, int err, const struct json_node *result,
                        struct xs_error *e) {
    struct fshandle *h = container_of(r, struct fshandle, request);
    (void)result;
    h->state = FSHANDLE_FAILED;
    h->closed(h, err, e);
}

static void lost_asked_close(struct calls_request *r) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    asked_close(r, 0, NULL, &e);
}

int fshandle_close(struct fshandle *h, void (*done)(struct fshandle *, int, struct xs_error *),
                   void *user, struct xs_error *e) {
    h->user = user;
    h->closed = done;
    calls_drop(&h->request);
    struct params p = {.b = calls_begin(client_of(h), &h->request, "fs/close")};
    if (p.b == NULL)
        return xs_error_set(e, XS_ENOMEM, "fs/close: out of memory");
    h->request.done = asked_close;
    h->request.after = CALLS_ASK;
    h->request.lost = lost_asked_close;
    params_open(&p, NULL, '{');
    params_strz(&p, "handleId", h->id);
    params_close(&p, '}');
    int r = calls_send(client_of(h), &h->request, p.r, e);
    h->state = r == 0 ? FSHANDLE_CLOSING : FSHANDLE_FAILED;
    return r;
}

/* Ends a request; io may be freed afterwards. */
static void end_io(struct fshandle_io *io, int err, struct xs_error *e) {
    list_remove(&io->node);
    io->handle = NULL;
    io->done(io, err, (struct str){NULL, 0}, false, e);
}

/* Everything that waits fails; the handle may be freed meanwhile. */
static void fail(struct fshandle *h, int err, struct xs_error *e) {
    bool gone = false;
    h->state = FSHANDLE_FAILED;
    h->gone = &gone; // cppcheck-suppress autoVariables; reset below, unless h is freed
    xs_error_move(&h->why, e);
    while (!gone && !list_empty(&h->waiting)) {
        struct fshandle_io *io = list_entry(list_first(&h->waiting), struct fshandle_io, node);
        _cleanup_xs_error_ struct xs_error copy = XS_ERROR_INIT;
        xs_error_copy(&copy, &h->why);
        end_io(io, err, &copy);
    }
    if (!gone)
        h->gone = NULL;
}

static void send_waiting(struct fshandle *h);

static void usable(struct fshandle *h) {
    bool first = h->openings++ == 0;
    h->state = FSHANDLE_OPEN;
    if (first)
        h->opened(h, 0);
    else
        send_waiting(h);
}

/* Behind a reopening for writing: the path may lead to another file by now. */
static void checked(struct calls_request *r, int err, const struct json_node *result,
                    struct xs_error *e) {
    struct fshandle *h = container_of(r, struct fshandle, request);
    struct fsanswer_stat s;
    h->checking = false;
    if (err == 0 && fsanswer_stat(result, &s) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/getMetadata: a malformed answer");
    if (err == 0 && s.bytes < h->written)
        err = xs_error_set(e, XS_ELOST, "%s: has become another file", h->path);
    if (err < 0)
        fail(h, err, e);
    else
        usable(h);
}

static void check(struct fshandle *h) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    struct params p = {.b = calls_begin(client_of(h), &h->request, "fs/getMetadata")};
    h->request.done = checked;
    h->request.after = CALLS_AGAIN;
    int r = p.b == NULL ? XS_ENOMEM : 0;
    if (r == 0) {
        params_open(&p, NULL, '{');
        params_path(&p, "path", client_of(h), h->path);
        fspart_sandbox(h->fs, &p);
        params_close(&p, '}');
        r = calls_send(client_of(h), &h->request, p.r, &e);
    }
    h->checking = r == 0;
    if (r < 0)
        fail(h, r, &e);
}

static void opened(struct calls_request *r, int err, const struct json_node *result,
                   struct xs_error *e) {
    struct fshandle *h = container_of(r, struct fshandle, request);
    (void)result;
    if (err < 0 && h->openings == 0) {
        h->state = FSHANDLE_FAILED;
        xs_error_move(&h->why, e);
        h->opened(h, err);
    } else if (err < 0) {
        fail(h, err, e);
    } else if (h->openings > 0 && h->mode != XS_OPEN_READ) {
        check(h);
    } else {
        usable(h);
    }
}

static void reopen(struct fshandle *h) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    int r;
    h->state = FSHANDLE_REOPENING;
    if (h->mode != XS_OPEN_READ && !client_can(client_of(h), "fsOpenUpdate"))
        r = xs_error_set(&e, XS_ELOST, "%s: the server cannot go on with a file", h->path);
    else
        r = send_open(h, &e);
    if (r < 0)
        fail(h, r, &e);
}

void fshandle_resumed(struct files *files) {
    /* A failure may free other handles: begin anew after each. */
    for (bool again = true; again;) {
        again = false;
        list_for_each(i, &files->handles) {
            struct fshandle *h = list_entry(i, struct fshandle, node);
            bool is_asking = h->state == FSHANDLE_REOPENING && h->checking;
            if (h->state != FSHANDLE_OPEN && !is_asking)
                continue; /* an opening is sent again by itself */
            if (is_asking)
                calls_drop(&h->request);
            h->checking = false;
            reopen(h);
            again = true;
            break;
        }
    }
}

void fshandle_failed(struct files *files, const struct xs_error *why) {
    list_for_each(i, &files->handles) {
        struct fshandle *h = list_entry(i, struct fshandle, node);
        if (h->state == FSHANDLE_OPEN || h->state == FSHANDLE_REOPENING) {
            h->state = FSHANDLE_FAILED;
            xs_error_copy(&h->why, why);
        }
    }
    for (bool again = true; again;) {
        again = false;
        list_for_each(i, &files->handles) {
            struct fshandle *h = list_entry(i, struct fshandle, node);
            if (h->state != FSHANDLE_FAILED || list_empty(&h->waiting))
                continue;
            _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
            int code = xs_error_copy(&e, why);
            fail(h, code, &e);
            again = true; /* others may be freed */
            break;
        }
    }
}

void fshandle_free_all(struct files *files) {
    while (!list_empty(&files->handles))
        fshandle_free(list_entry(list_first(&files->handles), struct fshandle, node));
}

/* Blocks. */

static void answered(struct calls_request *r, int err, const struct json_node *result,
                     struct xs_error *e) {
    struct fshandle_io *io = container_of(r, struct fshandle_io, request);
    struct fshandle *h = io->handle;
    struct str data = {NULL, 0};
    bool eof = false;
    /* A server that answers out of order may have handled it before the reopening. */
    if (err == XS_EREMOTE && e->rpc == -32004 && io->opening != h->openings) {
        list_remove(&io->node);
        list_append(&h->waiting, &io->node);
        if (h->state == FSHANDLE_OPEN)
            send_waiting(h);
        return;
    }
    if (err == 0 && io->give == NULL && fsanswer_block(result, io->n, &data, &eof) < 0)
        err = xs_error_set(e, XS_EPROTO, "fs/readBlock: a malformed answer");
    if (err == 0 && io->give != NULL && io->offset + io->n > h->written)
        h->written = io->offset + io->n;
    list_remove(&io->node);
    io->handle = NULL;
    io->done(io, err, data, eof, e);
}

/* Cut off after it was sent: it goes out again when the handle is open again. */
static void lost(struct calls_request *r) {
    struct fshandle_io *io = container_of(r, struct fshandle_io, request);
    struct fshandle *h = io->handle;
    list_remove(&io->node);
    list_append(&h->waiting, &io->node);
    if (h->state != FSHANDLE_FAILED)
        return;
    _cleanup_xs_error_ struct xs_error why = XS_ERROR_INIT; /* the reopening failed before */
    int code = xs_error_copy(&why, &h->why);
    fail(h, code, &why);
}

static int send_io(struct fshandle *h, struct fshandle_io *io, struct xs_error *e) {
    const char *method = io->give != NULL ? "fs/writeBlock" : "fs/readBlock";
    const void *data = io->give != NULL ? io->give(io) : NULL;
    if (io->give != NULL && data == NULL)
        return xs_error_set(e, XS_ELOCAL, "the data cannot be read again");
    struct params p = {.b = calls_begin(client_of(h), &io->request, method)};
    if (p.b == NULL)
        return xs_error_set(e, XS_ENOMEM, "%s: out of memory", method);
    io->request.done = answered;
    io->request.lost = lost;
    io->request.after = CALLS_ASK;
    params_open(&p, NULL, '{');
    params_strz(&p, "handleId", h->id);
    params_u64(&p, "offset", io->offset);
    if (data != NULL)
        params_base64(&p, "chunk", data, io->n);
    else
        params_u64(&p, "len", io->n);
    params_close(&p, '}');
    int r = calls_send(client_of(h), &io->request, p.r, e);
    if (r == 0)
        io->opening = h->openings;
    return r;
}

static void room(struct calls_waiter *w) {
    send_waiting(container_of(w, struct fshandle, waiter));
}

/* After a resume. */
static void send_waiting(struct fshandle *h) {
    while (h->state == FSHANDLE_OPEN && !list_empty(&h->waiting)) {
        struct fshandle_io *io = list_entry(list_first(&h->waiting), struct fshandle_io, node);
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        int r = send_io(h, io, &e);
        if (r == XS_EBUSY) {
            h->waiter.fn = room;
            calls_wait_room(client_of(h), &h->waiter);
            return;
        }
        if (r < 0) {
            fail(h, r, &e);
            return; /* the handle may be gone */
        }
        list_remove(&io->node);
        list_append(&h->flying, &io->node);
    }
}

int fshandle_send(struct fshandle *h, struct fshandle_io *io, struct xs_error *e) {
    if (h->state == FSHANDLE_FAILED)
        return xs_error_copy(e, &h->why);
    bool now = h->state == FSHANDLE_OPEN && list_empty(&h->waiting);
    int r = now ? send_io(h, io, e) : 0;
    if (r < 0)
        return r;
    io->handle = h;
    list_init(&io->node);
    list_append(now ? &h->flying : &h->waiting, &io->node);
    return 0;
}

void fshandle_drop(struct fshandle_io *io) {
    if (io->handle == NULL)
        return;
    io->handle = NULL;
    list_remove(&io->node);
    calls_drop(&io->request);
}
