/* Clients of several threads, and wakes from others: for TSan, and for hangs. */

#include "client_play.h"

#include <pthread.h>
#include <stdatomic.h>

#define CLIENTS 4
#define WAKES 2000

static struct play plays[CLIENTS];
static atomic_bool over;

static void *wakes(void *arg) {
    struct play *p = arg;
    for (int i = 0; i < WAKES; i++)
        xs_client_wake(p->client);
    return NULL;
}

/* Connects, and asks again and again while others wake it. */
static void *asks(void *arg) {
    struct play *p = arg;
    static const char hello[] = "{\"id\":1,\"result\":{" SESSION "," INFO "}}\n";
    assert_int_equal(play_connect(p, hello), 0);
    for (int i = 0; i < 50; i++) {
        struct done d = {.call.done = on_done};
        char answer[64];
        assert_int_equal(xs_client_rpc(p->client, "a/b", NULL, NULL, &d.call), 0);
        turn(p);
        hear(p);
        snprintf(answer, sizeof answer, "{\"id\":%d,\"result\":{}}\n", i + 2);
        say(p, answer);
        while (d.times == 0)
            assert_int_equal(xs_client_run(p->client, -1), 0);
        assert_int_equal(d.result, 0);
    }
    return NULL;
}

static void wakes_come_from_anywhere(void **state) {
    (void)state;
    pthread_t askers[CLIENTS], wakers[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(play_begin(&plays[i]), 0);
        assert_int_equal(pthread_create(&wakers[i], NULL, wakes, &plays[i]), 0);
        assert_int_equal(pthread_create(&askers[i], NULL, asks, &plays[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(askers[i], NULL), 0);
        assert_int_equal(pthread_join(wakers[i], NULL), 0);
        play_end(&plays[i]);
    }
}

/* A turn without an end ends by a wake. */
static void *sleeps(void *arg) {
    struct play *p = arg;
    assert_int_equal(xs_client_run(p->client, -1), 0);
    atomic_store(&over, true);
    return NULL;
}

static void a_wake_ends_a_turn(void **state) {
    (void)state;
    pthread_t thread;
    struct play *p = &plays[0];
    assert_int_equal(play_begin(p), 0);
    close((int)p->n);
    assert_int_equal(pthread_create(&thread, NULL, sleeps, p), 0);
    xs_client_wake(p->client);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&over));
    play_end(p);
}

/* Names are resolved by each client on its own. */
static void *resolves(void *arg) {
    const char *url = arg;
    for (int i = 0; i < 5; i++) {
        struct xs_client *c = NULL;
        struct xs_options *o = xs_options_new();
        assert_non_null(o);
        assert_int_equal(xs_options_str(o, XS_OPT_URL, url), 0);
        assert_int_equal(xs_client_new(o, &c), 0);
        xs_options_free(o);
        assert_true(xs_client_connect(c, NULL) < 0);
        assert_int_equal(xs_client_state(c), XS_STATE_FAILED);
        xs_client_free(c);
    }
    return NULL;
}

static void names_are_resolved_side_by_side(void **state) {
    (void)state;
    static char urls[CLIENTS][32] = {"ws://localhost:1", "ws://127.0.0.1:1", "ws://[::1]:1",
                                     "ws://localhost:2"};
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, resolves, urls[i]), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wakes_come_from_anywhere),
        cmocka_unit_test(a_wake_ends_a_turn),
        cmocka_unit_test(names_are_resolved_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
