#include "proc/limits.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define ALL_CONTROLLERS (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU)

/*
 * A tree of plain files in place of cgroups. Each write starts at the first byte and leaves what
 * is behind it, so a file shows a later, shorter write over the end of an earlier, longer one.
 */
struct fixture {
    char root[32];
    char own[64];  /* the server's cgroup, root/x */
    char self[64]; /* in place of /proc/self/cgroup */
    struct cgroup_host host;
    struct cgroup group;
    struct limits limits;
    struct limits_steps steps;
    struct err e;
};

static struct fixture f;

static const char *path_of(const char *dir, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *dir, const char *name, const char *text) {
    FILE *file = fopen(path_of(dir, name), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *get(const char *dir, const char *name) {
    static char text[256];
    FILE *file = fopen(path_of(dir, name), "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool exists(const char *dir, const char *name) {
    return access(path_of(dir, name), F_OK) == 0;
}

static void drop(const char *dir, const char *name) {
    assert_int_equal(unlink(path_of(dir, name)), 0);
}

static int setup(void **state) {
    (void)state;
    f = (struct fixture){.root = "/tmp/limits-XXXXXX"};
    assert_non_null(mkdtemp(f.root));
    assert_int_equal(chmod(f.root, 0755), 0);
    snprintf(f.own, sizeof f.own, "%s/x", f.root);
    snprintf(f.self, sizeof f.self, "%s/self", f.root);
    assert_int_equal(mkdir(f.own, 0755), 0);
    put(f.root, "self", "1:name=systemd:/y\n0::/x\n");
    put(f.own, "cgroup.controllers", "cpuset cpu io memory pids\n");
    put(f.own, "cgroup.procs", "4711\n22\n");
    put(f.own, "cgroup.subtree_control", "");
    assert_int_equal(mkdir(path_of(f.own, "exec-server"), 0755), 0);
    put(f.own, "exec-server/cgroup.procs", "");
    return 0;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *w) {
    (void)s, (void)type, (void)w;
    return remove(path);
}

static int teardown(void **state) {
    (void)state;
    limits_steps_fini(&f.steps);
    free(f.group.dir);
    cgroup_host_fini(&f.host);
    err_fini(&f.e);
    return nftw(f.root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Runs `fn` as a user without rights; it ends with _exit(0) when all is well. */
static void as_nobody(void (*fn)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ok =
            geteuid() != 0 || (setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
        if (ok)
            fn();
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* -- ranges -- */

static const struct {
    enum limits_kind kind;
    const char *name;
    int64_t min, max;
} ranges[] = {
    {LIMITS_MEMORY, "memoryBytes", 1048576, INT64_MAX},
    {LIMITS_PIDS, "pids", 1, 4194304},
    {LIMITS_OPEN_FILES, "openFiles", 3, 1073741824},
    {LIMITS_NICE, "nice", -20, 19},
    {LIMITS_OOM, "oomScoreAdj", -1000, 1000},
    {LIMITS_CPU_WEIGHT, "cpuWeight", 1, 10000},
    {LIMITS_CPU, "cpuPercent", 1, 1000000},
};

static void ask(enum limits_kind k, int64_t value) {
    f.limits.given[k] = true;
    f.limits.value[k] = value;
}

static int check_one(enum limits_kind k, int64_t value) {
    f.limits = (struct limits){0};
    ask(k, value);
    return limits_check(&f.limits, &f.e);
}

static void out_of_range(size_t i, int64_t value) {
    char text[128];
    snprintf(text, sizeof text, "limits.%s must be between %" PRId64 " and %" PRId64,
             ranges[i].name, ranges[i].min, ranges[i].max);
    assert_int_equal(check_one(ranges[i].kind, value), -EINVAL);
    assert_int_equal(f.e.code, ERR_INVALID_PARAMS);
    assert_string_equal(err_msg(&f.e), text);
}

static void range_of_each(void **state) {
    (void)state;
    assert_int_equal(ARRAY_LEN(ranges), LIMITS_KINDS);
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        assert_string_equal(limits_name(ranges[i].kind), ranges[i].name);
        assert_int_equal(check_one(ranges[i].kind, ranges[i].min), 0);
        assert_int_equal(check_one(ranges[i].kind, ranges[i].max), 0);
        out_of_range(i, ranges[i].min - 1);
        out_of_range(i, INT64_MIN);
        if (ranges[i].max < INT64_MAX) {
            out_of_range(i, ranges[i].max + 1);
            out_of_range(i, INT64_MAX);
        }
    }
}

static void what_is_not_given_has_no_range(void **state) {
    (void)state;
    for (int k = 0; k < LIMITS_KINDS; k++)
        f.limits.value[k] = INT64_MIN;
    assert_int_equal(limits_check(&f.limits, &f.e), 0);
    assert_int_equal(f.e.code, 0);
}

/* -- plans without cgroups -- */

static int plan(void) {
    f.host.probed = true; /* with what the test says is there */
    return limits_plan(&f.limits, &f.host, &f.group, &f.steps, &f.e);
}

static void refused(const char *text) {
    assert_int_equal(plan(), -EINVAL);
    assert_int_equal(f.e.code, ERR_INVALID_REQUEST);
    assert_string_equal(err_msg(&f.e), text);
    assert_null(f.group.dir);
    assert_false(f.steps.join);
}

static void nothing_asked(void **state) {
    (void)state;
    assert_int_equal(plan(), 0);
    assert_false(f.steps.set_memory || f.steps.set_pids || f.steps.set_open_files);
    assert_false(f.steps.set_nice || f.steps.set_oom || f.steps.join);
    assert_null(f.group.dir);
}

static void by_the_process_itself(void **state) {
    (void)state;
    struct rlimit now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    ask(LIMITS_MEMORY, 1 << 28);
    ask(LIMITS_OPEN_FILES, 10);
    ask(LIMITS_NICE, -3);
    ask(LIMITS_OOM, -1000);
    assert_int_equal(plan(), 0);
    assert_true(f.steps.set_memory && f.steps.set_open_files);
    assert_true(f.steps.set_nice && f.steps.set_oom);
    assert_false(f.steps.set_pids || f.steps.join);
    assert_int_equal(f.steps.memory.rlim_cur, 1 << 28);
    assert_int_equal(f.steps.memory.rlim_max, 1 << 28);
    assert_int_equal(f.steps.open_files.rlim_cur, 10);
    assert_int_equal(f.steps.open_files.rlim_max, 10);
    assert_int_equal(f.steps.nice, -3);
    assert_int_equal(f.steps.oom_len, 5);
    assert_memory_equal(f.steps.oom, "-1000", 5);
    assert_null(f.group.dir);
}

static void weight_needs_a_cgroup(void **state) {
    (void)state;
    ask(LIMITS_CPU_WEIGHT, 100);
    refused("limits.cpuWeight cannot be enforced on this host: no cgroup v2 cpu controller is "
            "delegated");
}

static void pids_do_not_bind_root(void **state) {
    (void)state;
    if (getuid() != 0)
        skip();
    ask(LIMITS_PIDS, 10);
    refused("limits.pids cannot be enforced on this host: no cgroup v2 pids controller is "
            "delegated, and the resource limit does not bind root");
}

static void plan_pids(void) {
    ask(LIMITS_PIDS, 10);
    if (plan() == 0 && f.steps.set_pids && f.steps.pids.rlim_cur == 10 &&
        f.steps.pids.rlim_max == 10)
        _exit(0);
}

static void pids_of_a_user(void **state) {
    (void)state;
    as_nobody(plan_pids);
}

static void plan_files(void) {
    struct rlimit limit = {20, 20};
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    ask(LIMITS_OPEN_FILES, 20);
    if (plan() < 0)
        return;
    ask(LIMITS_OPEN_FILES, 21);
    if (plan() == -EINVAL && f.e.code == ERR_INVALID_REQUEST &&
        strcmp(err_msg(&f.e), "limits.openFiles cannot be enforced on this host: it is above the "
                              "server's own hard limit") == 0)
        _exit(0);
}

static void open_files_of_a_user(void **state) {
    (void)state;
    as_nobody(plan_files);
}

/* -- cgroups -- */

static void probe(void) {
    cgroup_probe(&f.host, f.root, f.self);
    assert_true(f.host.probed);
}

static void found_nothing(void) {
    probe();
    assert_int_equal(f.host.controllers, 0);
    assert_null(f.host.base);
}

static void delegated(void **state) {
    (void)state;
    probe();
    assert_int_equal(f.host.controllers, ALL_CONTROLLERS);
    assert_string_equal(f.host.base, f.own);
    assert_string_equal(get(f.own, "exec-server/cgroup.procs"), "2211");  /* 22 over 4711 */
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "+cpusry"); /* +memory, +pids, +cpu */
}

static void looks_once(void **state) {
    (void)state;
    probe();
    put(f.own, "exec-server/cgroup.procs", "");
    put(f.own, "cgroup.subtree_control", "");
    probe();
    assert_string_equal(get(f.own, "exec-server/cgroup.procs"), "");
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "");
    assert_int_equal(f.host.controllers, ALL_CONTROLLERS);
}

/* The leaf is made when it is missing; a fake one has no files, so that is the end here. */
static void makes_the_leaf(void **state) {
    (void)state;
    drop(f.own, "exec-server/cgroup.procs");
    assert_int_equal(rmdir(path_of(f.own, "exec-server")), 0);
    found_nothing();
    assert_true(exists(f.own, "exec-server"));
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "");
}

static void some_controllers(void **state) {
    (void)state;
    put(f.own, "cgroup.controllers", "cpuset pids\n"); /* cpuset is not cpu */
    probe();
    assert_int_equal(f.host.controllers, CGROUP_PIDS);
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "+pids");
}

/* In a container the own cgroup may be the root of what is mounted. */
static void own_cgroup_is_the_root(void **state) {
    (void)state;
    put(f.root, "self", "0::/\n");
    cgroup_probe(&f.host, f.own, f.self);
    assert_int_equal(f.host.controllers, ALL_CONTROLLERS);
    assert_string_equal(f.host.base, f.own);
}

static void untouched(void) {
    assert_string_equal(get(f.own, "exec-server/cgroup.procs"), "");
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "");
}

static void no_controllers(void **state) {
    (void)state;
    const char *const lists[] = {"\n", ""};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        f.host = (struct cgroup_host){0};
        put(f.own, "cgroup.controllers", lists[i]);
        found_nothing();
        untouched();
    }
    f.host = (struct cgroup_host){0};
    drop(f.own, "cgroup.controllers");
    found_nothing();
    untouched();
}

static void unknown_controllers(void **state) {
    (void)state;
    put(f.own, "cgroup.controllers", "cpuset hugetlb memoryx xpids\n");
    found_nothing();
    assert_string_equal(get(f.own, "cgroup.subtree_control"), "");
}

static void only_cgroup_v1(void **state) {
    (void)state;
    put(f.root, "self", "2:memory:/x\n1:name=systemd:/x\n");
    found_nothing();
    f.host = (struct cgroup_host){0};
    drop(f.root, "self");
    found_nothing();
    untouched();
}

static void controllers_cannot_be_switched_on(void **state) {
    (void)state;
    drop(f.own, "cgroup.subtree_control");
    found_nothing();
}

static void probe_denied(void) {
    cgroup_probe(&f.host, f.root, f.self);
    if (f.host.probed && f.host.controllers == 0 && f.host.base == NULL)
        _exit(0);
}

static void not_writable(void **state) {
    (void)state;
    assert_int_equal(chmod(f.own, 0555), 0);
    as_nobody(probe_denied);
    assert_int_equal(chmod(f.own, 0755), 0);
    untouched();
}

static void a_child(void **state) {
    (void)state;
    struct cgroup other = {0};
    probe();
    assert_int_equal(cgroup_make(&f.host, &f.group), 0);
    assert_int_equal(cgroup_make(&f.host, &other), 0);
    assert_string_not_equal(f.group.dir, other.dir);
    cgroup_remove(&other);
    assert_null(other.dir);
    cgroup_remove(&other); /* harmless */
    assert_memory_equal(f.group.dir, f.own, strlen(f.own));
    assert_int_equal(cgroup_set(&f.group, "pids.max", 5), -ENOENT);
    assert_int_equal(cgroup_open_procs(&f.group), -ENOENT);
    put(f.group.dir, "memory.max", "");
    put(f.group.dir, "cgroup.procs", "");
    assert_int_equal(cgroup_set(&f.group, "memory.max", INT64_MAX), 0);
    assert_string_equal(get(f.group.dir, "memory.max"), "9223372036854775807");
    int fd = cgroup_open_procs(&f.group);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(fd, "0", 1), 1);
    close(fd);
    assert_string_equal(get(f.group.dir, "cgroup.procs"), "0");
    drop(f.group.dir, "memory.max");
    drop(f.group.dir, "cgroup.procs");
    char dir[256];
    snprintf(dir, sizeof dir, "%s", f.group.dir);
    cgroup_remove(&f.group);
    assert_null(f.group.dir);
    assert_true(access(dir, F_OK) < 0);
}

static void a_child_that_cannot_be_made(void **state) {
    (void)state;
    probe();
    drop(f.own, "exec-server/cgroup.procs");
    assert_int_equal(nftw(f.own, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(cgroup_make(&f.host, &f.group), -ENOENT);
    assert_null(f.group.dir);
}

/* A limit that its cgroup does not take is refused, and the cgroup is removed again. */
static void refused_by_the_cgroup(void **state) {
    (void)state;
    const struct {
        enum limits_kind kind;
        const char *text;
    } cases[] = {
        {LIMITS_MEMORY, "limits.memoryBytes cannot be enforced on this host: "},
        {LIMITS_PIDS, "limits.pids cannot be enforced on this host: "},
        {LIMITS_CPU_WEIGHT, "limits.cpuWeight cannot be enforced on this host: "},
    };
    probe();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128], dir[256];
        snprintf(text, sizeof text, "%s%s", cases[i].text, err_os_text(ENOENT));
        snprintf(dir, sizeof dir, "%s/command-%d-%" PRIu64, f.own, (int)getpid(), f.host.next);
        f.limits = (struct limits){0};
        ask(cases[i].kind, 1 << 20);
        refused(text);
        assert_true(access(dir, F_OK) < 0);
    }
    assert_int_equal(f.host.next, ARRAY_LEN(cases));
}

/* What has its controller goes to the cgroup, the rest does not. */
static void controller_of_another_limit(void **state) {
    (void)state;
    put(f.own, "cgroup.controllers", "pids\n");
    probe();
    ask(LIMITS_MEMORY, 1 << 28);
    assert_int_equal(plan(), 0);
    assert_true(f.steps.set_memory);
    assert_null(f.group.dir);
    assert_int_equal(f.host.next, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(range_of_each),
        TEST(what_is_not_given_has_no_range),
        TEST(nothing_asked),
        TEST(by_the_process_itself),
        TEST(weight_needs_a_cgroup),
        TEST(pids_do_not_bind_root),
        TEST(pids_of_a_user),
        TEST(open_files_of_a_user),
        TEST(delegated),
        TEST(looks_once),
        TEST(makes_the_leaf),
        TEST(some_controllers),
        TEST(own_cgroup_is_the_root),
        TEST(no_controllers),
        TEST(unknown_controllers),
        TEST(only_cgroup_v1),
        TEST(controllers_cannot_be_switched_on),
        TEST(not_writable),
        TEST(a_child),
        TEST(a_child_that_cannot_be_made),
        TEST(refused_by_the_cgroup),
        TEST(controller_of_another_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
