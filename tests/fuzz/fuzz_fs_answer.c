/* Answers of a helper in a sandbox: what decodes keeps the promises of the header. */
#include "base/utf8.h"
#include "fs/fs_call.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct fs_call_answer *a, bool file) {
    switch (a->kind) {
    case FS_CALL_ERROR:
        REQUIRE(!file && a->code < 0 && a->error > 0 && utf8_valid(a->text.p, a->text.n));
        break;
    case FS_CALL_TEXT:
        REQUIRE(!file && memchr(a->text.p, '\n', a->text.n) == NULL);
        REQUIRE(a->text.n == 0 || (a->text.n >= 2 && utf8_valid(a->text.p, a->text.n)));
        break;
    case FS_CALL_MEMFD:
    case FS_CALL_FILE: REQUIRE(file && a->text.n == 0); break;
    default: abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str packet = {(const char *)data, size};
    for (int file = 0; file < 2; file++) {
        struct fs_call_answer a;
        int r = fs_call_answer_decode(packet, file, &a);
        REQUIRE(r == 0 || r == -EINVAL || r == -ENOMEM);
        if (r == 0)
            check(&a, file);
    }
    return 0;
}
