#include "client/exec_delta.h"

#include "base/util.h"
#include "client/exec_text.h"

#include <string.h>

size_t exec_delta_next(struct exec_delta *d, struct str *in, bool last, char out[EXEC_DELTA_MAX]) {
    if (d->count >= EXEC_DELTA_COUNT) {
        in->n = 0;
        return 0;
    }
    size_t more = MIN(in->n, EXEC_DELTA_MAX - d->held_n), n = d->held_n + more;
    memcpy(out, d->held, d->held_n);
    if (more > 0)
        memcpy(out + d->held_n, str_take(in, more), more);
    size_t whole = last && in->n == 0 ? n : exec_text_whole(out, n);
    d->held_n = n - whole;
    memcpy(d->held, out + whole, d->held_n);
    d->count += whole > 0;
    return whole;
}
