/*
 * The head of an answer, as curl hands its lines over, and the redirect that it asks for. The head
 * is what the frames to the server may hold; what is sent next has a URL in its only form.
 */
#include "fetch/head.h"
#include "fetch/message.h"

#include "base/utf8.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const struct head *h) {
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    _cleanup_arena_ struct arena a = ARENA_INIT(HTTP_WIRE_ARENA_MAX);
    struct http_wire_headers out, in = {h->status, h->fields, h->count};
    REQUIRE(h->bytes <= HEAD_BYTES_MAX && h->count <= HTTP_FIELDS_MAX);
    REQUIRE(http_wire_put_headers(&b, 1, &in) == 0);
    struct str payload = {b.p + HTTP_WIRE_HEAD, b.len - HTTP_WIRE_HEAD};
    REQUIRE(http_wire_get_headers(payload, &a, &out) == 0 && out.field_count == h->count);
}

static void check_redirect(const struct head *h) {
    static const struct http_field fields[] = {{{"authorization", 13}, {"secret", 6}},
                                               {{"x", 1}, {"y", 1}}};
    struct http_wire_request q = {.method = STR_LIT("POST"),
                                  .url = STR_LIT("https://a.example/b?c"),
                                  .follow = true,
                                  .body = 1,
                                  .fields = fields,
                                  .field_count = 2};
    _cleanup_err_ struct err e = ERR_INIT;
    struct message m;
    if (message_init(&m, &q) == 0 && message_add_body(&m, STR_LIT("z")) == 0 &&
        message_redirect(&m, h->status, h->location, &e) == MESSAGE_MOVES) {
        struct str host = http_url_authority(&m.url);
        bool home = m.url.https && str_eqz(host, "a.example");
        REQUIRE(home == (http_fields_find(m.fields, m.count, "authorization") != NULL));
        REQUIRE(http_fields_find(m.fields, m.count, "x") != NULL);
        REQUIRE(m.body.len == m.body_want && m.hops == 1);
        struct curl_slist *lines = message_lines(&m);
        REQUIRE(lines != NULL);
        for (const struct curl_slist *l = lines; l != NULL; l = l->next)
            REQUIRE(strpbrk(l->data, "\r\n") == NULL);
        curl_slist_free_all(lines);
    }
    message_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct head h;
    enum head_step step = HEAD_MORE;
    head_init(&h);
    while (size > 0 && step == HEAD_MORE) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end != NULL ? (size_t)(end - data) + 1 : size;
        step = head_line(&h, (struct str){(const char *)data, n});
        data += n;
        size -= n;
    }
    if (step == HEAD_DONE) {
        check_head(&h);
        check_redirect(&h);
    }
    head_fini(&h);
    return 0;
}
