#include "process/sizes.h"

#include <inttypes.h>

void sizes_fini(struct sizes *s) {
    free(s->one);
    *s = (struct sizes){.one = NULL};
}

void sizes_add(struct sizes *s, uint64_t seq, unsigned rows, unsigned cols) {
    if (s->one == NULL)
        s->one = calloc(SIZES_MAX, sizeof *s->one);
    if (s->one == NULL)
        return;
    s->one[s->next++ % SIZES_MAX] = (struct sizes_one){seq, (uint16_t)rows, (uint16_t)cols};
    if (s->next - s->first > SIZES_MAX)
        s->first++;
}

const struct sizes_one *sizes_at(const struct sizes *s, uint64_t n) {
    return &s->one[n % SIZES_MAX];
}

int sizes_put(const struct sizes *s, struct buf *b) {
    int r = buf_putc(b, '[');
    for (uint64_t n = s->first; r == 0 && n < s->next; n++) {
        const struct sizes_one *one = sizes_at(s, n);
        r = buf_putf(b, "%s{\"seq\":%" PRIu64 ",\"rows\":%u,\"cols\":%u}", n > s->first ? "," : "",
                     one->seq, one->rows, one->cols);
    }
    return r < 0 ? r : buf_putc(b, ']');
}
