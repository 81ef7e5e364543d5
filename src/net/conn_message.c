#include "net/conn_message.h"

#include "json/base64.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/*
 * The mark: this byte, 16 hexadecimal digits, a full stop. The upper half of the number is the
 * distance from the decoded bytes to the mark, the lower half how many they are.
 */
#define CONN_MESSAGE_MARK '\xFF'
#define CONN_MESSAGE_MARK_LEN 18
#define CONN_MESSAGE_ROOM (CONN_MESSAGE_MARK_LEN + 1) /* to print it */

bool conn_message_owns(const struct conn_message *m) {
    return m->memory != NULL && m->memory->p == m->p && conn_message_sent(m) >= m->memory->cap / 2;
}

struct buf conn_message_take(const struct conn_message *m) {
    struct buf taken = *m->memory;
    *m->memory = BUF_INIT(taken.max);
    return taken;
}

/*
 * Makes room in the message's own memory for n more bytes; copies the message there if need be, to
 * memory for either of its texts.
 */
static int conn_message_grow(struct conn_message *m, size_t n) {
    if (m->memory->p != m->p) {
        *m->memory = BUF_INIT(conn_message_sent(m) + conn_message_text_len(m) + CONN_MESSAGE_ROOM);
        if (buf_put(m->memory, m->p, m->n) < 0)
            return -ENOMEM;
    }
    m->memory->len = m->n;
    int r = buf_reserve(m->memory, n);
    m->p = m->memory->p;
    return r;
}

/* The text goes behind the message: the mark is as far from the bytes as the message is long. */
int conn_message_text(struct conn_message *m, struct str *text) {
    *text = (struct str){m->p, m->n};
    if (!conn_message_is_marked(m))
        return 0;
    size_t tail = m->predecoded.at + m->predecoded.n;
    if (conn_message_grow(m, conn_message_text_len(m) + CONN_MESSAGE_ROOM) < 0)
        return -ENOMEM;
    char *at = mempcpy(m->p + m->n, m->p, m->predecoded.at);
    at +=
        sprintf(at, "%c%016" PRIx64 ".", CONN_MESSAGE_MARK, (uint64_t)m->n << 32 | m->predecoded.n);
    at = mempcpy(at, m->p + tail, m->n - tail);
    *text = (struct str){m->p + m->n, (size_t)(at - (m->p + m->n))};
    return 0;
}

bool conn_message_marks(const struct conn_message *m, struct str text, struct str value) {
    return conn_message_is_marked(m) && value.p == text.p + m->predecoded.at && value.n > 0 &&
           value.p[0] == CONN_MESSAGE_MARK;
}

/*
 * The bytes are moved up, to end where their text will, and encoded from there piece by piece: as
 * text grows faster than it is read, the two meet at the end and not before.
 */
int conn_message_restore(struct conn_message *m) {
    size_t more = m->predecoded.n / 3, left = m->predecoded.n;
    if (more == 0)
        return 0;
    if (conn_message_grow(m, more) < 0)
        return -ENOMEM;
    char piece[3072], *to = m->p + m->predecoded.at, *from = to + more;
    memmove(from, to, m->n - m->predecoded.at);
    while (left > 0) {
        size_t n = MIN(left, sizeof piece);
        memcpy(piece, from, n);
        to += base64_encode(to, piece, n);
        from += n;
        left -= n;
    }
    m->n = m->memory->len = m->n + more;
    m->predecoded = (struct ws_part){0, 0};
    return 0;
}

/* A marked value ends in bytes that have a place behind the decoded ones, where they came from. */
int conn_message_base64(struct str value, struct str *data, struct err *e) {
    char *at = (char *)value.p;
    size_t before = 0;
    if (value.n >= CONN_MESSAGE_MARK_LEN && at[0] == CONN_MESSAGE_MARK) {
        uint64_t mark = strtoull(at + 1, NULL, 16);
        value = (struct str){at + CONN_MESSAGE_MARK_LEN, value.n - CONN_MESSAGE_MARK_LEN};
        at -= mark >> 32;
        before = (uint32_t)mark;
    }
    ssize_t n = base64_decode_rest(at + before, value.p, value.n, before / 3 * 4, e);
    *data = (struct str){at, n < 0 ? 0 : before + (size_t)n};
    return (int)MIN(n, 0);
}
