#include "files/fs_handle.h"

#include "files/file_events.h"

#include <errno.h>

struct fs_handle *fs_handle_find(const struct fs_conn *f, struct str id) {
    list_for_each(n, &f->handles) {
        struct fs_handle *h = list_entry(n, struct fs_handle, node);
        if (str_eq(id, (struct str){h->id, h->id_len}))
            return h;
    }
    return NULL;
}

struct fs_handle *fs_handle_new(struct fs_conn *f, struct str id, struct err *e) {
    struct fs_handle *h = calloc(1, sizeof *h);
    if (h == NULL) {
        fs_fail(e, ENOMEM);
        return NULL;
    }
    h->host = f->host;
    h->conn = f;
    h->file = FS_FILE_NONE;
    h->id_len = id.n;
    if (id.n > 0)
        memcpy(h->id, id.p, id.n);
    list_append(&f->handles, &h->node);
    f->handle_count++;
    return h;
}

/* Closes a handle's file for a client that waits for it. */
struct handle_closing {
    struct fs_job job;
    struct fs_handle *handle; /* whose turn to be closed has not come */
    int fd;
};

static int closing_work(struct fs_job *j) {
    struct handle_closing *c = container_of(j, struct handle_closing, job);
    close(steal_fd(&c->fd));
    return 0;
}

static void closing_release(struct fs_job *j) {
    struct handle_closing *c = container_of(j, struct handle_closing, job);
    if (c->handle != NULL)
        c->handle->closing = NULL;
    if (c->fd >= 0) /* the call was cancelled or no thread was free */
        files_host_close(j->host, c->fd);
    free(c);
}

/* Lets the file of a handle go that is out of the table and not busy. */
static void handle_end(struct fs_handle *h) {
    if (h->closing != NULL) {
        struct handle_closing *c = container_of(h->closing, struct handle_closing, job);
        c->handle = NULL;
        c->fd = h->file.fd;
        c->job.target.site = h->file.site;
        if (c->fd >= 0) {
            fs_job_queue(&c->job);
        } else { /* it could not be opened */
            fs_job_finish_empty(&c->job);
            fs_job_free(&c->job);
        }
    } else if (h->file.fd >= 0) {
        files_host_close(h->host, h->file.fd);
    }
    file_events_tell(h->report, NULL);
    file_events_free(h->report);
    free(h);
}

void fs_handle_use(struct fs_handle *h, struct fs_job *j) {
    j->held = h;
    h->busy++;
}

void fs_handle_unuse(struct fs_handle *h) {
    h->busy--;
    if (h->busy == 0 && h->conn == NULL)
        handle_end(h);
}

void fs_handle_drop(struct fs_handle *h) {
    list_remove(&h->node);
    h->conn->handle_count--;
    h->conn = NULL;
    if (h->busy == 0)
        handle_end(h);
}

enum rpc_outcome fs_handle_close(struct fs_handle *h, struct rpc_call *c, struct buf *result,
                                 struct err *e) {
    if (h->busy == 0 && fs_file_closes_fast(&h->file)) {
        close(steal_fd(&h->file.fd));
        fs_handle_drop(h);
        return rpc_done_text(result, "{}");
    }
    struct handle_closing *j = calloc(1, sizeof *j);
    if (j == NULL)
        return fs_job_no_memory(e);
    j->fd = -1;
    fs_job_init(&j->job, closing_work, fs_job_finish_empty, closing_release);
    if (fs_job_keep(h->conn, &j->job, c, e) < 0)
        return RPC_ERROR;
    j->handle = h;
    h->closing = &j->job;
    fs_handle_drop(h);
    return RPC_LATER;
}
