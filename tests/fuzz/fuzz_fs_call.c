/* File calls: what decodes keeps the promises of the header and encodes to the same bytes. */
#include "fs/fs_call.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_buf_ struct buf b = BUF_INIT(FS_CALL_BYTES_MAX);
    struct str bytes = {(const char *)data, size};
    struct fs_call c;
    int r = fs_call_decode(bytes, &c);
    REQUIRE(r == 0 || r == -EINVAL);
    if (r < 0)
        return 0;
    REQUIRE(c.op < FS_CALL_OPS && c.path[0] == '/' && c.mode <= 07777);
    REQUIRE((c.op != FS_CALL_COPY && c.op != FS_CALL_RENAME) || c.destination[0] == '/');
    REQUIRE(c.op != FS_CALL_SYMLINK || c.target != NULL);
    REQUIRE(fs_call_encode(&c, &b) == 0);
    REQUIRE(str_eq(buf_str(&b), bytes));
    return 0;
}
