/* Answers of a helper in a sandbox: what decodes keeps the promises of the header. */
#include "base/utf8.h"
#include "files/fs_json.h"
#include "fs/fs_call.h"
#include "json/json.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the call was, the bytes are refused or become one JSON object on one line. */
static void check_results(struct str bytes) {
    static const enum fs_call_op ops[] = {FS_CALL_METADATA, FS_CALL_CANONICALIZE,
                                          FS_CALL_LIST,     FS_CALL_WALK,
                                          FS_CALL_REMOVE,   FS_CALL_READ_LINK};
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(FS_RESULT_MAX);
        _cleanup_err_ struct err e = ERR_INIT;
        int r = fs_json_call(&b, ops[i], bytes);
        REQUIRE(r == 0 || (r == -EINVAL && b.len == 0));
        if (r < 0)
            continue;
        struct json_doc d;
        json_doc_init(&d, b.len, 0);
        REQUIRE(memchr(b.p, '\n', b.len) == NULL && utf8_valid(b.p, b.len));
        REQUIRE(json_parse(&d, b.p, b.len, &e) == 0 && json_root(&d)->type == JSON_OBJECT);
        json_doc_fini(&d);
    }
}

static void check(const struct fs_call_answer *a, bool file) {
    switch (a->kind) {
    case FS_CALL_ERROR:
        REQUIRE(!file && a->code < 0 && a->error > 0 && utf8_valid(a->text.p, a->text.n));
        break;
    case FS_CALL_INLINE:
        REQUIRE(!file);
        check_results(a->text);
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
        REQUIRE(r == 0 || r == -EINVAL);
        if (r == 0)
            check(&a, file);
    }
    return 0;
}
