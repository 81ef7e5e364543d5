/*
 * Encoded plans. What decodes keeps the promises of the header and encodes to the bytes it came
 * from.
 */
#include "sandbox/policy/plan.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const struct plan *p) {
    REQUIRE(p->cwd[0] == '/' && p->network <= PLAN_NET_MANAGED);
    REQUIRE(p->port_count <= PLAN_PORTS_MAX);
    REQUIRE(p->entry_count <= PLAN_ENTRIES_MAX && p->glob_count <= PLAN_ENTRIES_MAX);
    for (size_t i = 0; i < p->entry_count; i++)
        REQUIRE(p->entries[i].path[0] == '/' && p->entries[i].access <= PLAN_DENY);
    for (size_t i = 0; i < p->glob_count; i++) {
        const struct plan_glob *g = &p->globs[i];
        REQUIRE(g->pattern[0] == '/' && g->fixed > 0 && g->fixed < strlen(g->pattern));
        REQUIRE(g->fixed == 1 || g->pattern[g->fixed] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    struct str bytes = {(const char *)data, size};
    struct plan p;
    int r = plan_decode(bytes, &a, &p);
    REQUIRE(r == 0 || r == -EINVAL);
    if (r < 0)
        return 0;
    check_plan(&p);
    REQUIRE(plan_encode(&p, &b) == 0);
    REQUIRE(str_eq(buf_str(&b), bytes));
    return 0;
}
