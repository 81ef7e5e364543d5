/* A file of tokens: names and count stay within the maxima, and each digest finds a name. */
#include "net/tokens.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tokens *t = NULL;
    struct err e = ERR_INIT;
    if (tokens_parse((struct str){(const char *)data, size}, &t, &e) < 0) {
        REQUIRE(t == NULL && strlen(err_msg(&e)) < 160); /* a reason, not the text */
        err_fini(&e);
        return 0;
    }
    REQUIRE(t->count >= 1 && t->count <= TOKENS_MAX);
    for (size_t i = 0; i < t->count; i++) {
        size_t n = strlen(t->item[i].name);
        REQUIRE(n >= 1 && n <= TOKENS_NAME_MAX);
        REQUIRE(strcmp(tokens_find(t, t->item[i].digest), t->item[i].name) == 0);
    }
    free(t);
    return 0;
}
