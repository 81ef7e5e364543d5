/* URLs of a client: an accepted one has what its kind needs, and no text of it has a secret. */
#include "client/target.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const char *z) {
    for (; *z != '\0'; z++)
        REQUIRE((unsigned char)*z > ' ' && *z != 0x7F);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *url = malloc(size + 1);
    struct target t = {.kind = TARGET_WS};
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    REQUIRE(url != NULL);
    memcpy(url, data, size);
    url[size] = '\0';
    if (target_parse(&t, url, &e) == 0) {
        REQUIRE(t.shown != NULL);
        if (target_is_ws(&t)) {
            REQUIRE(t.authority != NULL && t.resource != NULL && t.resource[0] == '/');
            check_head(t.authority);
            check_head(t.resource);
            REQUIRE(strchr(t.authority, '@') == NULL);
        }
        REQUIRE((t.kind != TARGET_WS && t.kind != TARGET_WSS && t.kind != TARGET_SSH) ||
                (t.host != NULL && t.host[0] != '\0'));
        REQUIRE(t.kind != TARGET_UNIX || (t.path != NULL && strchr("/@", t.path[0]) != NULL));
        REQUIRE(t.kind != TARGET_FD || (t.in >= 0 && t.out >= 0));
    } else {
        REQUIRE(xs_error_code(&e) < 0);
    }
    target_fini(&t);
    free(url);
    return 0;
}
