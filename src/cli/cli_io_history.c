#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>

struct cli_io_piece {
    struct cli_io_piece *next;
    enum xs_stream stream;
    uint64_t seq;
    size_t n;
    char data[];
};

void cli_io_history(struct cli_io *io, uint64_t last, int64_t tail) {
    io->history = (struct cli_history){.last = last, .tail = tail};
    if (last == 0 && io->only_history && !io->view)
        cli_io_set_end(io, CLI_END_DETACH, NULL);
}

static void drop_first(struct cli_history *h) {
    struct cli_io_piece *p = h->first;
    h->first = p->next;
    h->bytes -= (int64_t)p->n;
    free(p);
}

void cli_io_history_drop(struct cli_io *io) {
    while (io->history.first != NULL)
        drop_first(&io->history);
}

/* Keeps a piece as long as it may belong to the end. */
static int keep(struct cli_history *h, const struct xs_event *e) {
    struct cli_io_piece *p = malloc(sizeof *p + e->n);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct cli_io_piece){.stream = e->stream, .seq = e->seq, .n = e->n};
    if (e->n > 0)
        memcpy(p->data, e->data, e->n);
    if (h->first == NULL)
        h->first = p;
    else
        h->newest->next = p;
    h->newest = p;
    h->bytes += (int64_t)p->n;
    while (h->bytes - (int64_t)h->first->n >= h->tail && h->first != h->newest)
        drop_first(h);
    return 0;
}

/* Prints what is kept, cut to the size asked for; whole events as JSON. */
static int print(struct cli_io *io) {
    struct cli_history *h = &io->history;
    int r = 0;
    while (h->first != NULL && r >= 0) {
        struct cli_io_piece *p = h->first;
        int64_t over = io->cli->json ? 0 : h->bytes - h->tail;
        size_t skip = over > 0 ? MIN((size_t)over, p->n) : 0;
        struct xs_event e = {.type = XS_EV_OUTPUT,
                             .stream = p->stream,
                             .seq = p->seq,
                             .data = p->data + skip,
                             .n = p->n - skip};
        r = e.n > 0 ? cli_io_output_put(io, &e) : r;
        drop_first(h);
    }
    return r;
}

bool cli_io_history_take(struct cli_io *io, const struct xs_event *e, int *r) {
    struct cli_history *h = &io->history;
    bool consumed = false;
    uint64_t seq = e->type == XS_EV_GAP ? e->gap_to : e->seq;
    if (h->last == 0)
        return false;
    if (e->type == XS_EV_GAP && seq <= h->last) {
        cli_say_note(io->cli, 1, "earlier output is gone");
        consumed = true;
    } else if (e->type == XS_EV_OUTPUT && seq <= h->last && h->tail >= 0) {
        *r = keep(h, e);
        consumed = true;
    }
    if (e->type == XS_EV_EXITED && io->cli->json) /* its line comes in order */
        *r = print(io);
    if (seq < h->last && e->type != XS_EV_CLOSED && e->type != XS_EV_FAILED)
        return consumed;
    h->last = 0;
    if (*r >= 0)
        *r = print(io);
    if (*r >= 0 && e->type == XS_EV_OUTPUT && !consumed) {
        *r = cli_io_output_put(io, e);
        consumed = true;
    }
    if (io->only_history)
        cli_io_set_end(io, CLI_END_DETACH, NULL);
    return consumed;
}
