/* Frames and messages of the wrapper protocol. */
#include "escalate/escalate_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <cmocka.h>

static int pair[2];

static int set_up(void **state) {
    (void)state;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

static int tear_down(void **state) {
    (void)state;
    util_close_fd(&pair[0]);
    util_close_fd(&pair[1]);
    return 0;
}

static void a_frame_arrives_in_pieces(void **state) {
    (void)state;
    static const char bytes[] = "\5\0\0\0hello";
    struct escalate_frame f;
    escalate_wire_init(&f);
    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        assert_int_equal(escalate_wire_read(pair[1], &f), 0);
        assert_int_equal(write(pair[0], bytes + i, 1), 1);
    }
    assert_int_equal(escalate_wire_read(pair[1], &f), 1);
    assert_true(str_eqz(buf_str(&f.body), "hello"));
    escalate_wire_next(&f);
    assert_int_equal(escalate_wire_read(pair[1], &f), 0);
    util_close_fd(&pair[0]);
    assert_int_equal(escalate_wire_read(pair[1], &f), -ECONNRESET);
    escalate_wire_fini(&f);
}

static void descriptors_come_with_a_frame(void **state) {
    (void)state;
    struct escalate_frame f;
    int fds[ESCALATE_FDS];
    escalate_wire_init(&f);
    for (size_t i = 0; i < ESCALATE_FDS; i++)
        fds[i] = pair[0];
    assert_int_equal(escalate_wire_send(pair[0], STR_LIT("{}"), fds, ESCALATE_FDS), 0);
    assert_int_equal(escalate_wire_read(pair[1], &f), 1);
    assert_int_equal(f.fd_count, ESCALATE_FDS);
    assert_true(fcntl(f.fds[0], F_GETFD) & FD_CLOEXEC);
    int one = f.fds[0];
    escalate_wire_next(&f);
    assert_int_equal(fcntl(one, F_GETFD), -1);
    escalate_wire_fini(&f);
}

static void a_frame_above_the_maximum(void **state) {
    (void)state;
    struct escalate_frame f;
    escalate_wire_init(&f);
    assert_int_equal(write(pair[0], "\xff\xff\xff\xff", 4), 4);
    assert_int_equal(escalate_wire_read(pair[1], &f), -EMSGSIZE);
    escalate_wire_fini(&f);
}

static void requests(void **state) {
    (void)state;
    static const struct {
        const char *body;
        bool good;
    } cases[] = {
        {"{\"file\":\"/a\",\"argv\":[\"a\",\"b\"],\"workdir\":\"/\",\"env\":{\"A\":\"1\"},\"x\":1}",
         true},
        {"{\"file\":\"/a\",\"argv\":[],\"workdir\":\"/\",\"env\":{}}", true},
        {"{\"file\":\"\",\"argv\":[],\"workdir\":\"/\",\"env\":{}}", false},
        {"{\"file\":\"/a\",\"argv\":[],\"workdir\":\"/\"}", false},
        {"{\"file\":\"/a\",\"argv\":[1],\"workdir\":\"/\",\"env\":{}}", false},
        {"{\"file\":\"/a\",\"argv\":[\"\\u0000\"],\"workdir\":\"/\",\"env\":{}}", false},
        {"{\"file\":\"/a\",\"argv\":[],\"workdir\":\"/\",\"env\":{\"A=\":\"\"}}", false},
        {"{\"file\":\"/a\",\"argv\":[],\"workdir\":\"/\",\"env\":{\"\":\"\"}}", false},
        {"[]", false},
        {"\xff", false},
    };
    struct json_doc doc;
    json_doc_init(&doc, ESCALATE_FRAME_MAX, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        _cleanup_err_ struct err e = ERR_INIT;
        struct escalate_request q;
        int r = escalate_wire_get_request(&doc, str_of(cases[i].body), &a, &q, &e);
        assert_int_equal(r, cases[i].good ? 0 : -EINVAL);
    }
    json_doc_fini(&doc);
}

static void a_request_survives(void **state) {
    (void)state;
    static char *argv[] = {(char *)"a", (char *)"b \"c\"", NULL};
    static char *envp[] = {(char *)"A=1",
                           (char *)"BASH_EXEC_WRAPPER=/w",
                           (char *)"EXEC_WRAPPER=/w",
                           (char *)"CODEX_ESCALATE_SOCKET=3",
                           (char *)"A=2",
                           (char *)"no-value",
                           (char *)"B=\xff",
                           NULL};
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    _cleanup_err_ struct err e = ERR_INIT;
    struct escalate_request q = {"/a", argv, 2, "/w", envp, true, true}, out;
    struct json_doc doc;
    json_doc_init(&doc, ESCALATE_FRAME_MAX, 1);
    assert_int_equal(escalate_wire_put_request(&b, &q), 0);
    assert_int_equal(escalate_wire_get_request(&doc, buf_str(&b), &a, &out, &e), 0);
    assert_string_equal(out.argv[1], "b \"c\"");
    assert_string_equal(out.envp[0], "A=1");
    assert_string_equal(out.envp[1], "B=?");
    assert_null(out.envp[2]);
    assert_true(out.lossy && out.quiet);
    json_doc_fini(&doc);
}

static void responses(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int action; /* -1: refused */
        const char *reason;
    } cases[] = {
        {"{\"action\":\"Run\"}", ESCALATE_RUN, NULL},
        {"{\"action\":\"Escalate\",\"x\":1}", ESCALATE_OUTSIDE, NULL},
        {"{\"action\":{\"Deny\":{\"reason\":\"no\"}}}", ESCALATE_DENY, "no"},
        {"{\"action\":{\"Deny\":{\"reason\":null}}}", ESCALATE_DENY, NULL},
        {"{\"action\":{\"Deny\":{}}}", ESCALATE_DENY, NULL},
        {"{\"action\":\"Deny\"}", -1, NULL},
        {"{\"action\":\"Bogus\"}", -1, NULL},
        {"{}", -1, NULL},
    };
    struct json_doc doc;
    json_doc_init(&doc, ESCALATE_FRAME_MAX, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        enum escalate_action action;
        struct str reason;
        int r = escalate_wire_get_response(&doc, str_of(cases[i].body), &action, &reason, &e);
        assert_int_equal(r < 0, cases[i].action < 0);
        if (r < 0)
            continue;
        assert_int_equal(action, cases[i].action);
        assert_true(cases[i].reason == NULL ? reason.p == NULL : str_eqz(reason, cases[i].reason));
    }
    json_doc_fini(&doc);
}

static void numbers_and_results(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    int numbers[ESCALATE_FDS];
    struct escalate_result r;
    bool group;
    json_doc_init(&doc, ESCALATE_FRAME_MAX, 1);
    assert_int_equal(escalate_wire_get_fds(&doc, STR_LIT("{\"fds\":[0,2,63]}"), numbers, &e), 3);
    assert_int_equal(numbers[2], 63);
    assert_int_equal(escalate_wire_get_fds(&doc, STR_LIT("{\"fds\":[0,0]}"), numbers, &e), -EINVAL);
    assert_int_equal(escalate_wire_get_fds(&doc, STR_LIT("{\"fds\":[64]}"), numbers, &e), -EINVAL);
    assert_int_equal(escalate_wire_get_fds(&doc, STR_LIT("{\"fds\":[-1]}"), numbers, &e), -EINVAL);
    assert_int_equal(escalate_wire_get_signal(&doc, STR_LIT("{\"signal\":15}"), &group), 15);
    assert_false(group);
    assert_int_equal(
        escalate_wire_get_signal(&doc, STR_LIT("{\"signal\":2,\"group\":true}"), &group), 2);
    assert_true(group);
    assert_int_equal(escalate_wire_get_signal(&doc, STR_LIT("{\"signal\":65}"), &group), 0);
    assert_int_equal(escalate_wire_get_signal(&doc, STR_LIT("x"), &group), 0);
    assert_int_equal(escalate_wire_get_result(&doc, STR_LIT("{\"exit_code\":300}"), &r, &e), 0);
    assert_int_equal(r.exit_code, 44);
    assert_int_equal(
        escalate_wire_get_result(&doc, STR_LIT("{\"exit_code\":-1,\"signal\":9}"), &r, &e), 0);
    assert_int_equal(r.exit_code, 255);
    assert_int_equal(r.signal, 9);
    assert_int_equal(escalate_wire_get_result(&doc, STR_LIT("{}"), &r, &e), -EINVAL);
    json_doc_fini(&doc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_frame_arrives_in_pieces), TEST(descriptors_come_with_a_frame),
        TEST(a_frame_above_the_maximum), TEST(requests),
        TEST(a_request_survives),        TEST(responses),
        TEST(numbers_and_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
