/* The engine over a socket pair, whose other end this program plays. */

#include "client_play.h"

#define HELLO "{\"id\":1,\"result\":{" SESSION "," INFO "}}\n"

static void shakes_hands(void **state) {
    (void)state;
    struct play p;
    assert_int_equal(play_begin(&p), 0);
    assert_int_equal(xs_client_state(p.client), XS_STATE_NEW);
    assert_null(xs_client_info(p.client));
    assert_int_equal(play_connect(&p, HELLO), 0);
    assert_int_equal(xs_client_state(p.client), XS_STATE_READY);
    const struct xs_info *i = xs_client_info(p.client);
    assert_string_equal(i->shell, "/bin/b");
    assert_string_equal(i->cwd, "/w");
    assert_null(i->home);
    assert_int_equal(xs_client_can(p.client, "a"), 1);
    assert_int_equal(xs_client_can(p.client, "b"), 0);
    assert_int_equal(xs_client_can(p.client, "c"), 0);
    assert_int_equal(xs_client_can(p.client, "d"), 1);
    assert_int_equal(xs_client_can(p.client, "e"), 0);
    play_end(&p);
}

static void asks_and_answers(void **state) {
    (void)state;
    struct play p;
    assert_int_equal(play_begin(&p), 0);
    assert_int_equal(play_connect(&p, HELLO), 0);
    struct xs_bytes out = {NULL, 0};
    struct done one = {.call.done = on_done}, two = {.call.done = on_done};
    assert_int_equal(xs_client_rpc(p.client, "a/b", "{\"x\":1}", &out, &one.call), 0);
    assert_int_equal(xs_client_rpc(p.client, "c", NULL, NULL, &two.call), 0);
    turn(&p);
    assert_string_equal(hear(&p), "{\"id\":2,\"method\":\"a/b\",\"params\":{\"x\":1}}\n"
                                  "{\"id\":3,\"method\":\"c\",\"params\":{}}\n");
    say(&p, "{\"id\":3,\"error\":{\"code\":-5,\"message\":\"x\\ny (os error 13)\"}}\r\n\n{\"id\":");
    turn(&p);
    assert_int_equal(two.result, XS_EREMOTE);
    const struct xs_error *e = xs_client_error(p.client);
    assert_string_equal(xs_error_text(e), "c: x y (os error 13)");
    assert_int_equal(xs_error_rpc(e), -5);
    assert_int_equal(xs_error_os(e), 13);
    say(&p, "2,\"result\":{\"k\":[1.50,\"\\u00e9\\\"\",null]}}\n");
    turn(&p);
    assert_int_equal(one.times, 1);
    assert_int_equal(one.result, 0);
    assert_string_equal(out.data, "{\"k\":[1.50,\"\xc3\xa9\\\"\",null]}");
    xs_bytes_free(&out);
    play_end(&p);
}

/* Everything that can be asked for while an allocation fails ends, and leaks nothing. */
static int scenario(void) {
    struct play p;
    int r = play_begin(&p);
    if (r == 0)
        r = play_connect(&p, HELLO);
    else
        close((int)p.n);
    struct xs_bytes out = {NULL, 0};
    struct done d = {.call.done = on_done};
    if (r == 0) {
        r = xs_client_rpc(p.client, "a", "{\"x\":\"y\"}", &out, &d.call);
        if (r == 0) {
            turn(&p);
            hear(&p);
            say(&p,
                "{\"id\":77,\"method\":\"server/asks\"}\n{\"id\":2,\"result\":{\"a\":\"\\n\"}}\n");
            turn(&p);
            xs_call_cancel(&d.call);
            turn(&p);
            assert_int_equal(d.times, 1);
            r = d.result;
        }
        xs_bytes_free(&out);
    }
    if (p.client != NULL) {
        struct done end = {.call.done = on_done};
        if (xs_client_close(p.client, &end.call) == 0) {
            turn(&p);
            shutdown(p.peer, SHUT_RDWR);
            turn(&p);
            assert_int_equal(end.times, 1);
        }
        assert_non_null(xs_error_text(xs_client_error(p.client)));
    }
    play_end(&p);
    return r;
}

static void survives_every_failed_allocation(void **state) {
    (void)state;
    fail_at = 0;
    allocations = 0;
    assert_int_equal(scenario(), 0);
    const long all = allocations;
    assert_true(all > 10);
    long failed = 0;
    for (long i = 1; i <= all; i++) {
        allocations = 0;
        fail_at = i;
        failed += scenario() < 0;
    }
    fail_at = 0;
    assert_true(failed > all / 3);
}

static void bounds_what_comes(void **state) {
    (void)state;
    struct play p;
    assert_int_equal(play_begin(&p), 0);
    assert_int_equal(play_connect(&p, HELLO), 0);
    say(&p, "{\"id\":\"x\",\"result\":1}\n");
    turn(&p);
    assert_int_equal(xs_client_state(p.client), XS_STATE_FAILED);
    assert_int_equal(xs_error_code(xs_client_error(p.client)), 0);
    assert_int_equal(xs_client_rpc(p.client, "a", NULL, NULL, NULL), XS_EGONE);
    play_end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shakes_hands),
        cmocka_unit_test(asks_and_answers),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(bounds_what_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
