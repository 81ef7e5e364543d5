/* The output of commands: buffers, deltas, and the text for a model, compared with the input. */

#include "base/utf8.h"
#include "client/exec_buffer.h"
#include "client/exec_delta.h"
#include "client/exec_text.h"

#include <stdint.h>
#include <string.h>

#define HALF 300
#define OUT_MAX (1u << 20)

#define DEMAND(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

/* The deltas are the input, in order and whole. */
static void check_deltas(const char *data, size_t n, size_t step) {
    static char delta[EXEC_DELTA_MAX];
    struct exec_delta d = {0};
    size_t at = 0, got;
    bool valid = utf8_valid(data, n);
    for (size_t i = 0; i < n; i += step) {
        struct str in = {data + i, MIN(step, n - i)};
        while ((got = exec_delta_next(&d, &in, i + step >= n, delta)) > 0) {
            DEMAND(at + got <= n && memcmp(delta, data + at, got) == 0);
            DEMAND(!valid || utf8_valid(delta, got));
            at += got;
        }
        DEMAND(in.n == 0);
    }
    DEMAND(at == n || d.count == EXEC_DELTA_COUNT);
}

static void check_text(const struct exec_buffer *b, const struct buf *raw, uint64_t max_tokens) {
    _cleanup_buf_ struct buf output = BUF_INIT(OUT_MAX), text = BUF_INIT(OUT_MAX);
    struct exec_text t = {.chunk_id = "000000",
                          .session = 1000,
                          .raw = buf_str(raw),
                          .bytes = exec_buffer_total(b),
                          .omitted = b->omitted,
                          .max_tokens = max_tokens};
    DEMAND(exec_text_output(&t, &output) == 0);
    DEMAND(utf8_valid(output.p, output.len));
    DEMAND(output.len <= 4 * max_tokens + 256 || max_tokens > EXEC_TEXT_TOKENS);
    DEMAND(exec_text_result(&t, buf_str(&output), &text) == 0);
    DEMAND(text.len > output.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    const char *data = (const char *)bytes;
    if (n < 2 || n > 4096)
        return 0;
    size_t step = 1 + bytes[0], budget = bytes[1];
    data += 2;
    n -= 2;
    struct exec_buffer b;
    exec_buffer_init(&b, HALF);
    for (size_t i = 0; i < n; i += step)
        DEMAND(exec_buffer_put(&b, data + i, MIN(step, n - i)) == 0);
    size_t head = MIN(n, (size_t)HALF), tail = MIN(n - head, (size_t)HALF);
    _cleanup_buf_ struct buf kept = BUF_INIT(OUT_MAX), raw = BUF_INIT(OUT_MAX);
    DEMAND(exec_buffer_flatten(&b, false, &kept) == 0 && kept.len == head + tail);
    DEMAND(head == 0 || memcmp(kept.p, data, head) == 0);
    DEMAND(tail == 0 || memcmp(kept.p + head, data + n - tail, tail) == 0);
    DEMAND(exec_buffer_total(&b) == n);
    DEMAND(exec_buffer_flatten(&b, true, &raw) == 0);
    check_text(&b, &raw, budget);
    check_text(&b, &raw, UINT64_MAX);
    check_deltas(data, n, step);
    exec_buffer_fini(&b);
    return 0;
}
