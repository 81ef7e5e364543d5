#pragma once
/*
 * A whole message of a connection.
 *
 * A long Base64 string is decoded while the frame is unmasked (ws.h). The message then has no text
 * of its own: conn_message_text() makes one, in which a mark stands for the decoded beginning of
 * that string. The mark begins with a byte that valid UTF-8 does not have, so no peer can send it.
 * Readers of JSON see an ordinary string; conn_message_base64() turns it into bytes. A caller
 * that cannot use the mark asks for the text as it was sent, with conn_message_restore().
 *
 * Without this fs/writeFile of 6 MB has 60% to 72% of its rate, and takes 1.5 to 1.7 times the
 * processor time.
 */

#include "base/buf.h"
#include "base/err.h"
#include "net/ws.h"

struct conn_message {
    char *p; /* writable */
    size_t n;
    bool utf8;                 /* valid UTF-8, apart from the predecoded bytes */
    struct ws_part predecoded; /* if any (n > 0), `memory` is set */
    struct buf *memory;        /* holds the message if conn_message_owns(); or NULL */
};

/* Whether a part is predecoded, so that its text has a mark. */
static inline bool conn_message_is_marked(const struct conn_message *m) {
    return m->predecoded.n > 0;
}

/* Its length as it was sent. */
static inline size_t conn_message_sent(const struct conn_message *m) {
    return m->n + m->predecoded.n / 3;
}

/* Bytes that a reader of its text has to look at, without the mark. */
static inline size_t conn_message_text_len(const struct conn_message *m) {
    return m->n - m->predecoded.n;
}

/*
 * Whether the message has memory of its own that was not taken yet. Memory of more than twice the
 * size that was sent does not count: it was lent by a larger message (net/bufcache.h).
 */
bool conn_message_owns(const struct conn_message *m);

/* Takes that memory, so that the message outlasts its handling. It goes back by bufcache_give(). */
struct buf conn_message_take(const struct conn_message *m);

/*
 * Sets *text to the text to parse, borrowed from the message, whose memory may move. 0, or -ENOMEM
 * when there is no room for a marked text: the message must be restored.
 */
MUST_CHECK int conn_message_text(struct conn_message *m, struct str *text);

/* Whether `value`, a string that was read from `text`, begins with the mark, in its place. */
bool conn_message_marks(const struct conn_message *m, struct str text, struct str value);

/* Turns the message into the text that was sent; earlier texts become invalid. 0 or -ENOMEM. */
MUST_CHECK int conn_message_restore(struct conn_message *m);

/*
 * Decodes a Base64 value of the text in the message's memory; *data borrows from there. A marked
 * value may be decoded again, another one may not. 0, or -EINVAL with the error of base64_decode().
 */
MUST_CHECK int conn_message_base64(struct str value, struct str *data, struct err *e);
