#include "options_run.h"

static void test_pid_namespace(void **state) {
    (void)state;
    _cleanup_run_ struct run absent = RUN();
    assert_false(absent.o.inherit_pids);
    _cleanup_run_ struct run isolate = RUN("--linux-sandbox-pid-namespace", "isolate");
    assert_int_equal(isolate.result, OPTIONS_RUN);
    assert_false(isolate.o.inherit_pids);
    _cleanup_run_ struct run inherit = RUN("--linux-sandbox-pid-namespace=inherit");
    assert_int_equal(inherit.result, OPTIONS_RUN);
    assert_true(inherit.o.inherit_pids);
}

static void test_doctor(void **state) {
    (void)state;
    _cleanup_run_ struct run plain = RUN("doctor");
    assert_int_equal(plain.result, OPTIONS_DOCTOR);
    assert_string_equal(plain.out, "");
    assert_string_equal(plain.err, "");
    _cleanup_run_ struct run named = RUN("exec-server", "doctor");
    assert_int_equal(named.result, OPTIONS_DOCTOR);
    _cleanup_run_ struct run help = RUN("doctor", "--help");
    assert_int_equal(help.result, OPTIONS_EXIT_0);
    assert_non_null(strstr(help.out, "exec-server doctor [--json]\n"));
    expect_usage("unexpected argument 'now' found", ARGS("doctor", "now"));
    expect_usage("unexpected argument '--listen' found", ARGS("doctor", "--listen=stdio"));
    expect_usage("unexpected argument 'doctor' found", ARGS("--metrics", "doctor"));
    expect_usage("unexpected argument 'doctor' found", ARGS("--", "doctor"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pid_namespace),
        cmocka_unit_test(test_doctor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
