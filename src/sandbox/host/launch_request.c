#include "sandbox/host/launch_request.h"

#include "base/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define REQUEST_MAGIC 0x32515253u /* "SRQ2", first of the encoded form */

static void request_put_texts(struct codec_writer *w, char *const *v) {
    size_t n = 0;
    while (v != NULL && v[n] != NULL)
        n++;
    codec_put_count(w, n, LAUNCH_STRINGS_MAX);
    for (size_t i = 0; i < n && w->r == 0; i++)
        codec_put_text(w, v[i]);
}

int launch_request_encode(const struct launch_request *q, struct buf *b) {
    _cleanup_buf_ struct buf plan = BUF_INIT(PLAN_BYTES_MAX + 4096);
    int r = plan_encode(&q->plan, &plan);
    if (r < 0)
        return r;
    const uint32_t head[] = {REQUEST_MAGIC, q->mode, q->backend, q->landlock_max, q->tty};
    struct codec_writer w = CODEC_WRITER(b);
    codec_put(&w, head, sizeof head);
    codec_put_block(&w, buf_str(&plan));
    codec_put_text(&w, q->advice);
    codec_put_text(&w, q->program);
    codec_put_text(&w, q->search);
    request_put_texts(&w, q->argv);
    request_put_texts(&w, q->envp);
    codec_put_count(&w, q->limit_count, LAUNCH_LIMITS_MAX);
    for (size_t i = 0; i < q->limit_count && w.r == 0; i++) {
        codec_put_u32(&w, (uint32_t)q->limits[i].resource);
        codec_put_u64(&w, q->limits[i].soft);
        codec_put_u64(&w, q->limits[i].hard);
    }
    for (size_t i = 0; i < LAUNCH_GIVEN; i++)
        codec_put_u32(&w, q->given[i] < 3 ? 0 : (uint32_t)q->given[i]);
    codec_put_u32(&w, q->linger);
    codec_put_u64(&w, q->mark);
    return codec_put_end(&w, LAUNCH_BYTES_MAX);
}

static char **request_get_texts(struct codec_reader *r) {
    uint32_t n = codec_get_u32(r, LAUNCH_STRINGS_MAX);
    char **v = codec_get_array(r, (size_t)n + 1, sizeof *v);
    for (uint32_t i = 0; v != NULL && i < n; i++) {
        v[i] = (char *)codec_get_text(r); /* nobody writes to the mapping */
        r->bad |= v[i] == NULL;
    }
    return v;
}

static void request_get_limits(struct codec_reader *r, struct launch_request *q) {
    q->limit_count = codec_get_u32(r, LAUNCH_LIMITS_MAX);
    struct launch_limit *l = codec_get_array(r, q->limit_count, sizeof *l);
    for (size_t i = 0; l != NULL && i < q->limit_count; i++) {
        l[i].resource = (int32_t)codec_get_u32(r, RLIM_NLIMITS - 1);
        l[i].soft = codec_get_u64(r);
        l[i].hard = codec_get_u64(r);
    }
    q->limits = l;
}

int launch_request_decode(struct str bytes, struct arena *a, struct launch_request *q) {
    struct codec_reader r = CODEC_READER(bytes, LAUNCH_BYTES_MAX, a);
    *q = (struct launch_request){0};
    r.bad |= codec_get_u32(&r, UINT32_MAX) != REQUEST_MAGIC;
    q->mode = (enum launch_mode)codec_get_u32(&r, LAUNCH_CALLS);
    q->backend = (enum launch_backend)codec_get_u32(&r, LAUNCH_LANDLOCK);
    q->landlock_max = codec_get_u32(&r, UINT32_MAX);
    q->tty = codec_get_u32(&r, 1) != 0;
    struct str plan = codec_get_block(&r, PLAN_BYTES_MAX);
    q->advice = codec_get_text(&r);
    q->program = codec_get_text(&r);
    q->search = codec_get_text(&r);
    q->argv = request_get_texts(&r);
    q->envp = request_get_texts(&r);
    request_get_limits(&r, q);
    for (size_t i = 0; i < LAUNCH_GIVEN; i++)
        q->given[i] = (int32_t)codec_get_u32(&r, LAUNCH_GIVEN_LIMIT - 1);
    q->linger = codec_get_u32(&r, 1) != 0;
    q->mark = codec_get_u64(&r);
    r.bad |= !r.bad && q->mode == LAUNCH_COMMAND && (q->program == NULL || q->argv[0] == NULL);
    int e = codec_get_end(&r);
    return e < 0 ? e : plan_decode(plan, a, &q->plan);
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
