/*
 * What a capture of a shell printed. An accepted state has no NUL and is UTF-8, and a command takes
 * it; the variables are a list of texts.
 */
#include "process/snapshot_script.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_apply(struct str state) {
    struct arena a = ARENA_INIT(8u << 20);
    char *argv[] = {"bash", "-lc", "x", NULL}, *none[] = {NULL};
    struct snapshot_command c = {argv, none};
    if (snapshot_script_apply(&a, SNAPSHOT_BASH, state, none, none, &c) == 0) {
        size_t n = 0;
        for (char *const *v = c.envp; *v != NULL; v++)
            n += strlen(strchr(*v, '=') + 1);
        REQUIRE(n == state.n);
    }
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct snapshot_text t;
    if (snapshot_script_parse((struct str){(const char *)data, size}, &t) < 0)
        return 0;
    REQUIRE(t.state.n + t.variables.n <= SNAPSHOT_SCRIPT_STATE_MAX);
    REQUIRE(t.state.n == 0 || memchr(t.state.p, 0, t.state.n) == NULL);
    REQUIRE(utf8_valid(t.state.p, t.state.n));
    REQUIRE(t.variables.n == 0 || t.variables.p[t.variables.n - 1] == 0);
    fuzz_apply(t.state);
    return 0;
}
