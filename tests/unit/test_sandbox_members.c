#include "process/sandbox_members.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const struct jsondec_field with_fields[] = {{.name = "path"}, {.name = "sandbox"}};
static const struct jsondec_struct with = {"With", with_fields, ARRAY_LEN(with_fields)};
static const struct jsondec_struct without = {"Without", with_fields, 1};

struct outcome {
    int r;
    bool is_params; /* the sandbox is the params */
    char text[256];
};

/* Checks the members of an object; `given` tells whether a sandbox object was decoded. */
static struct outcome check(const char *json, const struct jsondec_struct *known, bool given) {
    _cleanup_err_ struct err e = ERR_INIT;
    static const struct json_node other;
    struct json_doc d;
    json_doc_init(&d, 4096, 1);
    assert_int_equal(json_parse(&d, json, strlen(json), &e), 0);
    const struct json_node *sandbox = given ? &other : NULL;
    struct outcome out = {0};
    out.r = sandbox_members_check(json_root(&d), known, &sandbox, &e);
    out.is_params = sandbox == json_root(&d);
    if (out.r < 0)
        assert_int_equal(e.code, ERR_INVALID_PARAMS);
    snprintf(out.text, sizeof out.text, "%s", out.r < 0 ? err_msg(&e) : "");
    json_doc_fini(&d);
    return out;
}

static void test_names_that_ask(void **state) {
    static const char *const names[] = {
        "sandboxPolicyCwd",
        "sandbox_policy",
        "SandboxPolicy",
        "permissions",
        "permissionProfile",
        "permission_profile",
        "sandboxMode",
        "sandbox-mode",
        "sandboxPermissions",
        "additionalPermissions",
        "useLegacyLandlock",
        "networkSandboxPolicy",
        "network_policy",
        "networkAccess",
        "writable_roots",
        "fileSystemPolicy",
        "confinement",
        "isolation",
        "seccompProfile",
        "managed_network",
        "readOnlyAccess",
        "fileSystemSandboxPolicy",
        "network",
        "file_system",
        "readOnly",
        "denyRead",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char json[256], text[256];
        snprintf(json, sizeof json, "{\"path\":\"/x\",\"%s\":{\"type\":\"read-only\"}}", names[i]);
        snprintf(text, sizeof text, "`%s` asks for a confinement that this method does not have",
                 names[i]);
        struct outcome with_one = check(json, &with, false), none = check(json, &without, false);
        assert_int_equal(with_one.r, -EINVAL);
        assert_string_equal(with_one.text, text);
        assert_string_equal(none.text, text);
    }
}

/* A false that asks: for no network. */
static void test_no_network(void **state) {
    static const char *const names[] = {"networkAccess", "network_access", "network"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char json[256];
        snprintf(json, sizeof json, "{\"path\":\"/x\",\"%s\":false}", names[i]);
        assert_int_equal(check(json, &with, false).r, -EINVAL);
        snprintf(json, sizeof json, "{\"path\":\"/x\",\"%s\":null}", names[i]);
        assert_int_equal(check(json, &with, false).r, 0);
    }
}

static void test_names_that_do_not(void **state) {
    static const char *const members[] = {
        "\"sandbox\":{}", /* known */
        "\"sandboxPolicy\":null",
        "\"permissions\":null",
        "\"useLegacyLandlock\":false",
        "\"windowsSandboxLevel\":\"disabled\"",
        "\"windowsSandboxPrivateDesktop\":true",
        "\"trace\":{}",
        "\"metadata\":{\"sandbox\":1}",
        "\"networkProxyId\":\"x\"",
        "\"\":1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        char json[256];
        snprintf(json, sizeof json, "{\"path\":\"/x\",%s}", members[i]);
        struct outcome got = check(json, &with, i == 0);
        assert_string_equal(got.text, "");
        assert_false(got.is_params);
    }
}

static void test_policy_among_the_members(void **state) {
    static const char *const text = "{\"path\":\"/x\",\"sandboxPolicy\":{\"type\":\"read-only\"},"
                                    "\"sandboxPolicyCwd\":\"/w\",\"useLegacyLandlock\":true}";
    (void)state;
    struct outcome got = check(text, &with, false);
    assert_int_equal(got.r, 0);
    assert_true(got.is_params);
    assert_string_equal(check(text, &with, true).text,
                        "sandbox and sandboxPolicy exclude each other");
    assert_string_equal(check(text, &without, false).text,
                        "`sandboxPolicy` asks for a confinement that this method does not have");
    assert_string_equal(
        check("{\"sandboxPolicy\":{},\"sandboxMode\":\"read-only\"}", &with, false).text,
        "`sandboxMode` asks for a confinement that this method does not have");
}

static void test_a_start_that_takes_none(void **state) {
    _cleanup_err_ struct err e = ERR_INIT;
    static const char text[] = "{\"sandboxPolicy\":{}}";
    struct json_doc d;
    (void)state;
    json_doc_init(&d, sizeof text, 1);
    assert_int_equal(json_parse(&d, text, strlen(text), &e), 0);
    assert_int_equal(sandbox_members_check(json_root(&d), &with, NULL, &e), -EINVAL);
    json_doc_fini(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_ask),
        cmocka_unit_test(test_no_network),
        cmocka_unit_test(test_names_that_do_not),
        cmocka_unit_test(test_policy_among_the_members),
        cmocka_unit_test(test_a_start_that_takes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
