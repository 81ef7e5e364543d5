#include "net/http_head.h"

#include "base/util.h"
#include "guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct guard memory;

struct seen {
    struct http_head head; /* first */
    char text[256];
    bool refuses;
};

static int field(struct http_head *h, struct str name, struct str value) {
    struct seen *s = container_of(h, struct seen, head);
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%.*s=%.*s;", (int)name.n, name.p, (int)value.n,
             value.p);
    return s->refuses ? http_head_fail(h, "refused") : 0;
}

/* Reads a copy that ends at a guard page. */
static int read_head(const char *text, struct seen *s) {
    size_t n = strlen(text);
    s->text[0] = '\0';
    s->head.field = field;
    return http_head_read(guard_copy(&memory, text, n), n, &s->head);
}

static void heads(void **state) {
    (void)state;
    static const char good[] = "HTTP/1.1 206 Partial Content\r\nA: b \r\nc-d:\te\r\n\r\n";
    struct seen s = {.refuses = false};
    assert_int_equal(read_head(good, &s), sizeof good - 1);
    assert_int_equal(s.head.status, 206);
    assert_string_equal(s.text, "A=b;c-d=e;");
    for (size_t n = 0; n < sizeof good - 1; n++) {
        char part[sizeof good] = "";
        memcpy(part, good, n);
        assert_int_equal(read_head(part, &s), 0);
    }
    char more[128];
    snprintf(more, sizeof more, "%s%s", good, "body\r\n\r\n");
    assert_int_equal(read_head(more, &s), sizeof good - 1);
    s.head.field = NULL;
    assert_int_equal(http_head_read(good, sizeof good - 1, &s.head), sizeof good - 1);
    s.refuses = true;
    assert_int_equal(read_head(good, &s), -EPROTO);
    assert_string_equal(s.head.why, "refused");
}

static void bad_heads(void **state) {
    (void)state;
    static const char *const bad[] = {
        "HTTP/1.0 200 OK\r\n\r\n",      "HTTP/1.1 99 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",        "HTTP/1.1 200\n",
        "HTTP/1.1 200\r\nno colon\r\n", "HTTP/1.1 200\r\n: x\r\n",
        "HTTP/1.1 200\r\nA: \x01\r\n",  "\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct seen s = {.refuses = false};
        assert_int_equal(read_head(bad[i], &s), -EPROTO);
        assert_non_null(s.head.why);
    }
}

static void ranges(void **state) {
    (void)state;
    uint64_t r[3];
    assert_true(http_head_range(str_of("bytes 0-999999999999999999/7"), r));
    assert_true(r[0] == 0 && r[1] == 999999999999999999 && r[2] == 7);
    static const char *const bad[] = {"",
                                      "bytes ",
                                      "bytes 0-1",
                                      "bytes 0-1/",
                                      "bytes 0-1/*",
                                      "bytes */5",
                                      "items 0-1/2",
                                      "bytes 0-1/2 ",
                                      "bytes 0-1/1000000000000000000",
                                      "bytes -1-2/3",
                                      "bytes  0-1/2"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(http_head_range(str_of(bad[i]), r));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(bad_heads),
        cmocka_unit_test(ranges),
    };
    memory = guard_new(65536);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&memory);
    return failed;
}
