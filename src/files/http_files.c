#include "files/http_files.h"

#include "base/uri.h"
#include "fs/fs_atomic.h"
#include "fs/fs_file.h"
#include "files/fs_job.h"
#include "files/file_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>

#define TRANSFER_PIECE 65536 /* bytes copied at a time where sendfile() cannot */
#define AT_DIGITS 18         /* of an offset */

/* One request. Owns itself: freed when no job runs and the connection is done with it. */
struct transfer {
    struct pool_job job;
    bool running;            /* the job is with the pool */
    bool patient;            /* the transfer has begun: jobs wait for a thread without limit */
    struct conn *conn;       /* NULL: gone */
    struct files_host *host; /* outlives every job, or the process ends */
    char *path;              /* owned */
    bool close, head_only, http10;
    int (*work)(struct transfer *t); /* of the job: 0 or -errno with err set */
    void (*next)(struct transfer *t);
    int r;
    struct err err;

    /* GET */
    struct fs_file file;
    int socket; /* owned: a duplicate, which a job may use after conn is gone */
    uint64_t at, end;
    char *range; /* owned: the header, or NULL */
    bool full;   /* the socket took no more */
    bool whole;  /* the file is in `data` */
    bool behind; /* `at` is outside the file */

    /* PUT */
    bool put;
    bool expects; /* the client waits to be told to send */
    bool update;  /* the body goes into the file itself, to `at` */
    struct fs_atomic *atomic;
    int fd;                    /* of the temporary file, atomic's; or of `file` */
    uint64_t left;             /* bytes of the body not received yet */
    bool made;                 /* there was no such file */
    bool stored;               /* the file has its name */
    struct file_event *report; /* owned; or NULL */

    struct buf data; /* received and not stored, or read and not sent */
};

static void transfer_free(struct transfer *t) {
    if (t->report != NULL && !t->stored && t->err.code == 0)
        err_set(&t->err, ERR_INTERNAL, "the connection ended before the body did");
    file_events_tell(t->report, t->stored ? NULL : &t->err);
    file_events_free(t->report);
    free(t->path);
    free(t->range);
    buf_fini(&t->data);
    err_fini(&t->err);
    free(t);
}

/* -- jobs -- */

static void transfer_run(struct transfer *t, int (*work)(struct transfer *t),
                         void (*next)(struct transfer *t)) {
    t->work = work;
    t->next = next;
    t->running = true;
    pool_submit(t->host->pool, &t->job);
}

static void transfer_work(struct pool_job *j) {
    struct transfer *t = container_of(j, struct transfer, job);
    const struct fs_job_target target = {.site = t->file.site, .path = {t->path}};
    if (fs_job_enter(j, &target))
        t->r = t->work(t);
}

static int transfer_clean_up(struct transfer *t) {
    if (t->atomic != NULL)
        fs_atomic_abort(steal_ptr(&t->atomic));
    util_close_fd(&t->file.fd);
    return 0;
}

/* The connection is done with it: frees it; a thread does what may block. */
static void transfer_end(struct transfer *t) {
    t->conn = NULL;
    util_close_fd(&t->socket); /* at once: the peer waits for the end */
    if (t->atomic != NULL || t->file.fd >= 0)
        transfer_run(t, transfer_clean_up, NULL);
    else
        transfer_free(t);
}

static void transfer_done(struct pool_job *j) {
    struct transfer *t = container_of(j, struct transfer, job);
    t->running = false;
    if (j->refused)
        t->r = fs_fail(&t->err, EAGAIN);
    if (t->conn != NULL && j->refused && t->patient) {
        transfer_run(t, t->work, t->next);
    } else if (t->conn != NULL) {
        conn_http_progress(t->conn);
        t->next(t);
    } else {
        transfer_end(t); /* cleans up; tries again while all threads hang */
    }
}

/* -- answers -- */

/* Queues an answer with a text, or with no body; then the request is over. */
static void transfer_reply(struct transfer *t, int status, const char *text, const char *more,
                           bool close_after) {
    struct conn *c = t->conn;
    struct http_answer a = {.status = status,
                            .body = text,
                            .more = more,
                            .close = t->close || close_after,
                            .head_only = t->head_only,
                            .http10 = t->http10};
    _cleanup_buf_ struct buf b = BUF_INIT(16384);
    int r = status == 204 ? http_write_head(&b, &a, -1, (long long)time(NULL))
                          : http_write_reply(&b, &a, (long long)time(NULL));
    c->transfer = NULL;
    if (r < 0) {
        conn_http_abort(c);
    } else {
        conn_http_put(c, buf_str(&b));
        conn_http_end(c, a.close);
    }
    transfer_end(t);
}

static int transfer_status(int r, const struct err *e) {
    switch (-r) {
    case ENOENT: return 404;
    case EACCES:
    case EPERM: return 403;
    case ENOSPC:
    case EDQUOT: return 507;
    case EISDIR:
    case ENXIO: return 400; /* no regular file */
    case EINVAL:
    case EXDEV: return e->code == ERR_INTERNAL ? 500 : 400;
    default: return 500;
    }
}

/* Whether the job failed; then it has answered. Does not read the rest of a body. */
static bool transfer_failed(struct transfer *t) {
    if (t->r >= 0)
        return false;
    char text[ERR_MSG_MAX + 1]; /* the request, and its error, are gone after the answer */
    snprintf(text, sizeof text, "%s", err_msg(&t->err));
    transfer_reply(t, t->behind ? 416 : transfer_status(t->r, &t->err), text, NULL, t->left > 0);
    return true;
}

/* -- GET -- */

/* The file proved not to be small: streams it if it has a size. 0 or -errno with err set. */
static int transfer_not_small(struct transfer *t) {
    struct stat st;
    buf_fini(&t->data);
    if (fstat(t->file.fd, &st) < 0)
        return fs_fail(&t->err, errno);
    t->file.size = (uint64_t)st.st_size;
    if (t->file.size > HTTP_FILES_SMALL)
        return 0;
    return err_set(&t->err, ERR_INTERNAL, "the file has more than %u bytes, but says %llu",
                   HTTP_FILES_CHUNK, (unsigned long long)t->file.size);
}

static int transfer_read_small(struct transfer *t) {
    while (t->data.len < HTTP_FILES_CHUNK) {
        if (buf_reserve(&t->data, HTTP_FILES_SMALL) < 0)
            return fs_fail(&t->err, ENOMEM);
        ssize_t n =
            fs_file_pread(t->file.fd, t->data.p + t->data.len, HTTP_FILES_SMALL, t->data.len);
        if (n < 0)
            return fs_fail(&t->err, (int)-n);
        t->data.len += (size_t)n;
        if (n < HTTP_FILES_SMALL) {
            t->whole = true;
            t->file.size = t->data.len;
            return 0;
        }
    }
    return transfer_not_small(t);
}

static int transfer_open(struct transfer *t) {
    int r = fs_file_open_read(&t->host->devices, t->path, true, &t->file, &t->err);
    return r < 0 || t->file.size > HTTP_FILES_SMALL ? r : transfer_read_small(t);
}

/*
 * Sends at most n bytes of the file. Bytes sent, or -errno. sendfile() does not know every file,
 * and on FUSE it may report the end where a read was short or failed: then read() decides.
 */
static ssize_t transfer_some(const struct transfer *t, size_t n) {
    off_t at = (off_t)t->at;
    ssize_t r = sendfile(t->socket, t->file.fd, &at, n);
    if (r > 0 || (r < 0 && errno != EINVAL))
        return r < 0 ? -errno : r;
    char piece[TRANSFER_PIECE];
    r = fs_file_pread(t->file.fd, piece, MIN(n, sizeof piece), t->at);
    if (r > 0 && (r = send(t->socket, piece, (size_t)r, MSG_NOSIGNAL)) < 0)
        return -errno;
    return r;
}

static int transfer_send(struct transfer *t) {
    uint64_t stop = MIN(t->end, t->at + HTTP_FILES_TURN);
    t->full = false;
    while (t->at < stop) {
        ssize_t n = transfer_some(t, (size_t)(stop - t->at));
        if (n == -EINTR)
            continue;
        if (n == -EAGAIN) {
            t->full = true;
            return 0;
        }
        if (n <= 0) /* the peer is gone, or the file is unreadable or shorter now */
            return n < 0 ? (int)n : -EIO;
        t->at += (uint64_t)n;
    }
    return 0;
}

static void transfer_sent(struct transfer *t) {
    struct conn *c = t->conn;
    if (t->r == 0 && t->at < t->end) {
        if (t->full)
            conn_http_want_out(c);
        else
            transfer_run(t, transfer_send, transfer_sent);
        return;
    }
    c->transfer = NULL;
    if (t->r < 0)
        conn_http_abort(c);
    else
        conn_http_end(c, t->close);
    transfer_end(t);
}

/* Queues the head for [at, end) of the file. 0 or -errno. */
static int transfer_put_head(struct transfer *t, bool part) {
    char more[128];
    int n = snprintf(more, sizeof more, "accept-ranges: bytes\r\n");
    if (part)
        snprintf(more + n, sizeof more - (size_t)n, "content-range: bytes %llu-%llu/%llu\r\n",
                 (unsigned long long)t->at, (unsigned long long)t->end - 1,
                 (unsigned long long)t->file.size);
    struct http_answer a = {.status = part ? 206 : 200,
                            .type = "application/octet-stream",
                            .more = more,
                            .close = t->close,
                            .http10 = t->http10};
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    int r = http_write_head(&b, &a, (int64_t)(t->end - t->at), (long long)time(NULL));
    if (r == 0)
        conn_http_put(t->conn, buf_str(&b));
    return r;
}

/* The file is open: queues the head, then the file. */
static void transfer_opened(struct transfer *t) {
    if (transfer_failed(t))
        return;
    t->patient = true;
    t->end = t->file.size;
    int part = t->range ? http_range(str_of(t->range), t->file.size, &t->at, &t->end) : 0;
    if (part < 0) {
        char more[64];
        snprintf(more, sizeof more, "content-range: bytes */%llu\r\n",
                 (unsigned long long)t->file.size);
        transfer_reply(t, 416, "", more, false);
        return;
    }
    t->r = transfer_put_head(t, part > 0);
    if (t->r == 0 && t->whole && !t->head_only)
        conn_http_put(t->conn, (struct str){t->data.p + t->at, (size_t)(t->end - t->at)});
    if (t->whole || t->head_only)
        t->at = t->end;
    if (t->r == 0 && t->at < t->end)
        conn_http_want_out(t->conn);
    else
        transfer_sent(t);
}

void http_files_writable(struct conn *c) {
    struct transfer *t = c->transfer;
    if (t != NULL && !t->running)
        transfer_run(t, transfer_send, transfer_sent);
}

/* -- PUT -- */

/* Opens the file itself. A body that would begin behind its end finds no file, or another one. */
static int transfer_begin_update(struct transfer *t) {
    struct fs_devices *d = &t->host->devices;
    int r = t->at == 0 ? fs_file_open_update(d, t->path, &t->file, &t->err)
                       : fs_file_open_write(d, t->path, &t->file, &t->err);
    if (r < 0)
        return r;
    t->fd = t->file.fd;
    t->behind = t->at > t->file.size;
    if (t->behind)
        return err_set(&t->err, ERR_INVALID_REQUEST, "the file has %llu bytes only",
                       (unsigned long long)t->file.size);
    return 0;
}

static int transfer_begin(struct transfer *t) {
    if (t->update)
        return transfer_begin_update(t);
    struct fs_write w = {.path = t->path, .follow = true, .atomic = true};
    return fs_atomic_begin(&w, NULL, &t->atomic, &t->fd, &t->err);
}

static int transfer_store(struct transfer *t) {
    int r = fs_file_pwrite(t->fd, t->data.p, t->data.len, t->at);
    if (r < 0)
        return fs_fail(&t->err, -r);
    t->at += t->data.len;
    t->data.len = 0;
    if (t->left > 0)
        return 0;
    if (t->update) {
        t->stored = true;
        return transfer_clean_up(t);
    }
    r = fs_atomic_commit(steal_ptr(&t->atomic), &t->err);
    t->made = r > 0;
    t->stored = r >= 0;
    return MIN(r, 0);
}

static void transfer_stored(struct transfer *t) {
    if (transfer_failed(t))
        return;
    if (t->left == 0)
        transfer_reply(t, t->made ? 201 : 204, "", NULL, false);
    else
        conn_pause(t->conn, false); /* `body` follows */
}

static void transfer_begun(struct transfer *t) {
    if (transfer_failed(t))
        return;
    t->patient = true;
    if (t->left == 0) {
        transfer_run(t, transfer_store, transfer_stored);
        return;
    }
    if (t->expects)
        conn_http_put(t->conn, STR_LIT("HTTP/1.1 100 Continue\r\n\r\n"));
    conn_pause(t->conn, false);
}

void http_files_body(struct conn *c) {
    struct transfer *t = c->transfer;
    if (t == NULL || t->running || !t->put)
        return;
    size_t n = (size_t)MIN((uint64_t)c->in.len, t->left);
    n = MIN(n, HTTP_FILES_CHUNK - t->data.len);
    if (n > 0 && buf_put(&t->data, c->in.p, n) < 0) {
        t->r = fs_fail(&t->err, ENOMEM);
        transfer_failed(t);
        return;
    }
    buf_consume(&c->in, n);
    t->left -= n;
    conn_http_progress(c);
    if (t->left == 0 || t->data.len == HTTP_FILES_CHUNK) {
        conn_pause(c, true);
        transfer_run(t, transfer_store, transfer_stored);
    } else if (c->input_done && c->in.len == 0) { /* the client left in the middle */
        c->transfer = NULL;
        conn_http_abort(c);
        transfer_end(t);
    }
}

/* -- both -- */

void http_files_cut(struct conn *c) {
    struct transfer *t = steal_ptr(&c->transfer);
    if (t == NULL)
        return;
    t->conn = NULL;
    if (!t->running)
        transfer_end(t);
    else if (t->socket >= 0) /* a job may hang, and hold it open */
        shutdown(t->socket, SHUT_RDWR);
}

/* Sets t->path from the query's `path`. 0 or -errno with err set. */
static int transfer_find_path(struct transfer *t, const struct http_request *r) {
    _cleanup_buf_ struct buf text = BUF_INIT(HTTP_TARGET_MAX);
    int n = http_query_get(r, "path", &text);
    if (n < 0)
        return err_set(&t->err, ERR_INVALID_REQUEST, "the query has no `path`");
    return uri_to_path(buf_str(&text), &t->path, &t->err);
}

/* Sets t->at from the query's `at`. 0 or -errno. */
static int transfer_find_at(struct transfer *t, const struct http_request *r) {
    _cleanup_buf_ struct buf text = BUF_INIT(HTTP_TARGET_MAX);
    int n = http_query_get(r, "at", &text);
    if (n == -ENOENT)
        return 0;
    if (n < 0 || text.len == 0 || text.len > AT_DIGITS)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -EINVAL;
        t->at = t->at * 10 + (uint64_t)(text.p[i] - '0');
    }
    t->update = true;
    return 0;
}

static void transfer_start_put(struct transfer *t, const struct http_request *r) {
    int64_t n = http_body_len(r);
    t->put = true;
    t->left = n > 0 ? (uint64_t)n : 0;
    t->expects = r->minor > 0 && str_ieqz(http_header_get(r, "expect"), "100-continue");
    if (n < 0) {
        transfer_reply(t, 411, "a PUT needs a Content-Length", NULL, true);
    } else if (http_header_get(r, "content-range").p != NULL) {
        transfer_reply(t, 400, "a PUT replaces the whole file", NULL, n > 0);
    } else if (transfer_find_at(t, r) < 0) {
        transfer_reply(t, 400, "`at` is no offset", NULL, n > 0);
    } else {
        t->report = file_events_http(t->host, t->conn, "PUT /v1/files", t->path, n);
        transfer_run(t, transfer_begin, transfer_begun);
    }
}

static void transfer_start_get(struct transfer *t, const struct http_request *r) {
    struct str range = http_header_get(r, "range");
    /* No validators exist, so no If-Range matches. */
    if (range.p != NULL && http_header_get(r, "if-range").p == NULL)
        t->range = str_dup(range);
    t->socket = fcntl(t->conn->io.fd, F_DUPFD_CLOEXEC, 3);
    if (t->socket < 0)
        transfer_reply(t, 500, "No file descriptors available (os error 24)", NULL, false);
    else
        transfer_run(t, transfer_open, transfer_opened);
}

void http_files_request(struct files_host *host, struct conn *c, const struct http_request *r,
                        const struct http_answer *a) {
    struct transfer *t = calloc(1, sizeof *t);
    conn_http_begin(c);
    if (t == NULL) {
        conn_http_abort(c);
        return;
    }
    *t = (struct transfer){
        .job = {.work = transfer_work, .done = transfer_done},
        .conn = c,
        .host = host,
        .socket = -1,
        .fd = -1,
        .file = FS_FILE_NONE,
        .close = a->close,
        .head_only = a->head_only,
        .http10 = a->http10,
        .data = BUF_INIT(HTTP_FILES_CHUNK),
    };
    c->transfer = t;
    t->r = transfer_find_path(t, r);
    if (t->r < 0) {
        t->left = http_body_len(r) != 0;
        transfer_failed(t);
    } else if (str_eqz(r->method, "PUT")) {
        transfer_start_put(t, r);
    } else {
        transfer_start_get(t, r);
    }
}
