/*
 * Texts of rules: evaluated within their bounds, and checked against a command. An error has a
 * text; what is accepted once is accepted again, and gives the decision it gave.
 */
#include "rules/execpolicy.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The outcome as text. */
static int evaluate(struct str text, struct buf *out) {
    static const struct str words[] = {{"git", 3}, {"status", 6}, {"-s", 2}};
    static const struct execpolicy_words command = {words, 3};
    static const struct execpolicy_place place = {"/work", "/home/user"};
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct execpolicy_matches m;
    struct execpolicy *p = execpolicy_new();
    REQUIRE(p != NULL);
    int r = execpolicy_add(p, "x.rules", text, out);
    REQUIRE(r == 0 || r == -EINVAL || r == -ENOMEM);
    REQUIRE(r != -EINVAL || out->len > 0);
    if (r == 0 && execpolicy_check(p, &command, &place, &a, &m) == 0)
        REQUIRE(execpolicy_put_json(out, &command, &m, text.n % 2 == 1) == 0);
    execpolicy_free(p);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = {(const char *)data, size};
    _cleanup_buf_ struct buf first = BUF_INIT(1u << 20), second = BUF_INIT(1u << 20);
    if (size > 4096 || !utf8_valid(text.p, text.n))
        return 0;
    int r = evaluate(text, &first);
    REQUIRE(evaluate(text, &second) == r);
    REQUIRE(str_eq(buf_str(&first), buf_str(&second)));
    return 0;
}
