#include "cli/cli_feed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#define PENDING 64

/* A process that keeps what it was sent until answer() is called. */
static struct {
    struct xs_call *calls[PENDING];
    size_t count, answered;
    char text[1 << 16];
    size_t n;
    unsigned closed;
} peer;

static char process; /* only its address counts */

int __wrap_xs_process_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k);
int __wrap_xs_process_close_stdin(struct xs_process *p, struct xs_call *k);

int __wrap_xs_process_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k) {
    assert_ptr_equal(p, &process);
    assert_true(peer.count < PENDING && peer.n + n <= sizeof peer.text);
    assert_int_equal(peer.closed, 0);
    memcpy(peer.text + peer.n, data, n);
    peer.n += n;
    peer.calls[peer.count++] = k;
    return 0;
}

int __wrap_xs_process_close_stdin(struct xs_process *p, struct xs_call *k) {
    assert_ptr_equal(p, &process);
    assert_non_null(k->done);
    peer.closed++;
    return 0;
}

static void answer(int result) {
    struct xs_call *k = peer.calls[peer.answered++];
    k->done(k, result);
}

static void begin(struct cli_feed *f, size_t max, bool typed) {
    memset(&peer, 0, sizeof peer);
    assert_int_equal(cli_feed_init(f, -1, max, typed), 0);
    f->process = (struct xs_process *)&process;
}

/* A pipe sends as many pieces as there are slots, and then waits. */
static void pieces(void **state) {
    struct cli_feed f;
    (void)state;
    begin(&f, 1 << 20, false);
    for (int i = 0; i < CLI_FEED_SLOTS; i++) {
        assert_true(cli_feed_has_room(&f));
        cli_feed_send(&f, "x", 1);
    }
    assert_false(cli_feed_has_room(&f));
    answer(0);
    assert_true(cli_feed_has_room(&f));
    cli_feed_end(&f);
    assert_int_equal(peer.closed, 1);
    cli_feed_fini(&f);
}

/* Keys that find no slot in an outage are held, in order, up to the maximum; the end comes last. */
static void keys(void **state) {
    struct cli_feed f;
    size_t typed = 0;
    (void)state;
    begin(&f, 1000, true);
    while (cli_feed_has_room(&f)) {
        char c = (char)('a' + typed++ % 26);
        cli_feed_send(&f, &c, 1);
    }
    assert_int_equal(typed, 1000);
    cli_feed_end(&f);
    assert_int_equal(peer.closed, 0);
    assert_int_equal(peer.n, CLI_FEED_SLOTS);
    while (peer.answered < peer.count)
        answer(0);
    assert_int_equal(peer.n, typed);
    for (size_t i = 0; i < typed; i++)
        assert_int_equal(peer.text[i], (char)('a' + i % 26));
    assert_int_equal(peer.closed, 1);
    cli_feed_fini(&f);
}

/* When nobody reads there, nothing is sent any more, and stdin is not closed. */
static void broken(void **state) {
    struct cli_feed f;
    (void)state;
    begin(&f, 1000, true);
    for (int i = 0; i < CLI_FEED_SLOTS + 5; i++)
        cli_feed_send(&f, "x", 1);
    answer(XS_EREMOTE);
    assert_true(f.broken);
    assert_false(f.open);
    while (peer.answered < peer.count)
        answer(0);
    assert_int_equal(peer.n, CLI_FEED_SLOTS);
    cli_feed_send(&f, "y", 1);
    cli_feed_end(&f);
    assert_int_equal(peer.n, CLI_FEED_SLOTS);
    assert_int_equal(peer.closed, 0);
    cli_feed_fini(&f);
}

static void reading(void **state) {
    struct cli_feed f;
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    begin(&f, 1000, false);
    f.fd = fds[0];
    assert_int_equal(write(fds[1], "abc", 3), 3);
    assert_int_equal(cli_feed_read(&f), 3);
    assert_memory_equal(f.piece, "abc", 3);
    close(fds[1]);
    assert_int_equal(cli_feed_read(&f), 0);
    close(fds[0]);
    assert_int_equal(cli_feed_read(&f), -EBADF);
    cli_feed_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(keys),
        cmocka_unit_test(broken),
        cmocka_unit_test(reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
