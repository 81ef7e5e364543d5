#include "client/exec_buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TAIL_FIRST 4096

void exec_buffer_init(struct exec_buffer *b, size_t half) {
    *b = (struct exec_buffer){.half = half, .head = BUF_INIT(half)};
}

void exec_buffer_fini(struct exec_buffer *b) {
    size_t half = b->half;
    buf_fini(&b->head);
    free(b->tail);
    exec_buffer_init(b, half);
}

/* Makes room for n bytes behind the tail, or for `half` at most. Only a full ring wraps, so the
 * bytes of one that grows begin at index 0. */
static int grow(struct exec_buffer *b, size_t n) {
    size_t need = MIN(b->tail_len + n, b->half), cap = MAX(b->tail_cap, (size_t)TAIL_FIRST);
    if (need <= b->tail_cap)
        return 0;
    while (cap < need)
        cap *= 2;
    cap = MIN(cap, b->half);
    char *p = realloc(b->tail, cap);
    if (p == NULL)
        return -ENOMEM;
    b->tail = p;
    b->tail_cap = cap;
    return 0;
}

static int put_tail(struct exec_buffer *b, const char *p, size_t n) {
    int r = grow(b, n);
    size_t room = b->tail_cap;
    if (n > room) {
        b->omitted += n - room;
        p += n - room;
        n = room;
    }
    if (n == 0)
        return r;
    size_t gone = b->tail_len + n > room ? b->tail_len + n - room : 0;
    b->omitted += gone;
    b->tail_at = (b->tail_at + gone) % room;
    b->tail_len -= gone;
    size_t at = (b->tail_at + b->tail_len) % room, first = MIN(n, room - at);
    memcpy(b->tail + at, p, first);
    memcpy(b->tail, p + first, n - first);
    b->tail_len += n;
    return r;
}

int exec_buffer_put(struct exec_buffer *b, const char *p, size_t n) {
    /* Bytes of the head never follow bytes of the tail, even if memory ran out in between. */
    size_t head = b->tail_len + b->omitted > 0 ? 0 : MIN(n, b->half - b->head.len);
    int r = buf_put(&b->head, p, head);
    if (r < 0)
        head = 0;
    if (n == head)
        return r;
    int rt = put_tail(b, p + head, n - head);
    return r < 0 ? r : rt;
}

int exec_buffer_flatten(const struct exec_buffer *b, bool marked, struct buf *out) {
    char marker[EXEC_BUFFER_MARKER_MAX];
    size_t size = marked && b->omitted > 0 ? exec_buffer_marker(marker, b->omitted) : 0;
    int r = buf_reserve(out, exec_buffer_kept(b) + size + 2);
    if (r < 0)
        return r;
    size_t first = b->tail_len > 0 ? MIN(b->tail_len, b->tail_cap - b->tail_at) : 0;
    r = buf_put(out, b->head.p, b->head.len);
    if (r == 0 && size > 0)
        r = buf_putf(out, "\n%.*s\n", (int)size, marker);
    if (r == 0 && first > 0)
        r = buf_put(out, b->tail + b->tail_at, first);
    if (r == 0 && first < b->tail_len)
        r = buf_put(out, b->tail, b->tail_len - first);
    return r;
}

size_t exec_buffer_marker(char out[EXEC_BUFFER_MARKER_MAX], uint64_t omitted) {
    return (size_t)snprintf(out, EXEC_BUFFER_MARKER_MAX, "... %" PRIu64 " bytes omitted ...",
                            omitted);
}
