#include "proxy/proxy_lane.h"

#include "proxy_hello.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Sends bytes through a tunnel to a.example, in pieces; b.example is allowed too. *passed counts
 * the bytes that went through. */
static int tunnel(struct str bytes, size_t step, size_t *passed) {
    struct proxy_config c = PROXY_CONFIG_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf in = BUF_INIT(1u << 20), up = BUF_INIT(1u << 20);
    struct proxy_name host;
    struct proxy_lane l = {.kind = PROXY_LANE_SNIFF};
    assert_int_equal(proxy_rules_add(&c.rules, PROXY_ALLOW, str_of("a.example"), &c.arena, &e), 0);
    assert_int_equal(proxy_rules_add(&c.rules, PROXY_ALLOW, str_of("b.example"), &c.arena, &e), 0);
    assert_int_equal(proxy_name_parse(str_of("a.example"), &host), 0);
    int r = 0;
    *passed = 0;
    for (size_t at = 0; at < bytes.n && r == 0; at += step) {
        assert_int_equal(buf_put(&in, bytes.p + at, MIN(step, bytes.n - at)), 0);
        r = proxy_lane_move(&l, &c, &host, &in, &up);
        *passed += up.len;
        up.len = 0;
    }
    arena_fini(&c.arena);
    return r;
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int r;
        long passed; /* -1: all */
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 0, -1},
        {"GET / HTTP/1.1\r\nHost: A.Example.:80\r\n\r\n", 0, -1},
        {"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", 0, -1},
        {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nHost: evil.example\r\n\r\n", -EINVAL, 0},
        {"get / HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"METHODMETHODMETHODMETHODMETHODMETHOD / HTTP/1.1\r\nHost: evil\r\n\r\n", -EINVAL, 0},
        {"x!~ / HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EPERM, 0},
        {"get / HTTP/1.1\r\nHost: a.example\r\n\r\n", 0, -1},
        {"0032git-upload-pack /a", 0, -1},
        {"SSH-2.0-x\r\n", 0, -1},
        {"*1\r\n$4\r\nPING\r\n", 0, -1},
        {"GET\t/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", -EINVAL, 0},
        {"GET / http/1.1\r\nHost: evil.example\r\n\r\n", -EINVAL, 0},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -EINVAL, 0},
        /* the second request of a connection, behind each kind of body */
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
         -EPERM, 35},
        {"PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"
         "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
         -EPERM, 57},
        {"PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
         "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
         -EPERM, 68},
        {"PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n"
         "Transfer-Encoding: chunked\r\n\r\nabc",
         -EINVAL, 0},
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nnonsense\r\n\r\n", -EINVAL, 35},
        /* an upgrade that nobody has agreed to */
        {"GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: x\r\n\r\n"
         "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
         0, 47},
        {"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
         "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: x\r\n\r\n",
         -EINVAL, 35},
        /* other protocols */
        {"SSH-2.0-OpenSSH_9\r\n", 0, -1},
        {"EHLO client\r\nmore", 0, -1},
        {"0032git-upload-pack /x", 0, -1},
        {"\1\2\3", 0, -1},
        {"PING\r\n", 0, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str text = str_of(rows[i].text);
        for (size_t step = 1; step < 200; step += step < 40 ? 1 : 50) {
            size_t passed;
            int r = tunnel(text, step, &passed);
            size_t want = rows[i].passed < 0 ? text.n : (size_t)rows[i].passed;
            if (r != rows[i].r || passed != want)
                fail_msg("row %zu, step %zu: %d, %zu bytes", i, step, r, passed);
        }
    }
}

static void test_hellos(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int r;
    } rows[] = {{"a.example", 0},
                {"A.EXAMPLE", 0},
                {"b.example", 0},
                {"evil.example", -EPERM},
                {"a.example.evil.example", -EPERM},
                {"a b", -EINVAL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_buf_ struct buf names = BUF_INIT(4096), b = BUF_INIT(65536);
        size_t passed;
        hello_name(&names, rows[i].name);
        hello_build(&b, buf_str(&names), 50);
        size_t hello = b.len;
        hello_put(&b, "later", 5);
        for (size_t step = 1; step < 300; step += 13) {
            assert_int_equal(tunnel(buf_str(&b), step, &passed), rows[i].r);
            assert_int_equal(passed, rows[i].r == 0 ? hello + 5 : 0);
        }
    }
}

static void test_upgrade(void **state) {
    (void)state;
    for (int agreed = 0; agreed < 2; agreed++) {
        struct proxy_config c = PROXY_CONFIG_INIT;
        _cleanup_buf_ struct buf in = BUF_INIT(1u << 20), up = BUF_INIT(1u << 20);
        struct proxy_name host;
        struct proxy_lane l = {.kind = PROXY_LANE_SNIFF};
        assert_int_equal(proxy_name_parse(str_of("a.example"), &host), 0);
        assert_int_equal(
            buf_putz(&in, "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\r\nframes"),
            0);
        assert_int_equal(proxy_lane_move(&l, &c, &host, &in, &up), 0);
        assert_int_equal(in.len, 6);
        proxy_lane_heard(&l, str_of("HTTP/1.1"));
        assert_int_equal(l.kind, PROXY_LANE_HOLD);
        proxy_lane_heard(&l, str_of(agreed ? " 101 S\r\n" : " 200 OK\r\n"));
        assert_int_equal(l.kind, agreed ? PROXY_LANE_RAW : PROXY_LANE_HTTP);
        assert_int_equal(proxy_lane_move(&l, &c, &host, &in, &up), 0);
        assert_int_equal(in.len, agreed ? 0 : 6);
    }
}

static void test_body_only(void **state) {
    (void)state;
    struct proxy_config c = PROXY_CONFIG_INIT;
    _cleanup_buf_ struct buf in = BUF_INIT(1u << 20), up = BUF_INIT(1u << 20);
    struct proxy_name host = {.is_address = false};
    struct proxy_lane l = {.kind = PROXY_LANE_BODY};
    proxy_body_init(&l.body, false, 3);
    assert_int_equal(buf_putz(&in, "abcGET http://evil.example/ HTTP/1.1\r\n\r\n"), 0);
    assert_int_equal(proxy_lane_move(&l, &c, &host, &in, &up), 0);
    assert_int_equal(up.len, 3);
    assert_int_equal(l.kind, PROXY_LANE_SHUT);
    assert_int_equal(in.len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_body_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
