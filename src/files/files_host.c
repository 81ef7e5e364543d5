#include "files/files_host.h"

#include "fs/fs_site.h"
#include "files/fs_conn.h"
#include "files/fs_helper.h"

void files_host_init(struct files_host *h) {
    list_init(&h->helpers);
    fs_devices_init(&h->devices);
    fs_devices_init(&h->confined_devices);
    fs_devices_hold_root(&h->devices);
}

void files_host_fini(struct files_host *h) {
    loop_timer_del(h->loop, &h->trim_timer);
    fs_devices_fini(&h->devices);
    fs_devices_fini(&h->confined_devices);
}

struct closer {
    struct pool_job job;
    struct pool *pool;
    int fd;
};

static void closer_work(struct pool_job *p) {
    struct closer *c = container_of(p, struct closer, job);
    if (fs_site_enter_fd(p, c->fd))
        close(c->fd);
}

static void closer_done(struct pool_job *p) {
    struct closer *c = container_of(p, struct closer, job);
    if (p->refused)
        pool_submit(c->pool, p); /* its file system hangs, but may come back */
    else
        free(c);
}

void files_host_close(struct files_host *h, int fd) {
    struct closer *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct closer){{.work = closer_work, .done = closer_done}, h->pool, fd};
    pool_submit(h->pool, &c->job);
}

void files_host_detached(struct session *s) {
    fs_conn_free(steal_ptr(&s->files));
}

void files_host_ended(struct session *s) {
    fs_helper_end_all(s);
}
