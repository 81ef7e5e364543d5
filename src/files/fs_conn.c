#include "files/fs_conn.h"

#include "fs/fs.h"
#include "files/fs_handle.h"
#include "process/session.h"

#include <errno.h>

struct fs_conn *fs_conn_get(struct rpc_call *c, struct err *e) {
    struct session *s = c->peer->user;
    if (s->files != NULL)
        return s->files;
    struct fs_conn *f = calloc(1, sizeof *f);
    if (f == NULL) {
        fs_fail(e, ENOMEM);
        return NULL;
    }
    f->host = s->host->files;
    list_init(&f->jobs);
    list_init(&f->waiting);
    list_init(&f->handles);
    fs_watch_api_init(&f->watch, c->peer);
    s->files = f;
    return f;
}

void fs_conn_free(struct fs_conn *f) {
    if (f == NULL)
        return;
    fs_watch_api_fini(&f->watch);
    list_for_each(n, &f->jobs) {
        list_entry(n, struct fs_job, node)->conn = NULL;
    }
    list_for_each(n, &f->waiting) {
        fs_job_free(list_entry(n, struct fs_job, node));
    }
    for (struct list *n; (n = list_first(&f->handles)) != NULL;)
        fs_handle_drop(list_entry(n, struct fs_handle, node));
    free(f);
}
