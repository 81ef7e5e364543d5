#include "client/blockio.h"

#include <time.h>

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct xs_client *client_of(const struct blockio *b) {
    return b->handle->fs->files->client;
}

void blockio_stop(struct blockio *b) {
    if (!b->running)
        return;
    b->running = false;
    calls_stop_waiting(&b->waiter);
    for (size_t i = 0; i < PACE_MAX; i++) {
        fshandle_drop(&b->slots[i].io);
        free(steal_ptr(&b->slots[i].early));
        b->slots[i].busy = false;
    }
    b->flying = 0;
}

static void finish(struct blockio *b, int err, struct xs_error *e) {
    blockio_stop(b);
    b->done(b, err, e);
}

static void answered(struct fshandle_io *io, int err, struct str data, bool eof,
                     struct xs_error *e);

static const void *give(struct fshandle_io *io) {
    struct blockio_slot *s = container_of(io, struct blockio_slot, io);
    return s->owner->give(s->owner, io->offset, io->n);
}

static struct blockio_slot *idle_slot(struct blockio *b) {
    for (size_t i = 0; i < PACE_MAX; i++) {
        if (!b->slots[i].busy)
            return &b->slots[i];
    }
    return NULL;
}

static bool is_complete(const struct blockio *b) {
    return b->flying == 0 && (b->eof || b->next >= b->end);
}

static void room(struct calls_waiter *w);

static int send_slot(struct blockio *b, struct blockio_slot *s, struct xs_error *e) {
    s->owner = b;
    s->io.offset = b->next;
    s->io.n = (size_t)MIN(b->end - b->next, (uint64_t)CLIENT_BLOCK_MAX);
    s->io.done = answered;
    s->io.give = b->give != NULL ? give : NULL;
    int r = fshandle_send(b->handle, &s->io, e);
    if (r < 0)
        return r;
    s->busy = true;
    s->sent_ns = now_ns();
    b->next += s->io.n;
    b->flying++;
    return 0;
}

/* Sends what the window allows. */
static int fill(struct blockio *b, struct xs_error *e) {
    unsigned window = b->fixed != 0 ? MIN(b->fixed, PACE_MAX) : b->pace.window;
    while (b->flying < window && !b->eof && b->next < b->end) {
        struct blockio_slot *s = idle_slot(b);
        if (s == NULL)
            return 0;
        /* Data that waits to be sent is memory: two blocks of it are enough. */
        if (b->give != NULL && calls_room(client_of(b)) < 2 * CLIENT_BLOCK_MAX) {
            calls_wait_room(client_of(b), &b->waiter);
            return 0;
        }
        int r = send_slot(b, s, e);
        if (r == XS_EBUSY) {
            calls_wait_room(client_of(b), &b->waiter);
            return 0;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static void go_on(struct blockio *b) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    int r = fill(b, &e);
    if (r < 0 || is_complete(b))
        finish(b, r, &e);
}

static void room(struct calls_waiter *w) {
    go_on(container_of(w, struct blockio, waiter));
}

/* Bytes that are next in order. */
static int take(struct blockio *b, struct str data, bool eof, struct xs_error *e) {
    if (b->eof)
        return 0; /* behind the end of a file that shrinks */
    int r = data.n > 0 ? b->take(b, b->reached, data, e) : 0;
    if (r < 0)
        return r;
    b->reached += data.n;
    b->eof = eof;
    if (b->moved != NULL)
        b->moved(b, data.n);
    return 0;
}

static int keep_early(struct blockio_slot *s, struct str data, bool eof, struct xs_error *e) {
    s->early = malloc(data.n + 1);
    if (s->early == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    if (data.n > 0)
        memcpy(s->early, data.p, data.n);
    s->early_n = data.n;
    s->early_eof = eof;
    return 0;
}

static void release_slot(struct blockio *b, struct blockio_slot *s) {
    free(steal_ptr(&s->early));
    s->busy = false;
    b->flying--;
}

/* Takes what came early and is next now. */
static int take_early(struct blockio *b, struct xs_error *e) {
    for (size_t i = 0; i < PACE_MAX; i++) {
        struct blockio_slot *s = &b->slots[i];
        if (!s->busy || s->early == NULL || (s->io.offset != b->reached && !b->eof))
            continue;
        int r = take(b, (struct str){s->early, s->early_n}, s->early_eof, e);
        if (r < 0)
            return r;
        release_slot(b, s);
        i = (size_t)-1; /* from the beginning: the next one may be anywhere */
    }
    return 0;
}

static int read_block(struct blockio *b, struct blockio_slot *s, struct str data, bool eof,
                      struct xs_error *e) {
    if (s->io.offset != b->reached && !b->eof)
        return keep_early(s, data, eof, e);
    int r = take(b, data, eof, e);
    if (r < 0)
        return r;
    release_slot(b, s);
    return take_early(b, e);
}

static void answered(struct fshandle_io *io, int err, struct str data, bool eof,
                     struct xs_error *e) {
    struct blockio_slot *s = container_of(io, struct blockio_slot, io);
    struct blockio *b = s->owner;
    if (err < 0) {
        s->busy = false;
        finish(b, err, e);
        return;
    }
    pace_block(&b->pace, s->sent_ns, now_ns(), io->n);
    if (b->give != NULL) {
        size_t n = io->n;
        release_slot(b, s);
        if (b->moved != NULL)
            b->moved(b, n);
    } else {
        int r = read_block(b, s, data, eof, e);
        if (r < 0) {
            finish(b, r, e);
            return;
        }
    }
    go_on(b);
}

int blockio_start(struct blockio *b, struct xs_error *e) {
    if (b->pace.window == 0)
        pace_init(&b->pace);
    b->pace.since_ns = 0;
    b->pace.bytes = 0;
    b->running = true;
    b->eof = false;
    b->flying = 0;
    b->reached = b->next;
    b->waiter.fn = room;
    int r = fill(b, e);
    if (r < 0) {
        blockio_stop(b);
        return r;
    }
    if (is_complete(b)) {
        blockio_stop(b);
        return 1;
    }
    return 0;
}
