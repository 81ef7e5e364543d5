/* What the manifest of a plugin says. */
#include "environment/manifest.h"

#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Reads a manifest as "NAME|DISPLAY|MCP", "-" for what it does not say; "faulty". */
static const char *told(const char *text, bool whole) {
    static char out[512];
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct manifest m;
    if (!manifest_read(&a, str_of(text), whole, &m))
        return "faulty";
    snprintf(out, sizeof out, "%s|%s|%s", m.name.p != NULL ? m.name.p : "-",
             m.display.p != NULL ? m.display.p : "-", m.mcp.p != NULL ? m.mcp.p : "-");
    return out;
}

static void members(void **state) {
    (void)state;
    assert_string_equal(told("{}", true), "-|-|-");
    assert_string_equal(told("{\"name\":\"a\",\"interface\":{\"displayName\":\"D\"}}", true),
                        "a|D|-");
    assert_string_equal(told("{\"name\":\"a\",\"interface\":5}", false), "a|-|-");
    assert_string_equal(told("{\"name\":null}", true), "faulty");
    assert_string_equal(told("{\"interface\":null,\"apps\":null}", true), "-|-|-");
    assert_string_equal(told("{\"apps\":5}", true), "faulty");
    assert_string_equal(told("{\"apps\":5}", false), "-|-|-");
}

static void twice(void **state) {
    (void)state;
    assert_string_equal(told("{\"x\":1,\"x\":2}", true), "-|-|-");
    assert_string_equal(told("{\"name\":\"a\",\"name\":\"a\"}", false), "faulty");
    assert_string_equal(told("{\"apps\":\"a\",\"apps\":\"a\"}", true), "faulty");
    assert_string_equal(told("{\"apps\":\"a\",\"apps\":\"a\"}", false), "-|-|-");
    assert_string_equal(told("{\"interface\":{\"displayName\":\"a\",\"displayName\":\"b\"}}", true),
                        "faulty");
}

static void arrays(void **state) {
    (void)state;
    assert_string_equal(told("[]", false), "-|-|-");
    assert_string_equal(told("[\"a\"]", false), "a|-|-");
    assert_string_equal(told("[\"a\",\"b\"]", false), "faulty");
    assert_string_equal(told("[\"a\"]", true), "faulty");
    assert_string_equal(told("[\"a\",[\"D\"],{\"s\":1},null]", true), "a|D|-");
    assert_string_equal(told("[\"a\",[],null,null]", true), "faulty");
}

static void servers(void **state) {
    (void)state;
    assert_string_equal(told("{\"mcpServers\":\"./x\"}", true), "-|-|-");
    assert_string_equal(told("{\"mcpServers\": {}}", true), "-|-|{}");
    assert_string_equal(told("{\"mcpServers\":{\"b\":1, \"a\" : [ 1E5 , -0 ,2e-7],\"b\":{\"c\":"
                             "\"\\u00e9\\/\"}}}",
                             true),
                        "-|-|{\"b\":{\"c\":\"\u00e9/\"},\"a\":[1e+5,0,2e-7]}");
}

/* The search for twins is quadratic: of a large object none are looked for. */
static void many_twins(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    assert_int_equal(buf_putz(&b, "{\"mcpServers\":{\"k0\":0"), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_putf(&b, ",\"k%d\":0", i), 0);
    assert_int_equal(buf_putz(&b, "}}"), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(told(b.p, true), "faulty");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members), cmocka_unit_test(twice),      cmocka_unit_test(arrays),
        cmocka_unit_test(servers), cmocka_unit_test(many_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
