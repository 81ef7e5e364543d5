/*
 * Patterns: a pattern, a NUL, a path. Reading a path in two parts, by way of a kept state, gives
 * what reading it at once gives; a pattern without special characters matches itself alone.
 */
#include "sandbox/policy/glob_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const struct glob_set *s, char *path, bool whole) {
    struct glob_run r;
    struct glob_at at;
    size_t half = strlen(path) / 2;
    while (half > 0 && (path[half] & 0x80) != 0)
        half--;
    char kept = path[half];
    REQUIRE(glob_run_init(&r, s) == 0);
    glob_run_start(&r);
    path[half] = '\0';
    glob_run_read(&r, path);
    path[half] = kept;
    REQUIRE(glob_run_save(&r, &at) == 0);
    REQUIRE(glob_run_alive(&r) || !whole);
    glob_run_start(&r);
    glob_run_read(&r, "something else");
    glob_run_load(&r, &at);
    glob_run_read(&r, path + half);
    REQUIRE(glob_run_matched(&r) == whole);
    free(at.nodes);
    glob_run_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[1024] = {0};
    memcpy(text, data, size < sizeof text - 2 ? size : sizeof text - 2);
    const char *pattern = text;
    char *path = text + strlen(text) + 1;
    if (path >= text + sizeof text - 1)
        return 0;
    struct glob_set s = {0};
    const char *why = NULL;
    int r = glob_add(&s, pattern, &why);
    REQUIRE(r == 0 || (r == -EINVAL && why != NULL && s.node_count == 0 && s.start_count == 0));
    if (r == 0) {
        int match = glob_run_match(&s, path);
        REQUIRE(match == 0 || match == 1);
        check_parts(&s, path, match != 0);
        if (strpbrk(pattern, "*?[{}\\") == NULL) {
            REQUIRE(glob_run_match(&s, pattern) == 1);
            bool deep = strchr(pattern, '/') == NULL;
            REQUIRE(match == (strcmp(pattern, path) == 0) || deep);
        }
    }
    glob_set_fini(&s);
    return 0;
}
