#include "cli/cli_feed.h"

#include "base/util.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static void send_held(struct cli_feed *f);

static void on_written(struct xs_call *call, int result) {
    struct cli_feed_slot *slot = call->user;
    struct cli_feed *f = slot->feed;
    slot->busy = false;
    f->waiting -= slot->n;
    if (result < 0) { /* its end, or a lost session, is an event of its own */
        f->broken = true;
        f->open = false;
    } else {
        send_held(f);
    }
}

int cli_feed_init(struct cli_feed *f, int fd, size_t max, bool typed) {
    *f = (struct cli_feed){.fd = fd, .open = true, .max = max, .typed = typed};
    f->held = BUF_INIT(max + CLI_FEED_PIECE);
    f->piece = malloc(CLI_FEED_PIECE);
    return f->piece != NULL ? 0 : -ENOMEM;
}

void cli_feed_fini(struct cli_feed *f) {
    free(f->piece);
    f->piece = NULL;
    buf_fini(&f->held);
}

static struct cli_feed_slot *idle(const struct cli_feed *f) {
    for (size_t i = 0; i < CLI_FEED_SLOTS; i++) {
        if (!f->slots[i].busy)
            return (struct cli_feed_slot *)(uintptr_t)&f->slots[i];
    }
    return NULL;
}

bool cli_feed_has_room(const struct cli_feed *f) {
    return f->waiting + f->held.len < f->max && (f->typed || idle(f) != NULL);
}

long cli_feed_read(struct cli_feed *f) {
    ssize_t n = read(f->fd, f->piece, CLI_FEED_PIECE);
    return n < 0 ? -errno : n;
}

static void send_piece(struct cli_feed *f, struct cli_feed_slot *slot, const void *p, size_t n) {
    *slot = (struct cli_feed_slot){
        .call = {.done = on_written, .user = slot}, .feed = f, .n = n, .busy = true};
    f->waiting += n;
    int r = xs_process_write(f->process, p, n, &slot->call);
    if (r < 0)
        on_written(&slot->call, r);
}

static void close_stdin(struct cli_feed *f);

static void send_held(struct cli_feed *f) {
    struct cli_feed_slot *slot = idle(f);
    if (f->held.len > 0 && slot != NULL && f->process != NULL && !f->broken) {
        struct buf held = f->held;
        f->held = BUF_INIT(f->max + CLI_FEED_PIECE);
        send_piece(f, slot, held.p, held.len);
        buf_fini(&held);
    }
    if (f->ending && f->held.len == 0)
        close_stdin(f);
}

void cli_feed_send(struct cli_feed *f, const void *p, size_t n) {
    struct cli_feed_slot *slot = f->held.len == 0 ? idle(f) : NULL;
    if (n == 0 || f->broken || f->process == NULL)
        return;
    if (slot != NULL)
        send_piece(f, slot, p, n);
    else if (buf_put(&f->held, p, n) < 0)
        f->broken = true; /* without memory no byte may follow the one that is missing */
}

static void on_ended(struct xs_call *call, int result) {
    (void)call;
    (void)result; /* the process may have gone first */
}

static void close_stdin(struct cli_feed *f) {
    if (f->ended || f->broken || f->process == NULL)
        return;
    f->ended = true;
    f->end = (struct xs_call){.done = on_ended};
    (void)xs_process_close_stdin(f->process, &f->end);
}

void cli_feed_end(struct cli_feed *f) {
    f->open = false;
    f->ending = true;
    send_held(f);
}
