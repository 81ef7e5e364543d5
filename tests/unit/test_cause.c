#include "sandbox/host/cause.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BIT(kind) (1u << (kind))

/* -- facts -- */

static void test_status(void **state) {
    static const struct {
        const char *text;
        unsigned seccomp;
        bool is_root, has_setfcap;
    } rows[] = {
        {"", 0, false, false},
        {"Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"
         "Seccomp:\t2\nSeccomp_filters:\t1\n",
         2, true, true},
        {"Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nSeccomp:\t0\n", 0, false, false},
        {"Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n", 0, true, false},
        {"Uid:\t0\t1000\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t1\n", 1, false, true},
        {"Name:\tSeccomp:\t2\nUid:\t", 0, false, false}, /* a name can be anything */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cause_facts f = {0};
        cause_take_status(&f, rows[i].text);
        assert_int_equal(f.seccomp, rows[i].seccomp);
        assert_int_equal(f.is_root, rows[i].is_root);
        assert_int_equal(f.has_setfcap, rows[i].has_setfcap);
    }
}

static void test_label(void **state) {
    static const struct {
        const char *text;
        bool apparmor, selinux;
    } rows[] = {
        {"", false, false},
        {"unconfined\n", false, false},
        {"docker-default (enforce)\n", true, false},
        {"containers-default-0.57.4 (enforce)\n", true, false},
        {"cri-containerd.apparmor.d (enforce)", true, false},
        {"profile (complain)\n", false, false},
        {"a:b:c (enforce)\n", true, false},
        {"system_u:system_r:container_t:s0:c1,c2", false, true},
        {"unconfined_u:unconfined_r:unconfined_t:s0", false, false},
        {"system_u:system_r:spc_t:s0", false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cause_facts f = {0};
        cause_take_label(&f, rows[i].text);
        assert_int_equal(f.apparmor, rows[i].apparmor);
        assert_int_equal(f.selinux, rows[i].selinux);
    }
}

static void test_mountinfo(void **state) {
    static const struct {
        const char *text;
        bool hidden;
    } rows[] = {
        {"", false},
        {"22 1 0:20 / /proc rw,nosuid - proc proc rw\n", false},
        {"22 1 0:20 / /proc rw - proc proc rw\n23 22 0:20 /sys /proc/sys ro - proc proc rw\n",
         true},
        {"23 22 0:5 /null /proc/kcore rw - tmpfs tmpfs rw", true},
        {"23 22 0:5 /proc/x /process rw - tmpfs tmpfs rw\n", false},
        {"23 22\n", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cause_facts f = {0};
        cause_take_mountinfo(&f, rows[i].text);
        assert_int_equal(f.proc_hidden, rows[i].hidden);
    }
}

static void test_sysctls(void **state) {
    static const struct {
        const char *clone, *policy;
        bool userns_clone, userns_policy;
    } rows[] = {{"", "", true, false}, {"1\n", "0\n", true, false}, {"0\n", "1\n", false, true}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cause_facts f = {0};
        cause_take_sysctls(&f, rows[i].clone, rows[i].policy);
        assert_int_equal(f.userns_clone, rows[i].userns_clone);
        assert_int_equal(f.userns_policy, rows[i].userns_policy);
    }
}

/* -- causes -- */

#define OPEN .userns_clone = true
#define DOCKER_FILTER .clone_filtered = true, .mounts_filtered = true, .seccomp = 2

static const struct {
    struct cause_facts facts;
    struct fault fault;
    unsigned causes;
} cases[] = {
    /* Docker's defaults, without and with AppArmor. */
    {{OPEN, DOCKER_FILTER}, {.step = FAULT_NAMESPACES, .error = EPERM}, BIT(CAUSE_SECCOMP)},
    {{OPEN, DOCKER_FILTER, .apparmor = true},
     {.step = FAULT_NAMESPACES, .error = EPERM},
     BIT(CAUSE_SECCOMP) | BIT(CAUSE_APPARMOR)},
    /* The filter lifted, the profile still there. */
    {{OPEN, .apparmor = true}, {.step = FAULT_MOUNT, .error = EACCES}, BIT(CAUSE_APPARMOR)},
    {{OPEN, .apparmor = true}, {.step = FAULT_DEV, .error = EACCES}, BIT(CAUSE_APPARMOR)},
    {{OPEN, .selinux = true}, {.step = FAULT_MOUNT, .error = EACCES}, BIT(CAUSE_SELINUX)},
    /* A filter that allows namespaces, but does not know new calls, or refuses mounts. */
    {{OPEN, .mounts_filtered = true}, {.step = FAULT_MOUNT, .error = ENOSYS}, BIT(CAUSE_SECCOMP)},
    {{OPEN, .mounts_filtered = true}, {.step = FAULT_MOUNT, .error = EPERM}, BIT(CAUSE_SECCOMP)},
    {{OPEN}, {.step = FAULT_MOUNT, .error = ENOSYS}, BIT(CAUSE_KERNEL)},
    /* One that kills. */
    {{OPEN, .mounts_filtered = true}, {.step = FAULT_LOST, .error = 0}, BIT(CAUSE_SECCOMP)},
    {{OPEN}, {.step = FAULT_LOST, .error = 0}, 0},
    /* Root without capabilities. */
    {{OPEN, .is_root = true}, {.step = FAULT_IDS, .error = EPERM}, BIT(CAUSE_ROOT_MAP)},
    {{OPEN, .is_root = true, .has_setfcap = true}, {.step = FAULT_IDS, .error = EPERM}, 0},
    {{OPEN}, {.step = FAULT_IDS, .error = EPERM}, 0},
    /* Settings of distributions. */
    {{.userns_clone = false}, {.step = FAULT_NAMESPACES, .error = EPERM}, BIT(CAUSE_USERNS_CLONE)},
    {{OPEN, .userns_policy = true}, {.step = FAULT_IDS, .error = EPERM}, BIT(CAUSE_USERNS_POLICY)},
    {{OPEN, .userns_policy = true},
     {.step = FAULT_MOUNT, .error = EACCES},
     BIT(CAUSE_USERNS_POLICY)},
    {{OPEN}, {.step = FAULT_NAMESPACES, .error = ENOSPC}, BIT(CAUSE_LIMIT)},
    {{OPEN, DOCKER_FILTER}, {.step = FAULT_NAMESPACES, .error = ENOSPC}, BIT(CAUSE_LIMIT)},
    {{OPEN}, {.step = FAULT_NETWORK, .error = EPERM}, BIT(CAUSE_NET_ADMIN)},
    /* What is no matter of the host's settings. */
    {{OPEN}, {.step = FAULT_NAMESPACES, .error = EPERM}, 0},
    {{OPEN, .apparmor = true}, {.step = FAULT_POLICY, .error = 0}, 0},
    {{OPEN, DOCKER_FILTER}, {.step = FAULT_EXEC, .error = ENOENT}, 0},
};

static void test_causes(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned found = cause_find(&cases[i].facts, &cases[i].fault);
        if (found != cases[i].causes)
            fail_msg("case %zu: %#x instead of %#x", i, found, cases[i].causes);
    }
}

static void test_every_cause_has_a_way_out(void **state) {
    (void)state;
    for (unsigned k = 0; k < CAUSES; k++) {
        assert_non_null(cause_name(k));
        assert_non_null(cause_text(k));
        bool known = cause_setting(k) != NULL || k == CAUSE_KERNEL;
        for (unsigned engine = 0; engine < CAUSE_ENGINES; engine++)
            assert_true(known || cause_option(k, engine) != NULL ||
                        (k == CAUSE_CGROUPS && engine == CAUSE_KUBERNETES));
    }
}

static const char *describe(const struct cause_facts *f, unsigned causes) {
    static char text[512];
    cause_describe(f, causes, text, sizeof text);
    return text;
}

static void test_texts(void **state) {
    struct cause_facts f = {0};
    (void)state;
    assert_string_equal(describe(&f, 0), "");
    assert_string_equal(describe(&f, BIT(CAUSE_SECCOMP)),
                        "; a seccomp filter refuses it: start the container with "
                        "--security-opt seccomp=unconfined");
    f.in[CAUSE_PODMAN] = true;
    assert_string_equal(describe(&f, BIT(CAUSE_PROC)),
                        "; parts of /proc are hidden, so that sandboxes see the container's "
                        "processes: start the container with --security-opt unmask=ALL");
    f.in[CAUSE_KUBERNETES] = true;
    assert_string_equal(describe(&f, BIT(CAUSE_ROOT_MAP)),
                        "; uid 0 without CAP_SETFCAP cannot make a user namespace for itself: give "
                        "the container securityContext.capabilities.add: [SETFCAP]");
    assert_string_equal(describe(&f, BIT(CAUSE_USERNS_CLONE)),
                        "; user namespaces are for root alone: on the host, sysctl "
                        "kernel.unprivileged_userns_clone=1");
    assert_string_equal(describe(&f, BIT(CAUSE_KERNEL)), "; the kernel is older than 5.12");
    char small[16];
    cause_describe(&f, ~0u, small, sizeof small);
    assert_string_equal(small, "; a seccomp fil");
}

static void test_engines(void **state) {
    struct cause_facts f = {0};
    (void)state;
    assert_int_equal(cause_engine_of(&f), CAUSE_ENGINES);
    f.in[CAUSE_DOCKER] = true;
    assert_int_equal(cause_engine_of(&f), CAUSE_DOCKER);
    f.in[CAUSE_KUBERNETES] = true;
    assert_int_equal(cause_engine_of(&f), CAUSE_KUBERNETES);
}

/* Without a filter no call is taken for a refused one, whatever else the host forbids. */
static void test_look(void **state) {
    struct cause_facts f;
    (void)state;
    cause_look(&f);
    if (f.seccomp == 0)
        assert_int_equal(cause_try_calls(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),    cmocka_unit_test(test_label),
        cmocka_unit_test(test_mountinfo), cmocka_unit_test(test_sysctls),
        cmocka_unit_test(test_causes),    cmocka_unit_test(test_every_cause_has_a_way_out),
        cmocka_unit_test(test_texts),     cmocka_unit_test(test_engines),
        cmocka_unit_test(test_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
