/*
 * Path URIs. What decodes is an absolute path without NUL, dot segments, double or trailing
 * slashes, and comes back unchanged through its own URI; what does not has a message.
 */
#include "base/uri.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path) {
    size_t n = strlen(path);
    REQUIRE(n > 0 && n <= URI_PATH_MAX && path[0] == '/');
    REQUIRE(n == 1 || path[n - 1] != '/');
    REQUIRE(strstr(path, "//") == NULL && strstr(path, "/./") == NULL);
    REQUIRE(strstr(path, "/../") == NULL);
    const char *last = strrchr(path, '/');
    REQUIRE(strcmp(last, "/.") != 0 && strcmp(last, "/..") != 0);
}

static void check_back(const char *path) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
    REQUIRE(uri_from_path(&b, str_of(path)) == 0);
    for (size_t i = 0; i < b.len; i++)
        REQUIRE(b.p[i] > ' ' && b.p[i] < 0x7F);
    _cleanup_free_ char *back = NULL;
    REQUIRE(uri_to_path(buf_str(&b), &back, &e) == 0);
    REQUIRE(strcmp(back, path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ char *path = NULL;
    int r = uri_to_path((struct str){(const char *)data, size}, &path, &e);
    if (r < 0) {
        REQUIRE(r == -EINVAL || r == -EXDEV);
        REQUIRE(e.msg != NULL && path == NULL);
        REQUIRE(e.code == ERR_INVALID_PARAMS || e.code == ERR_INVALID_REQUEST);
        return 0;
    }
    REQUIRE(e.code == 0);
    check_path(path);
    check_back(path);
    return 0;
}
