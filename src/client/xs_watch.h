#pragma once
/* Watches of files, as the other file calls see them. */

#include "client/fspart.h"

struct xs_watch {
    struct list node;
    struct xs_fs *fs; /* one user of it */
    xs_watch_fn *fn;
    void *user;
    bool is_missing; /* fs/watchMissing; else fs/watch */
    bool recursive;
    char *path;      /* fs/watch; owned */
    char **paths;    /* fs/watchMissing; owned, ends with NULL */
    char id[24];     /* fs/watch */
    uint64_t number; /* fs/watchMissing */
    bool active;     /* the server has it */
    bool over;       /* it tells nothing more */
    struct op *op;   /* the one that makes it; NULL afterwards */
    struct xs_watch **out;
    struct calls_request request;
    /* What the caller does not know yet. */
    struct notice notice;
    struct buf changed; /* paths, each with its NUL */
    size_t n_changed;
    bool overflow;
    char *failed; /* owned */
};

/* For fspart. */
int xs_watch_note(struct files *files, struct str method, const struct json_node *params);
void xs_watch_resumed(struct files *files);
void xs_watch_failed(struct files *files, const struct xs_error *why);

/* xs_fs_watch() and xs_fs_watch_missing(). */
int xs_watch_start(struct xs_fs *f, const char *path, unsigned flags, xs_watch_fn *fn, void *user,
                   struct xs_watch **out, struct xs_call *k);
int xs_watch_start_missing(struct xs_fs *f, const char *const *paths, xs_watch_fn *fn, void *user,
                           struct xs_watch **out, struct xs_call *k);
