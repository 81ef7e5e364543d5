#include "client/procsnap.h"

/* What the snapshot points to; the bytes of the streams follow. */
struct procsnap_block {
    struct xs_exit exit;
    struct xs_part parts[EVQUEUE_STREAMS];
    char data[];
};

int procsnap_make(struct xs_snapshot *out, const struct procsnap_part parts[EVQUEUE_STREAMS],
                  const struct xs_exit *exit) {
    size_t n = 0;
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++)
        n += parts[i].head + parts[i].tail;
    struct procsnap_block *b = calloc(1, sizeof(*b) + n + 1);
    if (b == NULL)
        return XS_ENOMEM;
    struct xs_part *made[EVQUEUE_STREAMS] = {NULL};
    char *at = b->data;
    for (size_t i = 0; i < EVQUEUE_STREAMS; i++) {
        const struct procsnap_part *from = &parts[i];
        if (!from->present)
            continue;
        b->parts[i] = (struct xs_part){.data = at, .head = from->head, .tail = from->tail};
        b->parts[i].total = from->total;
        b->parts[i].omitted = from->total - from->head - from->tail;
        if (from->copy != NULL)
            from->copy(from->data, at);
        else if (from->head + from->tail > 0)
            memcpy(at, from->data, from->head + from->tail);
        at += from->head + from->tail;
        made[i] = &b->parts[i];
    }
    b->exit = *exit;
    out->out = made[EVQUEUE_STDOUT];
    out->err = made[EVQUEUE_STDERR];
    out->pty = made[EVQUEUE_PTY];
    out->exit = &b->exit;
    out->memory = b;
    return 0;
}
