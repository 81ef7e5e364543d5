#include "client/rawfile.h"

#include "client/engine.h"
#include "net/http_head.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define RAWFILE_PIECE 4096 /* less room than this is not worth a read */

bool rawfile_can(const struct xs_fs *f, const char *path, uint64_t bytes, bool write) {
    const struct xs_client *c = f->files->client;
    return bytes >= RAWFILE_MIN && path[0] == '/' && target_is_ws(&c->target) &&
           strcmp(c->target.resource, "/") == 0 && c->on_dial == NULL && !fspart_is_confined(f) &&
           client_can(c, write ? "httpFilesAt" : "httpFiles");
}

/* -- the end -- */

static void rawfile_finish(struct rawfile *r, int err, struct xs_error *e) {
    if (r->ended)
        return;
    r->ended = true;
    r->err = err;
    xs_error_move(&r->why, e);
    /* What the server has not read of a write that is given up is not to be written later. */
    const struct linger at_once = {.l_onoff = 1};
    if (err < 0 && r->give != NULL && r->link.in.fd >= 0)
        setsockopt(r->link.in.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    link_drop(&r->link);
    loop_timer_del(r->link.loop, &r->silence);
    loop_task_del(&r->more);
    loop_defer(r->link.loop, &r->over);
}

static void rawfile_fail(struct rawfile *r, int code, const char *what) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_set(&e, code, "%s", what);
    rawfile_finish(r, code, &e);
}

static void rawfile_on_over(struct loop_task *t) {
    struct rawfile *r = container_of(t, struct rawfile, over);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_move(&e, &r->why);
    r->done(r, r->err, &e);
}

static void rawfile_on_lost(struct link *l, enum link_loss how, struct xs_error *e) {
    (void)how;
    rawfile_finish(container_of(l, struct rawfile, link), XS_ELOST, e);
}

static uint64_t rawfile_patience(const struct rawfile *r) {
    return loop_ms((uint64_t)xs_options_get_num(r->link.options, XS_OPT_DEAD_MS, 15000));
}

static void rawfile_on_silence(struct loop_timer *t) {
    struct rawfile *r = container_of(t, struct rawfile, silence);
    uint64_t end = r->heard_at + rawfile_patience(r), now = r->link.loop->now;
    if (now >= end)
        rawfile_fail(r, XS_ETIMEOUT, "no progress");
    else if (loop_timer_set(r->link.loop, t, end - now) < 0)
        rawfile_fail(r, XS_ENOMEM, "out of memory");
}

/* -- the request -- */

static int rawfile_put_path(struct buf *b, const char *path) {
    static const char hex[] = "0123456789ABCDEF";
    int r = 0;
    for (; r == 0 && *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     strchr("/-._~", c) != NULL;
        const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        r = plain ? buf_putc(b, (char)c) : buf_put(b, escape, sizeof escape);
    }
    return r;
}

static int rawfile_ask(struct link *l, struct buf *b, struct str token) {
    struct rawfile *r = container_of(l, struct rawfile, link);
    bool put = r->give != NULL;
    int e = buf_putf(b, "%s /v1/files?path=", put ? "PUT" : "GET");
    if (e == 0)
        e = rawfile_put_path(b, r->path);
    if (e == 0 && put)
        e = buf_putf(b, "&at=%llu", (unsigned long long)r->at);
    if (e == 0)
        e = buf_putf(b, " HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", l->target->authority);
    if (e == 0 && token.n > 0)
        e = buf_putf(b, "Authorization: Bearer %.*s\r\n", (int)token.n, token.p);
    if (e == 0 && put)
        e = buf_putf(b, "Content-Length: %llu\r\n\r\n", (unsigned long long)(r->end - r->at));
    else if (e == 0)
        e = buf_putf(b, "Range: bytes=%llu-%llu\r\n\r\n", (unsigned long long)r->at,
                     (unsigned long long)r->end - 1);
    r->head = b->len;
    return e;
}

/* -- writing -- */

/* Fills the buffer of the link. False: it has ended. */
static bool rawfile_fill(struct rawfile *r) {
    while (r->at < r->end) {
        size_t room;
        char *data = link_out_space(&r->link, &room);
        size_t n = (size_t)MIN((uint64_t)room, r->end - r->at);
        if (n < r->end - r->at && n < RAWFILE_PIECE)
            return true;
        if (!r->give(r, r->at, data, n)) {
            rawfile_fail(r, XS_ELOCAL, "the file cannot be read");
            return false;
        }
        link_out_fill(&r->link, n);
        r->at += n;
    }
    return true;
}

/* What the kernel has taken since. */
static void rawfile_tell(struct rawfile *r) {
    uint64_t sent = link_sent(&r->link);
    if (sent <= r->head + r->told)
        return;
    uint64_t n = sent - r->head - r->told;
    r->told += n;
    r->heard_at = r->link.loop->now;
    r->moved(r, (size_t)n);
}

static void rawfile_pump(struct rawfile *r) {
    for (int i = 0; i < RAWFILE_BURST && !r->ended; i++) {
        if (!rawfile_fill(r))
            return;
        bool all = link_out_flush(&r->link);
        rawfile_tell(r);
        if (!all || r->at == r->end)
            return;
    }
    if (!r->ended)
        loop_yield(r->link.loop, &r->more);
}

static void rawfile_on_more(struct loop_task *t) {
    rawfile_pump(container_of(t, struct rawfile, more));
}

static void rawfile_on_writable(struct link *l) {
    struct rawfile *r = container_of(l, struct rawfile, link);
    rawfile_tell(r);
    rawfile_pump(r);
}

/* -- the answer -- */

struct rawfile_head {
    struct http_head head; /* first */
    struct rawfile *file;
};

static int rawfile_field(struct http_head *h, struct str name, struct str value) {
    struct rawfile *r = container_of(h, struct rawfile_head, head)->file;
    if (str_ieqz(name, "transfer-encoding"))
        return http_head_fail(h, "the answer is encoded");
    if (str_ieqz(name, "content-range"))
        r->has_range = http_head_range(value, r->range);
    return 0;
}

/* A final answer. */
static void rawfile_judge(struct rawfile *r, int status) {
    char text[64];
    bool put = r->give != NULL;
    if (status != (put ? 204 : 206)) {
        snprintf(text, sizeof text, "HTTP %d", status);
        rawfile_fail(r, XS_EREMOTE, text);
    } else if (put && (r->at < r->end || link_sent(&r->link) < r->head + r->told)) {
        rawfile_fail(r, XS_EPROTO, "the answer comes before the end of the file");
    } else if (!put && (!r->has_range || r->range[0] != r->at || r->range[1] != r->end - 1 ||
                        r->range[2] != r->end)) {
        rawfile_fail(r, XS_EPROTO, "another range than was asked for");
    } else {
        r->answered = true;
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        if (put)
            rawfile_finish(r, 0, &e);
    }
}

static size_t rawfile_read_head(struct rawfile *r, const char *data, size_t n) {
    struct rawfile_head h = {.head.field = rawfile_field, .file = r};
    r->has_range = false;
    int len = http_head_read(data, n, &h.head);
    if (len < 0)
        rawfile_fail(r, XS_EPROTO, h.head.why);
    else if (len > 0 && h.head.status >= 200)
        rawfile_judge(r, h.head.status);
    return len > 0 ? (size_t)len : 0;
}

static void rawfile_body(struct rawfile *r, const char *data, size_t n) {
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    if (n > r->end - r->at) {
        rawfile_fail(r, XS_EPROTO, "more bytes than were asked for");
        return;
    }
    int err = n > 0 ? r->take(r, r->at, (struct str){data, n}, &e) : 0;
    if (err < 0) {
        rawfile_finish(r, err, &e);
        return;
    }
    r->at += n;
    r->moved(r, n);
    if (r->at == r->end)
        rawfile_finish(r, 0, &e);
}

static size_t rawfile_on_bytes(struct link *l, const char *data, size_t n) {
    struct rawfile *r = container_of(l, struct rawfile, link);
    size_t used = 0;
    r->heard_at = l->loop->now;
    while (!r->answered && !r->ended) {
        size_t head = rawfile_read_head(r, data + used, n - used);
        if (head == 0)
            return used;
        used += head;
    }
    if (!r->ended)
        rawfile_body(r, data + used, n - used);
    return n;
}

static void rawfile_on_opened(struct link *l) {
    struct rawfile *r = container_of(l, struct rawfile, link);
    r->heard_at = l->loop->now;
    if (loop_timer_set(l->loop, &r->silence, rawfile_patience(r)) < 0)
        rawfile_fail(r, XS_ENOMEM, "out of memory");
    else if (r->give != NULL)
        rawfile_pump(r);
    else
        link_out_flush(l);
}

static void rawfile_on_heard(struct link *l) {
    (void)l;
}

/* -- life -- */

struct rawfile *rawfile_new(struct xs_fs *f, const char *path, uint64_t at, uint64_t end) {
    struct xs_client *c = f->files->client;
    struct rawfile *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->client = c;
    r->path = path;
    r->at = at;
    r->end = end;
    link_init(&r->link, c, &c->target, c->options);
    r->link.ask = rawfile_ask;
    r->link.bytes = rawfile_on_bytes;
    r->link.opened = rawfile_on_opened;
    r->link.writable = rawfile_on_writable;
    r->link.heard = rawfile_on_heard;
    r->link.lost = rawfile_on_lost;
    r->silence.fn = rawfile_on_silence;
    r->more.fn = rawfile_on_more;
    r->over.fn = rawfile_on_over;
    list_init(&r->more.node);
    list_init(&r->over.node);
    client_live(c, 1); /* the session answers meanwhile */
    return r;
}

void rawfile_start(struct rawfile *r) {
    int64_t limit = xs_options_get_num(r->link.options, XS_OPT_CONNECT_MS, 10000);
    link_open(&r->link, (uint64_t)MAX(limit, (int64_t)1));
}

void rawfile_free(struct rawfile *r) {
    if (r == NULL)
        return;
    client_live(r->client, -1);
    link_fini(&r->link);
    loop_timer_del(r->link.loop, &r->silence);
    loop_task_del(&r->more);
    loop_task_del(&r->over);
    xs_error_fini(&r->why);
    free(r);
}
