#include "environment/discover_source.h"

#include "fs/fs_fail.h"

#include <errno.h>

static struct fs_devices *source_devices(struct fs_job *j) {
    return &j->host->devices;
}

/* -- direct -- */

static int source_meta(void *arg, const char *path, struct fs_meta *m, struct err *e) {
    return fs_meta_get(source_devices(arg), path, true, m, e);
}

static int source_walk(void *arg, const struct fs_walk *w, const struct fs_sink *sink,
                       struct err *e) {
    struct fs_job *j = arg;
    return fs_walk(w, &j->stop, sink, e);
}

static int source_open(void *arg, const char *path, struct fs_file *f, struct err *e) {
    return fs_file_open_read(source_devices(arg), path, true, f, e);
}

/* -- confined -- */

static int confined_meta(void *arg, const char *path, struct fs_meta *m, struct err *e) {
    struct fs_confined *x = &((struct fs_job *)arg)->confined;
    const struct fs_call call = {.op = FS_CALL_METADATA, .path = path, .follow = true};
    _cleanup_buf_ struct buf b = BUF_INIT(FS_RESULT_MAX);
    int r = fs_confined_set(x, &call, e);
    if (r == 0)
        r = fs_confined_ask(x, &b, e);
    if (r != 0)
        return r;
    if (b.len != sizeof *m)
        return fs_confined_distrust(x, e);
    memcpy(m, b.p, sizeof *m);
    return 0;
}

static int confined_walk(void *arg, const struct fs_walk *w, const struct fs_sink *sink,
                         struct err *e) {
    struct fs_confined *x = &((struct fs_job *)arg)->confined;
    const struct fs_call call = {.op = FS_CALL_WALK,
                                 .path = w->path,
                                 .uri = w->uri,
                                 .follow = true,
                                 .follow_directory_links = w->follow_directory_links,
                                 .prune_hidden = w->prune_hidden,
                                 .max_depth = w->max_depth,
                                 .max_directories = w->max_directories,
                                 .max_entries = w->max_entries};
    _cleanup_buf_ struct buf b = BUF_INIT(FS_RESULT_MAX);
    int r = fs_confined_set(x, &call, e);
    if (r == 0)
        r = fs_confined_ask(x, &b, e);
    struct str bytes = buf_str(&b);
    struct fs_item item;
    int more = 0;
    while (r == 0 && (more = fs_item_decode(&bytes, &item)) > 0)
        r = sink->put(sink->arg, &item);
    return r == 0 && more < 0 ? fs_confined_distrust(x, e) : r;
}

static int confined_open(void *arg, const char *path, struct fs_file *f, struct err *e) {
    struct fs_confined *x = &((struct fs_job *)arg)->confined;
    const struct fs_call call = {.op = FS_CALL_READ, .path = path, .follow = true};
    int r = fs_confined_set(x, &call, e);
    return r == 0 ? fs_confined_open(x, f, e) : r;
}

struct discover_source discover_source_of(struct fs_job *j) {
    bool confined = j->confined.helper != NULL;
    return (struct discover_source){.arg = j,
                                    .meta = confined ? confined_meta : source_meta,
                                    .walk = confined ? confined_walk : source_walk,
                                    .open = confined ? confined_open : source_open,
                                    .stop = &j->stop};
}
