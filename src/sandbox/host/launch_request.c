#include "sandbox/host/launch_request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/*
 * The encoded form, in the byte order of the host, for a reader of the same build: numbers of 32 or
 * 64 bits, strings and blocks as their length and their bytes; strings have a NUL behind them.
 */
#define REQUEST_MAGIC 0x31515253u /* "SRQ1" */

static int put_u32(struct buf *b, uint32_t v) {
    return buf_put(b, &v, sizeof v);
}

static int put_block(struct buf *b, struct str s) {
    int r = s.n > LAUNCH_BYTES_MAX ? -ENOBUFS : put_u32(b, (uint32_t)s.n);
    return r < 0 ? r : buf_put(b, s.p, s.n);
}

/* A NULL is told from "" by its length. */
static int put_text(struct buf *b, const char *z) {
    if (z == NULL)
        return put_u32(b, UINT32_MAX);
    int r = put_block(b, str_of(z));
    return r < 0 ? r : buf_putc(b, '\0');
}

static int put_texts(struct buf *b, char *const *v) {
    uint32_t n = 0;
    while (v != NULL && v[n] != NULL && n < LAUNCH_STRINGS_MAX)
        n++;
    if (v != NULL && v[n] != NULL)
        return -ENOBUFS;
    int r = put_u32(b, n);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = put_text(b, v[i]);
    return r;
}

static int put_limits(struct buf *b, const struct launch_request *q) {
    if (q->limit_count > LAUNCH_LIMITS_MAX)
        return -ENOBUFS;
    int r = put_u32(b, (uint32_t)q->limit_count);
    for (size_t i = 0; r == 0 && i < q->limit_count; i++) {
        const struct launch_limit *l = &q->limits[i];
        r = put_u32(b, (uint32_t)l->resource);
        if (r == 0)
            r = buf_put(b, &l->soft, sizeof l->soft);
        if (r == 0)
            r = buf_put(b, &l->hard, sizeof l->hard);
    }
    return r;
}

static int put_plan(struct buf *b, const struct plan *p) {
    _cleanup_buf_ struct buf bytes = BUF_INIT(PLAN_BYTES_MAX + 4096);
    int r = plan_encode(p, &bytes);
    return r < 0 ? r : put_block(b, buf_str(&bytes));
}

int launch_request_encode(const struct launch_request *q, struct buf *b) {
    const uint32_t head[] = {REQUEST_MAGIC, q->mode, q->backend, q->landlock_max, q->tty};
    size_t len = b->len;
    int r = buf_put(b, head, sizeof head);
    if (r == 0)
        r = put_plan(b, &q->plan);
    if (r == 0)
        r = put_text(b, q->advice);
    if (r == 0)
        r = put_text(b, q->program);
    if (r == 0)
        r = put_text(b, q->search);
    if (r == 0)
        r = put_texts(b, q->argv);
    if (r == 0)
        r = put_texts(b, q->envp);
    if (r == 0)
        r = put_limits(b, q);
    if (r == 0 && b->len - len > LAUNCH_BYTES_MAX)
        r = -ENOBUFS;
    if (r < 0)
        b->len = len;
    return r;
}

/* -- decoding -- */

/* What is left. After a misfit `bad` is set and everything reads as zero. */
struct request_reader {
    struct str in;
    struct arena *a;
    bool bad, no_memory;
};

static const char *take(struct request_reader *r, size_t n) {
    const char *p = r->bad ? NULL : str_take(&r->in, n);
    r->bad = p == NULL;
    return p;
}

static void get(struct request_reader *r, void *out, size_t n) {
    const char *p = take(r, n);
    if (p != NULL)
        memcpy(out, p, n);
}

static uint32_t get_u32(struct request_reader *r, uint32_t max) {
    uint32_t v = 0;
    get(r, &v, sizeof v);
    r->bad |= v > max;
    return r->bad ? 0 : v;
}

static struct str get_block(struct request_reader *r, uint32_t max) {
    uint32_t n = get_u32(r, max);
    const char *p = take(r, n);
    return p == NULL ? (struct str){NULL, 0} : (struct str){p, n};
}

static const char *get_text(struct request_reader *r) {
    uint32_t n = get_u32(r, UINT32_MAX);
    if (n == UINT32_MAX)
        return NULL;
    const char *p = take(r, (size_t)n + 1);
    if (p != NULL && strnlen(p, (size_t)n + 1) == n)
        return p;
    r->bad = true;
    return NULL;
}

static void *get_array(struct request_reader *r, size_t count, size_t size) {
    void *p = arena_calloc(r->a, count, size);
    r->no_memory |= p == NULL;
    r->bad |= p == NULL;
    return p;
}

static char **get_texts(struct request_reader *r) {
    uint32_t n = get_u32(r, LAUNCH_STRINGS_MAX);
    char **v = get_array(r, (size_t)n + 1, sizeof *v);
    for (uint32_t i = 0; v != NULL && i < n; i++) {
        v[i] = (char *)get_text(r); /* the mapping is never written to */
        r->bad |= v[i] == NULL;
    }
    return v;
}

static void get_limits(struct request_reader *r, struct launch_request *q) {
    uint32_t n = get_u32(r, LAUNCH_LIMITS_MAX);
    struct launch_limit *l = get_array(r, n, sizeof *l);
    for (uint32_t i = 0; l != NULL && i < n; i++) {
        l[i].resource = (int32_t)get_u32(r, RLIM_NLIMITS - 1);
        get(r, &l[i].soft, sizeof l[i].soft);
        get(r, &l[i].hard, sizeof l[i].hard);
    }
    q->limits = l;
    q->limit_count = n;
}

int launch_request_decode(struct str bytes, struct arena *a, struct launch_request *q) {
    struct request_reader r = {.in = bytes, .a = a, .bad = bytes.n > LAUNCH_BYTES_MAX};
    *q = (struct launch_request){0};
    if (get_u32(&r, UINT32_MAX) != REQUEST_MAGIC)
        return -EINVAL;
    q->mode = (enum launch_mode)get_u32(&r, LAUNCH_CALLS);
    q->backend = (enum launch_backend)get_u32(&r, LAUNCH_LANDLOCK);
    q->landlock_max = get_u32(&r, UINT32_MAX);
    q->tty = get_u32(&r, 1) != 0;
    struct str plan = get_block(&r, PLAN_BYTES_MAX);
    q->advice = get_text(&r);
    q->program = get_text(&r);
    q->search = get_text(&r);
    q->argv = get_texts(&r);
    q->envp = get_texts(&r);
    get_limits(&r, q);
    bool complete =
        q->mode != LAUNCH_COMMAND || (q->program != NULL && q->argv != NULL && q->argv[0] != NULL);
    if (r.no_memory)
        return -ENOMEM;
    if (r.bad || r.in.n > 0 || !complete)
        return -EINVAL;
    return plan_decode(plan, a, &q->plan);
}

int launch_request_memfd(const struct launch_request *q) {
    _cleanup_buf_ struct buf b = BUF_INIT(LAUNCH_BYTES_MAX + 4096);
    int r = launch_request_encode(q, &b);
    if (r < 0)
        return r;
    _cleanup_close_ int fd = memfd_create("sandbox-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < b.len;) {
        ssize_t n = write(fd, b.p + done, b.len - done);
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : steal_fd(&fd);
}
