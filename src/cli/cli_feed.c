#include "cli/cli_feed.h"

#include "base/util.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static void on_written(struct xs_call *call, int result) {
    struct cli_feed_slot *slot = call->user;
    slot->busy = false;
    slot->feed->waiting -= slot->n;
    if (result < 0) { /* its end, or a lost session, is an event of its own */
        slot->feed->broken = true;
        slot->feed->open = false;
    }
}

int cli_feed_init(struct cli_feed *f, int fd, size_t max) {
    *f = (struct cli_feed){.fd = fd, .open = true, .max = max};
    f->piece = malloc(CLI_FEED_PIECE);
    return f->piece != NULL ? 0 : -ENOMEM;
}

void cli_feed_fini(struct cli_feed *f) {
    free(f->piece);
    f->piece = NULL;
}

static struct cli_feed_slot *idle(const struct cli_feed *f) {
    for (size_t i = 0; i < CLI_FEED_SLOTS; i++) {
        if (!f->slots[i].busy)
            return (struct cli_feed_slot *)(uintptr_t)&f->slots[i];
    }
    return NULL;
}

bool cli_feed_has_room(const struct cli_feed *f) {
    return f->waiting < f->max && idle(f) != NULL;
}

long cli_feed_read(struct cli_feed *f) {
    ssize_t n = read(f->fd, f->piece, CLI_FEED_PIECE);
    return n < 0 ? -errno : n;
}

void cli_feed_send(struct cli_feed *f, const void *p, size_t n) {
    struct cli_feed_slot *slot = idle(f);
    if (slot == NULL || n == 0 || f->broken || f->process == NULL)
        return;
    *slot = (struct cli_feed_slot){
        .call = {.done = on_written, .user = slot}, .feed = f, .n = n, .busy = true};
    f->waiting += n;
    int r = xs_process_write(f->process, p, n, &slot->call);
    if (r < 0)
        on_written(&slot->call, r);
}

static void on_ended(struct xs_call *call, int result) {
    (void)call;
    (void)result; /* the process may have gone first */
}

void cli_feed_end(struct cli_feed *f) {
    f->open = false;
    if (f->ended || f->broken || f->process == NULL)
        return;
    f->ended = true;
    f->end = (struct xs_call){.done = on_ended};
    (void)xs_process_close_stdin(f->process, &f->end);
}
