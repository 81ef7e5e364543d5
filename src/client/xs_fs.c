#include "execserver.h"

int xs_fs_new(struct xs_client *c, const struct xs_options *sandbox, struct xs_fs **out) {
    (void)c;
    (void)sandbox;
    (void)out;
    return XS_ENOTSUP;
}

void xs_fs_free(struct xs_fs *f) {
    (void)f;
}

int xs_fs_stat(struct xs_fs *f, const char *path, unsigned flags, struct xs_stat *s,
               struct xs_call *k) {
    (void)f;
    (void)path;
    (void)flags;
    (void)s;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_read(struct xs_fs *f, const char *path, unsigned flags, uint64_t max,
               struct xs_bytes *out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)flags;
    (void)max;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_write(struct xs_fs *f, const char *path, const void *data, size_t n, unsigned flags,
                struct xs_call *k) {
    (void)f;
    (void)path;
    (void)data;
    (void)n;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_list(struct xs_fs *f, const char *path, struct xs_entries **out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_walk(struct xs_fs *f, const char *path, const struct xs_walk *limits,
               struct xs_entries **out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)limits;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_mkdir(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_remove(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_chmod(struct xs_fs *f, const char *path, unsigned mode, unsigned flags,
                struct xs_call *k) {
    (void)f;
    (void)path;
    (void)mode;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_copy(struct xs_fs *f, const char *from, const char *to, unsigned flags,
               struct xs_call *k) {
    (void)f;
    (void)from;
    (void)to;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_rename(struct xs_fs *f, const char *from, const char *to, unsigned flags,
                 struct xs_call *k) {
    (void)f;
    (void)from;
    (void)to;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_set_times(struct xs_fs *f, const char *path, int64_t modified_ms, unsigned flags,
                    struct xs_call *k) {
    (void)f;
    (void)path;
    (void)modified_ms;
    (void)flags;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_canonicalize(struct xs_fs *f, const char *path, struct xs_bytes *out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_read_link(struct xs_fs *f, const char *path, struct xs_bytes *out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_symlink(struct xs_fs *f, const char *path, const char *target, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)target;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_watch(struct xs_fs *f, const char *path, unsigned flags, xs_watch_fn *fn, void *user,
                struct xs_watch **out, struct xs_call *k) {
    (void)f;
    (void)path;
    (void)flags;
    (void)fn;
    (void)user;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_watch_missing(struct xs_fs *f, const char *const *paths, xs_watch_fn *fn, void *user,
                        struct xs_watch **out, struct xs_call *k) {
    (void)f;
    (void)paths;
    (void)fn;
    (void)user;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}

int xs_fs_open(struct xs_fs *f, const char *path, enum xs_open mode, struct xs_file **out,
               struct xs_call *k) {
    (void)f;
    (void)path;
    (void)mode;
    (void)out;
    (void)k;
    return XS_ENOTSUP;
}
