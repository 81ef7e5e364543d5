#include "net/conn_message.h"

#include "json/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define HEAD "{\"a\":\""
#define TAIL "QUI=\",\"b\":1}"

/* A message with n predecoded bytes, in `memory`; and the text that was sent, to be freed. */
static struct conn_message make(struct buf *memory, size_t n, char **text, size_t *len) {
    char *bytes = malloc(n + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * i / 3);
    *len = strlen(HEAD) + base64_encoded_len(n) + strlen(TAIL);
    char *at = *text = malloc(*len + 1);
    assert_non_null(at);
    at = mempcpy(at, HEAD, strlen(HEAD));
    at += base64_encode(at, bytes, n);
    memcpy(at, TAIL, strlen(TAIL));
    *memory = BUF_INIT(*len);
    assert_int_equal(buf_put(memory, HEAD, strlen(HEAD)), 0);
    assert_int_equal(buf_put(memory, bytes, n), 0);
    assert_int_equal(buf_put(memory, TAIL, strlen(TAIL)), 0);
    free(bytes);
    return (struct conn_message){memory->p, memory->len, true, {strlen(HEAD), n}, memory};
}

static void check(size_t n, bool elsewhere) {
    struct buf memory, empty = BUF_INIT(0);
    char *text, *copy = NULL;
    size_t len;
    struct conn_message m = make(&memory, n, &text, &len);
    assert_int_equal(conn_message_sent(&m), len);
    if (elsewhere) { /* as in the queue of waiting requests */
        m.p = copy = malloc(m.n);
        assert_non_null(copy);
        memcpy(copy, memory.p, m.n);
        m.memory = &empty;
        assert_false(conn_message_owns(&m));
    }
    assert_int_equal(conn_message_restore(&m), 0);
    assert_int_equal(m.n, len);
    assert_memory_equal(m.p, text, len);
    assert_int_equal(conn_message_sent(&m), len);
    assert_int_equal(m.predecoded.n, 0);
    if (n > 0)
        assert_true(m.memory->p == m.p && m.memory->len == len);
    if (n >= WS_DECODE_MIN / 4 * 3)
        assert_true(conn_message_owns(&m));
    assert_int_equal(conn_message_restore(&m), 0); /* nothing is left to do */
    assert_int_equal(m.n, len);
    buf_fini(&memory);
    buf_fini(&empty);
    free(copy);
    free(text);
}

/* Around the pieces in which it is done, in place and from a copy. */
static void restore(void **state) {
    (void)state;
    static const size_t sizes[] = {0,    3,    6,    48,   3069,   3072,
                                   3075, 6144, 9216, 9219, 300000, 6000000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        check(sizes[i], false);
        check(sizes[i], true);
    }
}

/* Not enough room: an error, and the message as it was. */
static void restore_fails(void **state) {
    (void)state;
    struct buf memory;
    char *text;
    size_t len;
    struct conn_message m = make(&memory, 30000, &text, &len);
    memory.max = len - 1;
    assert_int_equal(conn_message_restore(&m), -ENOMEM);
    assert_true(m.predecoded.n == 30000 && m.p == memory.p && conn_message_sent(&m) == len);
    memory.max = len;
    assert_int_equal(conn_message_restore(&m), 0);
    assert_memory_equal(m.p, text, len);
    buf_fini(&memory);
    free(text);
}

/* A reader of the marked text gets every byte of the string, and the right offsets in errors. */
static void marked_text(void **state) {
    (void)state;
    static const size_t sizes[] = {3, 48, 3072, 30000, 300000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buf memory;
        char *sent;
        size_t len;
        struct conn_message m = make(&memory, sizes[i], &sent, &len);
        struct str text, data;
        memory.max = 2 * len + 64;
        assert_int_equal(conn_message_text(&m, &text), 0);
        assert_in_range(text.n, conn_message_text_len(&m) + 1, conn_message_text_len(&m) + 64);
        assert_memory_equal(text.p, HEAD, strlen(HEAD));
        assert_memory_equal(text.p + text.n - strlen(TAIL), TAIL, strlen(TAIL));
        const char *value = text.p + strlen(HEAD);
        struct str string = {value, text.n - strlen(HEAD) - strlen(TAIL) + strlen("QUI=")};
        assert_true(conn_message_marks(&m, text, string));
        for (int again = 0; again < 2; again++) {
            _cleanup_err_ struct err e = ERR_INIT;
            assert_int_equal(conn_message_base64(string, &data, &e), 0);
            assert_int_equal(data.n, sizes[i] + 2);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_true(data.p[k] == (char)(k * k / 3));
            assert_memory_equal(data.p + sizes[i], "AB", 2);
        }
        _cleanup_err_ struct err e = ERR_INIT;
        char expected[64];
        snprintf(expected, sizeof expected, "Invalid symbol 34, offset %zu.",
                 sizes[i] / 3 * 4 + strlen("QUI="));
        string.n++; /* the quote behind the padding */
        assert_int_equal(conn_message_base64(string, &data, &e), -EINVAL);
        assert_string_equal(err_msg(&e), expected);
        buf_fini(&memory);
        free(sent);
    }
}

static void plain_text(void **state) {
    (void)state;
    char sent[] = "QUJDRA==";
    struct conn_message m = {.p = sent, .n = strlen(sent), .utf8 = true};
    struct str text, data;
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(conn_message_text(&m, &text), 0);
    assert_true(text.p == sent && text.n == strlen(sent));
    assert_false(conn_message_marks(&m, text, text));
    assert_int_equal(conn_message_base64(text, &data, &e), 0);
    assert_true(data.p == sent && data.n == 4 && memcmp(sent, "ABCD", 4) == 0);
}

/* A copy of the marked string, as of one with an escape, does not count. */
static void marks_elsewhere(void **state) {
    (void)state;
    struct buf memory;
    char *sent, copy[32];
    size_t len;
    struct conn_message m = make(&memory, 30000, &sent, &len);
    struct str text;
    assert_int_equal(conn_message_text(&m, &text), 0);
    memcpy(copy, text.p + strlen(HEAD), sizeof copy);
    assert_false(conn_message_marks(&m, text, (struct str){copy, sizeof copy}));
    assert_false(conn_message_marks(&m, text, text));
    assert_int_equal(conn_message_restore(&m), 0);
    assert_memory_equal(m.p, sent, len);
    buf_fini(&memory);
    free(sent);
}

/* Memory of more than twice what was sent is not handed over; what was taken is gone. */
static void ownership(void **state) {
    (void)state;
    struct buf memory;
    char *text;
    size_t len;
    struct conn_message m = make(&memory, 30000, &text, &len);
    memory.cap = 2 * len + 1;
    assert_true(conn_message_owns(&m));
    memory.cap = 2 * len + 2;
    assert_false(conn_message_owns(&m));
    struct buf taken = conn_message_take(&m);
    assert_true(taken.p == m.p && memory.p == NULL && !conn_message_owns(&m));
    assert_false(conn_message_owns(&(struct conn_message){.p = text, .n = len}));
    buf_fini(&taken);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore),         cmocka_unit_test(restore_fails),
        cmocka_unit_test(marked_text),     cmocka_unit_test(plain_text),
        cmocka_unit_test(marks_elsewhere), cmocka_unit_test(ownership),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
