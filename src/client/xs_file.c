#include "execserver.h"

int xs_file_read(struct xs_file *f, uint64_t offset, void *buf, size_t n, struct xs_call *k) {
    (void)f;
    (void)offset;
    (void)buf;
    (void)n;
    (void)k;
    return XS_ENOTSUP;
}

int xs_file_write(struct xs_file *f, uint64_t offset, const void *data, size_t n,
                  struct xs_call *k) {
    (void)f;
    (void)offset;
    (void)data;
    (void)n;
    (void)k;
    return XS_ENOTSUP;
}

int xs_file_close(struct xs_file *f, struct xs_call *k) {
    (void)f;
    (void)k;
    return XS_ENOTSUP;
}

void xs_file_free(struct xs_file *f) {
    (void)f;
}
