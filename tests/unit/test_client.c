/* The engine over a socket pair, whose other end this program plays. */

#include "client/engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <cmocka.h>

/* -- allocations that fail: the linker sends calls here -- */

static long allocations, fail_at; /* 0: none fails */

static bool fails(void) {
    return ++allocations == fail_at;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t a, size_t b);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t a, size_t b);
char *__real_strdup(const char *z);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t a, size_t b);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t a, size_t b);
char *__wrap_strdup(const char *z);

void *__wrap_malloc(size_t n) {
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t a, size_t b) {
    return fails() ? NULL : __real_calloc(a, b);
}

void *__wrap_realloc(void *p, size_t n) {
    return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t a, size_t b) {
    return fails() ? NULL : __real_reallocarray(p, a, b);
}

char *__wrap_strdup(const char *z) {
    return fails() ? NULL : __real_strdup(z);
}

/* -- the other end -- */

struct play {
    int peer;
    struct xs_client *client;
    char text[65536];
    size_t n;
};

#define SESSION "\"sessionId\":\"0a1b2c3d-0000-4000-8000-00000000abcd\""
#define INFO                                                                                       \
    "\"environmentInfo\":{\"shell\":{\"name\":\"b\",\"path\":\"/bin/b\"},\"cwd\":\"file:///w\","   \
    "\"capabilities\":{\"a\":true,\"b\":false,\"c\":[],\"d\":[\"x\"]}}"

/* 0, or why no client could be made. */
static int play_begin(struct play *p) {
    int fds[2];
    char url[32];
    *p = (struct play){.peer = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    snprintf(url, sizeof url, "fd:%d", fds[0]);
    p->peer = fds[1];
    struct xs_options *o = xs_options_new();
    int r = o == NULL ? XS_ENOMEM : xs_options_str(o, XS_OPT_URL, url);
    r = r < 0 ? r : xs_client_new(o, &p->client);
    xs_options_free(o);
    /* It duplicates the descriptor when it connects. */
    if (r == 0)
        assert_int_equal(dup2(fds[0], fds[0]), fds[0]);
    p->n = (size_t)fds[0];
    return r;
}

static void play_end(struct play *p) {
    xs_client_free(p->client);
    close(p->peer);
}

static void say(struct play *p, const char *text) {
    size_t n = strlen(text);
    assert_int_equal(send(p->peer, text, n, MSG_NOSIGNAL), n);
}

/* What has come so far, as a string that is valid until the next call. */
static const char *hear(struct play *p) {
    ssize_t n = recv(p->peer, p->text, sizeof p->text - 1, MSG_DONTWAIT);
    p->text[MAX(n, (ssize_t)0)] = '\0';
    return p->text;
}

struct done {
    struct xs_call call;
    int result, times;
};

static void on_done(struct xs_call *k, int result) {
    struct done *d = container_of(k, struct done, call);
    d->result = result;
    d->times++;
}

static void turn(struct play *p) {
    for (int i = 0; i < 4; i++)
        assert_int_equal(xs_client_process(p->client), 0);
}

/* Connects; the result. */
static int play_connect(struct play *p) {
    struct done d = {.call.done = on_done};
    int fd = (int)p->n;
    int r = xs_client_connect(p->client, &d.call);
    close(fd);
    if (r < 0)
        return r;
    turn(p);
    if (d.times == 0) {
        assert_non_null(strstr(hear(p), "\"method\":\"initialize\""));
        say(p, "{\"id\":1,\"result\":{" SESSION "," INFO "}}\n");
        turn(p);
    }
    /* A failed allocation may leave it waiting. */
    if (d.times == 0)
        xs_call_cancel(&d.call);
    turn(p);
    assert_int_equal(d.times, 1);
    return d.result;
}

static void shakes_hands(void **state) {
    (void)state;
    struct play p;
    assert_int_equal(play_begin(&p), 0);
    assert_int_equal(xs_client_state(p.client), XS_STATE_NEW);
    assert_null(xs_client_info(p.client));
    assert_int_equal(play_connect(&p), 0);
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
    assert_int_equal(play_connect(&p), 0);
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
        r = play_connect(&p);
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
    assert_int_equal(play_connect(&p), 0);
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
