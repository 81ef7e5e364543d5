#include "net/conn_message.h"

#include "json/base64.h"

#include <errno.h>

bool conn_message_owns(const struct conn_message *m) {
    return m->memory != NULL && m->memory->p == m->p && conn_message_sent(m) >= m->memory->cap / 2;
}

struct buf conn_message_take(const struct conn_message *m) {
    struct buf taken = *m->memory;
    *m->memory = BUF_INIT(taken.max);
    return taken;
}

/* Room in the message's own memory for n more bytes; what lies elsewhere is copied there. */
static int conn_message_grow(struct conn_message *m, size_t n) {
    if (m->memory->p != m->p) {
        *m->memory = BUF_INIT(m->n + n);
        if (buf_put(m->memory, m->p, m->n) < 0)
            return -ENOMEM;
    }
    m->memory->len = m->n;
    int r = buf_reserve(m->memory, n);
    m->p = m->memory->p;
    return r;
}

/*
 * The bytes are moved up, to end where their text will, and encoded from there piece by piece: as
 * text grows faster than it is read, the two meet at the end and not before.
 */
int conn_message_unpack(struct conn_message *m) {
    size_t more = m->packed.n / 3, left = m->packed.n;
    if (more == 0)
        return 0;
    if (conn_message_grow(m, more) < 0)
        return -ENOMEM;
    char piece[3072], *to = m->p + m->packed.at, *from = to + more;
    memmove(from, to, m->n - m->packed.at);
    while (left > 0) {
        size_t n = MIN(left, sizeof piece);
        memcpy(piece, from, n);
        to += base64_encode(to, piece, n);
        from += n;
        left -= n;
    }
    m->n = m->memory->len = m->n + more;
    m->packed = (struct ws_part){0, 0};
    return 0;
}
