/* Requests for the launcher: what decodes is encoded again to something that decodes alike. */
#include "sandbox/host/launch_request.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_alike(char *const *a, char *const *b) {
    size_t i = 0;
    for (; a[i] != NULL && b[i] != NULL; i++)
        REQUIRE(strcmp(a[i], b[i]) == 0);
    REQUIRE(a[i] == NULL && b[i] == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_arena_ struct arena arena = ARENA_INIT(16u << 20);
    _cleanup_buf_ struct buf b = BUF_INIT(LAUNCH_BYTES_MAX + 4096);
    struct launch_request q, again;
    int r = launch_request_decode((struct str){(const char *)data, size}, &arena, &q);
    REQUIRE(r == 0 || r == -EINVAL || r == -ENOMEM);
    if (r < 0)
        return 0;
    REQUIRE(launch_request_encode(&q, &b) == 0);
    REQUIRE(launch_request_decode(buf_str(&b), &arena, &again) == 0);
    REQUIRE(again.mode == q.mode && again.backend == q.backend && again.tty == q.tty);
    REQUIRE(again.plan.entry_count == q.plan.entry_count);
    REQUIRE(again.limit_count == q.limit_count);
    check_alike(q.argv, again.argv);
    check_alike(q.envp, again.envp);
    return 0;
}
