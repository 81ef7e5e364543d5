/*
 * What a command says to its proxy. The first byte selects the parser and the size of pieces: a
 * verdict does not depend on how the bytes are cut, nor on what follows; what goes on to a server
 * has one reading, the one that was judged.
 */
#include "proxy/proxy_head.h"
#include "proxy/proxy_hello.h"
#include "proxy/proxy_lane.h"
#include "proxy/proxy_rules.h"
#include "proxy/proxy_socks.h"

#include <errno.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define SIZE_MAXIMUM 60000 /* below what a lane holds back */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name is its own only form. */
static void check_name(const struct proxy_name *name) {
    struct proxy_name again;
    REQUIRE(strlen(name->text) <= PROXY_NAME_MAX);
    REQUIRE(proxy_name_parse(str_of(name->text), &again) == 0);
    REQUIRE(strcmp(again.text, name->text) == 0 && again.is_address == name->is_address);
}

static void fuzz_head(struct str s) {
    _cleanup_buf_ struct buf on = BUF_INIT(4u << 20), longer = BUF_INIT(1u << 20);
    struct proxy_head h, again;
    const char *why;
    int n = proxy_head_parse(s, &h, &why);
    REQUIRE(n <= 0 || (size_t)n <= s.n);
    if (n <= 0)
        return;
    check_name(&h.host);
    if (!h.connect) {
        REQUIRE(proxy_head_forward(&h, &on) == 0);
        REQUIRE(proxy_head_parse(buf_str(&on), &again, &why) == (int)on.len);
        REQUIRE(strcmp(again.host.text, h.host.text) == 0 && again.port == h.port);
        REQUIRE(again.body.chunked == h.body.chunked && again.body.left == h.body.left);
        REQUIRE(!again.upgrade && !again.connect && !again.absolute);
    }
    REQUIRE(buf_put(&longer, s.p, (size_t)n) == 0 && buf_putz(&longer, "GET /") == 0);
    REQUIRE(proxy_head_parse(buf_str(&longer), &again, &why) == n);
}

static void fuzz_answer(struct str s) {
    _cleanup_buf_ struct buf out = BUF_INIT(4u << 20);
    struct proxy_answer_head a;
    int n = proxy_head_answer(s, false, &out, &a);
    REQUIRE(n <= 0 ? out.len == 0 : (size_t)n <= s.n);
    if (n > 0 && a.measured)
        REQUIRE(a.body.done || a.body.chunked || a.body.left > 0);
}

static void fuzz_socks(struct str s) {
    struct proxy_name host;
    enum proxy_socks_code code = PROXY_SOCKS_FAILED;
    uint16_t port;
    bool plain;
    int n = proxy_socks_greeting(s, &plain);
    REQUIRE(n <= 0 || ((size_t)n <= s.n && n <= PROXY_SOCKS_MAX));
    n = proxy_socks_request(s, &host, &port, &code);
    REQUIRE(n <= 0 || ((size_t)n <= s.n && n <= PROXY_SOCKS_MAX));
    if (n > 0 && code == PROXY_SOCKS_OK)
        check_name(&host);
}

/* Sends the bytes through a tunnel in pieces; those that passed are in `up`. */
static int tunnel(struct str s, size_t step, const struct proxy_config *c, struct buf *up) {
    _cleanup_buf_ struct buf in = BUF_INIT(1u << 20);
    struct proxy_lane l = {.kind = PROXY_LANE_SNIFF};
    struct proxy_name host;
    int r = proxy_name_parse(STR_LIT("a.example"), &host);
    for (size_t at = 0; at < s.n && r == 0; at += step) {
        REQUIRE(buf_put(&in, s.p + at, MIN(step, s.n - at)) == 0);
        r = proxy_lane_move(&l, c, &host, &in, up);
    }
    REQUIRE(r == 0 || r == -EPERM || r == -EINVAL);
    REQUIRE(up->len <= s.n && (up->len == 0 || memcmp(up->p, s.p, up->len) == 0));
    return r;
}

static void fuzz_tunnel(struct str s, size_t step) {
    struct proxy_config c = PROXY_CONFIG_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf whole = BUF_INIT(1u << 20), parts = BUF_INIT(1u << 20);
    REQUIRE(proxy_rules_add(&c.rules, PROXY_ALLOW, STR_LIT("*.b.example"), &c.arena, &e) == 0);
    int r = tunnel(s, s.n + 1, &c, &whole);
    int cut = tunnel(s, step, &c, &parts);
    REQUIRE(r == cut);
    REQUIRE(r < 0 || whole.len == parts.len); /* of a broken body a part may have passed */
    arena_fini(&c.arena);
}

static void fuzz_hello(struct str s) {
    char name[256], again[256];
    enum proxy_hello found = proxy_hello_read(s, name);
    if (found == PROXY_HELLO_NAMED)
        REQUIRE(strlen(name) > 0);
    _cleanup_buf_ struct buf longer = BUF_INIT(1u << 20);
    REQUIRE(buf_put(&longer, s.p, s.n) == 0 && buf_putz(&longer, "xyz") == 0);
    if (found != PROXY_HELLO_MORE && s.n > 1)
        REQUIRE(proxy_hello_read(buf_str(&longer), again) == found);
    if (found == PROXY_HELLO_NAMED)
        REQUIRE(strcmp(name, again) == 0);
}

static size_t feed(struct str s, size_t step, bool *bad, bool *done) {
    struct proxy_body b;
    size_t total = 0;
    proxy_body_init(&b, true, 0);
    *bad = false;
    for (size_t at = 0; at < s.n && !*bad && !b.done; at += step) {
        ssize_t n = proxy_body_feed(&b, (struct str){s.p + at, MIN(step, s.n - at)});
        *bad = n < 0;
        total += n > 0 ? (size_t)n : 0;
    }
    *done = b.done;
    return total;
}

static void fuzz_body(struct str s, size_t step) {
    bool bad[2], done[2];
    size_t whole = feed(s, s.n + 1, &bad[0], &done[0]), parts = feed(s, step, &bad[1], &done[1]);
    REQUIRE(bad[0] == bad[1] && done[0] == done[1]);
    REQUIRE(bad[0] || whole == parts);
}

/* A pattern and a host, with a line end between them. */
static void fuzz_rules(struct str s) {
    const char *end = memchr(s.p, '\n', s.n);
    if (end == NULL)
        return;
    struct proxy_config c = PROXY_CONFIG_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    struct str pattern = {s.p, (size_t)(end - s.p)};
    struct proxy_name host;
    uint16_t port = 80;
    int r = proxy_rules_add(&c.rules, PROXY_ALLOW, pattern, &c.arena, &e);
    REQUIRE(r == 0 || e.code == ERR_INVALID_PARAMS);
    if (proxy_name_authority((struct str){end + 1, s.n - pattern.n - 1}, &host, &port) == 0) {
        check_name(&host);
        bool matches = proxy_rules_match(&c.rules, PROXY_ALLOW, &host);
        REQUIRE(r == 0 || !matches);
        if (proxy_rules_names(&c.rules, &host))
            REQUIRE(matches);
        struct proxy_verdict v = proxy_judge_host(&c, &host);
        REQUIRE(v.answer != PROXY_ALLOWED || matches);
    }
    arena_fini(&c.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > SIZE_MAXIMUM)
        return 0;
    struct str s = {(const char *)data + 1, size - 1};
    size_t step = 1 + data[0] / 8;
    switch (data[0] % 8) {
    case 0: fuzz_head(s); break;
    case 1: fuzz_answer(s); break;
    case 2: fuzz_socks(s); break;
    case 3:
    case 4: fuzz_tunnel(s, step); break;
    case 5: fuzz_hello(s); break;
    case 6: fuzz_body(s, step); break;
    default: fuzz_rules(s); break;
    }
    return 0;
}
