/*
 * fs/readFile. It reads up to FS_FIRST_BYTES before the answer begins. Of a larger file it then
 * probes the rest, so that read errors become error answers. Then it streams the file chunk by
 * chunk, with about 8 MB of it in memory at most. A later error spoils the result and follows it
 * (FS_READ_CUT).
 */
#include "json/base64.h"
#include "files/fs_api.h"
#include "files/fs_handle.h"
#include "files/fs_params.h"

#include <errno.h>

#define FS_PIECE 49152 /* bytes read at a time, for the sake of caches: a multiple of 3 */

#define FS_READ_BEFORE "{\"dataBase64\":\""

/*
 * Spoils a result that was sent in part. A reader that takes the first of two equal members finds
 * text that is no Base64; one that takes the last finds null.
 */
#define FS_READ_CUT "!\",\"dataBase64\":null}"

/* Some files of /proc have records of 8 bytes, Base64 has groups of 3. */
#define FS_RECORD 24u

struct fs_read {
    struct fs_job job;
    char *path; /* owned */
    bool follow;
    uint64_t limit; /* bytes that may be read */
    struct fs_file file;
    uint64_t at;             /* bytes read */
    struct sendq_seg *chain; /* to fill, or filled and not queued; owned */
    uint64_t end;            /* bytes that were found, by probing */
    bool eof;
    bool probed;
    bool streaming;
};

ssize_t fs_read_encoded(const struct fs_file *f, uint64_t offset, size_t n, bool wait,
                        struct sendq_seg *seg) {
    char piece[FS_PIECE];
    size_t done = 0;
    while (done < n) {
        size_t want = MIN(n - done, sizeof piece);
        ssize_t r = wait ? fs_file_pread(f->fd, piece, want, offset + done)
                         : fs_file_try_pread(f, piece, want, offset + done);
        if (r < 0)
            return r;
        seg->len += base64_encode(seg->data + seg->len, piece, (size_t)r);
        done += (size_t)r;
        if ((size_t)r < want)
            break;
    }
    return (ssize_t)done;
}

static void fs_on_trim(struct loop_timer *t) {
    sendq_pool_trim(&container_of(t, struct files_host, trim_timer)->conns->pool);
}

void fs_read_used_blocks(struct files_host *host) {
    host->trim_timer.fn = fs_on_trim;
    if (host->trim_timer.pos == 0)
        (void)!loop_timer_set(host->loop, &host->trim_timer, FS_TRIM_MS * LOOP_MS);
}

static int fs_read_too_large(uint64_t limit, struct err *e) {
    return err_set(e, ERR_INVALID_REQUEST, "file is too large to read: limit is %llu bytes",
                   (unsigned long long)limit);
}

/* -- in a thread -- */

static int fs_read_open(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    if (j->confined.helper != NULL)
        return fs_confined_open(&j->confined, &r->file, &j->err);
    return fs_file_open_read(&j->host->devices, r->path, r->follow, &r->file, &j->err);
}

static int fs_read_fill(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    for (struct sendq_seg *s = r->chain; s != NULL && !r->eof; s = s->next) {
        size_t want = MIN(s->cap / 4 * 3, (size_t)FS_CHUNK);
        if (s->len > 0) /* filled before */
            continue;
        if (r->file.size <= r->at)
            want -= want % FS_RECORD;
        if (r->probed)
            want = (size_t)MIN((uint64_t)want, r->end - r->at);
        ssize_t n = fs_read_encoded(&r->file, r->at, want, true, s);
        if (n < 0)
            return (int)n;
        r->at += (uint64_t)n;
        r->eof = (size_t)n < want || (r->probed && r->at == r->end);
    }
    return r->at > r->limit ? fs_read_too_large(r->limit, &j->err) : 0;
}

/* Learns whether the next part can be read, and whether it is the last one. */
static int fs_read_probe(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    ssize_t n = fs_file_probe(r->file.fd, FS_PROBE, r->end);
    if (n < 0)
        return (int)n;
    r->end += (uint64_t)n;
    r->probed = n < FS_PROBE;
    return r->end > r->limit ? fs_read_too_large(r->limit, &j->err) : 0;
}

/* -- in the loop -- */

static void fs_read_release(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    sendq_seg_free(&j->host->conns->pool, r->chain);
    if (r->file.fd >= 0 && fs_file_closes_fast(&r->file))
        close(r->file.fd);
    else if (r->file.fd >= 0)
        files_host_close(j->host, r->file.fd);
    free(r->path);
    free(r);
}

/* How much to read next: the expected rest, and one byte more to see the end. */
static uint64_t fs_read_next(const struct fs_read *r) {
    uint64_t left = r->probed              ? r->end - r->at
                    : r->file.size > r->at ? r->file.size - r->at + 1
                                           : 1;
    uint64_t most = r->streaming ? FS_CHUNK : FS_FIRST_BYTES - MIN(r->at, FS_FIRST_BYTES - 1);
    return MIN(MAX(left, (uint64_t)FS_QUICK_MAX), most);
}

/* Adds room for `want` bytes. 0 or -ENOMEM. */
static int fs_read_add_room(struct fs_read *r, uint64_t want) {
    struct sendq_seg **tail = &r->chain;
    while (*tail != NULL)
        tail = &(*tail)->next;
    while (want > 0) {
        size_t n = (size_t)MIN(want, (uint64_t)FS_CHUNK);
        *tail = sendq_seg_new(&r->job.host->conns->pool, base64_encoded_len(n));
        if (*tail == NULL)
            return -ENOMEM;
        tail = &(*tail)->next;
        want -= n;
    }
    fs_read_used_blocks(r->job.host);
    return 0;
}

static void fs_read_answer(struct fs_read *r) {
    struct rpc_call *c = steal_ptr(&r->job.call);
    struct buf *b = rpc_result_begin(c);
    int put = buf_putz(b, FS_READ_BEFORE);
    rpc_result_blob(c, steal_ptr(&r->chain));
    if (put == 0)
        put = buf_putz(b, "\"}");
    rpc_result_send(c);
    (void)put; /* the buffer always has that much room */
}

/* Reads on if there is room; else rpc_call.room will. */
static void fs_read_on(struct fs_read *r) {
    struct rpc_call *c = r->job.call;
    uint64_t want = fs_read_next(r);
    size_t more = base64_encoded_len((size_t)want);
    r->job.pause = true;
    if (r->streaming ? c->peer->conn->sendq.bytes > FS_AHEAD : !rpc_may_charge(c, more))
        return;
    rpc_charge(c, c->charged + more);
    r->job.r = fs_read_add_room(r, want);
    if (r->job.r == 0) {
        fs_job_queue(&r->job);
    } else {
        fs_job_fail(&r->job);
        r->job.pause = false;
    }
}

/* Hands on what was read. */
static void fs_read_pass(struct fs_read *r) {
    struct rpc_call *c = r->job.call;
    if (r->eof && !r->streaming) {
        fs_read_answer(r);
    } else if (r->eof) {
        r->job.call = NULL;
        rpc_stream_end(c, steal_ptr(&r->chain), "\"}");
    } else if (r->streaming) {
        rpc_stream_put(c, steal_ptr(&r->chain));
        rpc_charge(c, 0);
        fs_read_on(r);
    } else if (r->at < FS_FIRST_BYTES) {
        fs_read_on(r);
    } else if (!r->probed) {
        r->end = r->at;
        r->job.work = fs_read_probe;
        fs_job_queue(&r->job);
    } else if (rpc_stream_begin(c, STR_LIT(FS_READ_BEFORE), r->chain)) {
        r->chain = NULL;
        r->streaming = true;
        rpc_charge(c, 0);
        fs_read_on(r);
    } else {
        r->job.pause = true; /* until the other stream has ended */
    }
}

static void fs_read_finish(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    if (j->work == fs_read_probe && !r->probed) {
        fs_job_queue(j);
        return;
    }
    if (j->work == fs_read_probe) {
        j->work = fs_read_fill;
        r->eof = r->at == r->end;
    }
    fs_read_pass(r);
}

static void fs_read_room(struct rpc_call *c) {
    struct fs_read *r = container_of((struct fs_job *)c->user, struct fs_read, job);
    if (r->job.state != FS_JOB_PAUSED)
        return;
    r->job.pause = false;
    if (r->chain != NULL)
        fs_read_pass(r);
    else
        fs_read_on(r);
    if (!r->job.pause)
        fs_job_free(&r->job);
}

/* Answers with a small cached file. RPC_LATER: it is large, or not cached. */
static enum rpc_outcome fs_read_quick(const struct fs_file *f, struct buf *result) {
    char data[FS_QUICK_MAX];
    if (f->size > FS_QUICK_MAX)
        return RPC_LATER;
    ssize_t n = fs_file_try_pread(f, data, (size_t)f->size, 0); /* the size at the open */
    if (n < 0)
        return RPC_LATER;
    size_t len = base64_encoded_len((size_t)n);
    int r = buf_putz(result, FS_READ_BEFORE);
    if (r == 0)
        r = buf_reserve(result, len);
    if (r == 0)
        result->len += base64_encode(result->p + result->len, data, (size_t)n);
    return rpc_done(result, r < 0 ? r : buf_putz(result, "\"}"));
}

/* The file is open: checks its size, then answers with what is cached or begins to read. */
static void fs_read_opened(struct fs_job *j) {
    struct fs_read *r = container_of(j, struct fs_read, job);
    if (r->file.size > r->limit) {
        j->r = fs_read_too_large(r->limit, &j->err);
        fs_job_fail(j);
        return;
    }
    if (r->file.size <= FS_QUICK_MAX && fs_file_try_settle(&r->file) &&
        fs_read_quick(&r->file, rpc_result_begin(j->call)) == RPC_DONE) {
        rpc_result_send(steal_ptr(&j->call));
        return;
    }
    j->target = (struct fs_job_target){.site = r->file.site};
    j->work = fs_read_fill;
    j->finish = fs_read_finish;
    fs_read_on(r);
}

enum rpc_outcome fs_read_run(struct rpc_call *c, void *params, struct buf *result, struct err *e) {
    struct fs_params *p = params;
    struct files_host *host = files_host_of(c);
    int confined = fs_ops_check(p, false, e);
    if (confined < 0)
        return RPC_ERROR;
    uint64_t limit = p->has_max_bytes ? MIN(p->max_bytes, FS_FILE_MAX) : FS_FILE_MAX;
    struct fs_file file = FS_FILE_NONE;
    if (p->follow && confined == 0 &&
        fs_file_try_open_read(&host->devices, p->path.native, &file) == 0 && file.size <= limit &&
        fs_read_quick(&file, result) == RPC_DONE) {
        close(file.fd);
        return RPC_DONE;
    }
    struct fs_conn *f = fs_conn_get(c, e);
    struct fs_read *r = f != NULL ? calloc(1, sizeof *r) : NULL;
    if (r == NULL) {
        util_close_fd(&file.fd);
        return fs_job_no_memory(e);
    }
    if (confined > 0 && fs_confined_init(&r->job.confined, c, p, FS_CALL_READ, e) < 0) {
        free(r);
        return RPC_ERROR;
    }
    r->path = steal_ptr(&p->path.native);
    r->follow = p->follow;
    r->limit = limit;
    r->file = file;
    r->job.target = (struct fs_job_target){.path = {r->path}, .nofollow = !r->follow};
    fs_job_init(&r->job, fs_read_open, fs_read_opened, fs_read_release);
    r->job.cut = FS_READ_CUT;
    if (fs_job_keep(f, &r->job, c, e) < 0)
        return RPC_ERROR;
    r->job.call->room = fs_read_room;
    if (file.fd < 0) {
        fs_job_queue(&r->job);
    } else {
        fs_read_opened(&r->job);
        if (r->job.state == FS_JOB_PAUSED && !r->job.pause)
            fs_job_free(&r->job);
    }
    return RPC_LATER;
}
