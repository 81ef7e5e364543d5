#pragma once
/* Calls of fs/ with the JSON text that a client gets, for tests that compare texts. */

#include "files/fs_json.h"
#include "fs/fs_dir.h"
#include "fs/fs_walk.h"

static inline int json_meta(struct fs_devices *d, const char *path, bool follow, struct buf *b,
                            struct err *e) {
    struct fs_meta m;
    int r = fs_meta_get(d, path, follow, &m, e);
    return r < 0 ? r : fs_json_meta(b, &m);
}

static inline int json_real(const char *path, struct buf *b, struct err *e) {
    _cleanup_free_ char *real = NULL;
    int r = fs_meta_canonicalize(path, &real, e);
    return r < 0 ? r : fs_json_path(b, str_of(real));
}

static inline int json_dir(const char *path, const atomic_bool *stop, struct buf *b,
                           struct err *e) {
    struct fs_json_list l;
    const struct fs_sink sink = {fs_json_list_put, &l};
    int r = fs_json_list_begin(&l, b, false);
    if (r == 0)
        r = fs_dir_read(path, stop, &sink, e);
    return fs_json_list_end(&l, r);
}

static inline int json_walk(const struct fs_walk *w, const atomic_bool *stop, struct buf *b,
                            struct err *e) {
    struct fs_json_list l;
    const struct fs_sink sink = {fs_json_list_put, &l};
    int r = fs_json_list_begin(&l, b, true);
    if (r == 0)
        r = fs_walk(w, stop, &sink, e);
    return fs_json_list_end(&l, r);
}
