#include "http/http_wire.h"

#include "base/codec.h"
#include "base/utf8.h"

#include <errno.h>
#include <sys/socket.h>

struct wire_head {
    uint32_t n, id, type;
};
_Static_assert(sizeof(struct wire_head) == HTTP_WIRE_HEAD, "no padding");

/* -- reading -- */

void http_wire_init(struct http_wire_reader *r) {
    *r = (struct http_wire_reader){
        .in = BUF_INIT(2 * (HTTP_WIRE_HEAD + HTTP_WIRE_PAYLOAD_MAX + HTTP_WIRE_READ))};
}

void http_wire_fini(struct http_wire_reader *r) {
    buf_fini(&r->in);
    r->at = 0;
}

static void wire_compact(struct http_wire_reader *r) {
    buf_consume(&r->in, r->at);
    r->at = 0;
}

ssize_t http_wire_fill(struct http_wire_reader *r, int fd) {
    wire_compact(r);
    int m = buf_reserve(&r->in, HTTP_WIRE_READ);
    if (m < 0)
        return m;
    ssize_t n;
    do
        n = recv(fd, r->in.p + r->in.len, HTTP_WIRE_READ, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    r->in.len += (size_t)n;
    return n;
}

int http_wire_feed(struct http_wire_reader *r, struct str bytes) {
    wire_compact(r);
    return buf_put(&r->in, bytes.p, bytes.n);
}

int http_wire_next(struct http_wire_reader *r, struct http_wire_frame *f) {
    struct wire_head head;
    size_t left = r->in.len - r->at;
    if (left < sizeof head)
        return 0;
    memcpy(&head, r->in.p + r->at, sizeof head);
    if (head.n > HTTP_WIRE_PAYLOAD_MAX || head.type == 0 || head.type > HTTP_WIRE_TYPE_MAX)
        return -EPROTO;
    if (left - sizeof head < head.n)
        return 0;
    *f = (struct http_wire_frame){.type = (enum http_wire_type)head.type,
                                  .id = head.id,
                                  .payload = {r->in.p + r->at + sizeof head, head.n}};
    r->at += sizeof head + head.n;
    return 1;
}

/* -- writing -- */

void http_wire_put_head(char *dst, enum http_wire_type type, uint32_t id, size_t payload) {
    struct wire_head head = {(uint32_t)payload, id, type};
    memcpy(dst, &head, sizeof head);
}

/* Begins a frame; wire_end() fills in its length. */
static struct codec_writer wire_begin(struct buf *b, enum http_wire_type type, uint32_t id) {
    struct codec_writer w = CODEC_WRITER(b);
    struct wire_head head = {0, id, type};
    codec_put(&w, &head, sizeof head);
    return w;
}

static int wire_end(struct codec_writer *w) {
    int r = codec_put_end(w, HTTP_WIRE_HEAD + HTTP_WIRE_PAYLOAD_MAX);
    if (r < 0)
        return r;
    uint32_t n = (uint32_t)(w->b->len - w->start - HTTP_WIRE_HEAD);
    memcpy(w->b->p + w->start, &n, sizeof n);
    return 0;
}

static void wire_put_fields(struct codec_writer *w, const struct http_field *f, size_t n) {
    codec_put_count(w, n, HTTP_FIELDS_MAX);
    for (size_t i = 0; i < n; i++) {
        codec_put_block(w, f[i].name);
        codec_put_block(w, f[i].value);
    }
}

int http_wire_put_hello(struct buf *b, struct str version) {
    struct codec_writer w = wire_begin(b, HTTP_WIRE_HELLO, 0);
    codec_put_block(&w, version);
    return wire_end(&w);
}

int http_wire_put_request(struct buf *b, uint32_t id, const struct http_wire_request *q) {
    struct codec_writer w = wire_begin(b, HTTP_WIRE_REQUEST, id);
    codec_put_block(&w, q->method);
    codec_put_block(&w, q->url);
    codec_put_u8(&w, q->follow);
    codec_put_u64(&w, q->body);
    wire_put_fields(&w, q->fields, q->field_count);
    return wire_end(&w);
}

int http_wire_put_headers(struct buf *b, uint32_t id, const struct http_wire_headers *h) {
    struct codec_writer w = wire_begin(b, HTTP_WIRE_HEADERS, id);
    codec_put_u32(&w, h->status);
    wire_put_fields(&w, h->fields, h->field_count);
    return wire_end(&w);
}

int http_wire_put_end(struct buf *b, uint32_t id, const struct http_wire_end *e) {
    size_t n = utf8_cut(e->reason.p, e->reason.n, HTTP_WIRE_REASON_MAX);
    struct str reason = {e->reason.p, n};
    struct codec_writer w = wire_begin(b, HTTP_WIRE_END, id);
    codec_put_u8(&w, e->failed);
    codec_put_block(&w, reason);
    return wire_end(&w);
}

int http_wire_put_bytes(struct buf *b, enum http_wire_type type, uint32_t id, struct str bytes) {
    struct codec_writer w = wire_begin(b, type, id);
    codec_put(&w, bytes.p, bytes.n);
    return wire_end(&w);
}

int http_wire_put_count(struct buf *b, enum http_wire_type type, uint32_t id, size_t n) {
    struct codec_writer w = wire_begin(b, type, id);
    codec_put_u32(&w, n);
    return wire_end(&w);
}

/* -- decoding -- */

static const struct http_field *wire_get_fields(struct codec_reader *r, size_t *count) {
    *count = codec_get_u32(r, HTTP_FIELDS_MAX);
    struct http_field *f = codec_get_array(r, *count, sizeof *f);
    for (size_t i = 0; f != NULL && i < *count; i++) {
        f[i].name = codec_get_block(r, HTTP_WIRE_PAYLOAD_MAX);
        f[i].value = codec_get_block(r, HTTP_WIRE_PAYLOAD_MAX);
        r->bad |= !http_fields_is_name(f[i].name) || !http_fields_is_value(f[i].value);
    }
    return f;
}

int http_wire_get_hello(struct str payload, struct str *version) {
    struct codec_reader r = CODEC_READER(payload, HTTP_WIRE_PAYLOAD_MAX, NULL);
    *version = codec_get_block(&r, 64);
    return codec_get_end(&r);
}

int http_wire_get_request(struct str payload, struct arena *a, struct http_wire_request *q) {
    struct codec_reader r = CODEC_READER(payload, HTTP_WIRE_PAYLOAD_MAX, a);
    q->method = codec_get_block(&r, HTTP_WIRE_PAYLOAD_MAX);
    q->url = codec_get_block(&r, HTTP_WIRE_PAYLOAD_MAX);
    q->follow = codec_get_u8(&r, 1) != 0;
    q->body = codec_get_u64(&r);
    q->fields = wire_get_fields(&r, &q->field_count);
    r.bad |= !http_fields_is_token(q->method);
    return codec_get_end(&r);
}

int http_wire_get_headers(struct str payload, struct arena *a, struct http_wire_headers *h) {
    struct codec_reader r = CODEC_READER(payload, HTTP_WIRE_PAYLOAD_MAX, a);
    h->status = codec_get_u32(&r, 999);
    h->fields = wire_get_fields(&r, &h->field_count);
    r.bad |= h->status < 100;
    for (size_t i = 0; h->fields != NULL && i < h->field_count; i++)
        r.bad |= !http_fields_is_visible(h->fields[i].value);
    return codec_get_end(&r);
}

int http_wire_get_end(struct str payload, struct http_wire_end *e) {
    struct codec_reader r = CODEC_READER(payload, HTTP_WIRE_PAYLOAD_MAX, NULL);
    e->failed = codec_get_u8(&r, 1) != 0;
    e->reason = codec_get_block(&r, HTTP_WIRE_REASON_MAX);
    r.bad |= e->reason.n > 0 && !utf8_valid(e->reason.p, e->reason.n);
    return codec_get_end(&r);
}

int http_wire_get_count(struct str payload, uint32_t max, size_t *n) {
    struct codec_reader r = CODEC_READER(payload, HTTP_WIRE_PAYLOAD_MAX, NULL);
    *n = codec_get_u32(&r, max);
    r.bad |= *n == 0;
    return codec_get_end(&r);
}
