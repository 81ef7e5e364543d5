#include "fs/fs_site.h"

#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A job that asks for a path; which site it was at in the end. */
struct visit {
    struct pool_job job;
    const char *path;
    bool follow;
    bool entered;
    uint64_t site;
    bool done;
};

static struct loop loop;
static struct pool pool;
static char dir[] = "/tmp/test_fs_site.XXXXXX";

static int setup(void **state) {
    (void)state;
    strcpy(strrchr(dir, '.'), ".XXXXXX");
    if (mkdtemp(dir) == NULL || chdir(dir) < 0)
        return -1;
    return loop_init(&loop, NULL) == 0 ? pool_init(&pool, &loop) : -1;
}

static int teardown(void **state) {
    (void)state;
    char command[64];
    pool.stop_ms = 60000;
    if (!pool_fini(&pool))
        return -1;
    loop_fini(&loop);
    snprintf(command, sizeof command, "rm -r %s", dir);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void work(struct pool_job *j) {
    struct visit *v = container_of(j, struct visit, job);
    v->entered = fs_site_enter(j, v->path, v->follow);
    v->site = j->site;
}

static void done(struct pool_job *j) {
    container_of(j, struct visit, job)->done = true;
}

static uint64_t site_of(const char *path) {
    struct statx st;
    assert_int_equal(fs_statx(AT_FDCWD, path, 0, &st), 0);
    return fs_site(&st);
}

/* Where a job for `name`, absolute or in the directory, ends up. */
static uint64_t visited(const char *name, bool follow) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/",
             name);
    struct visit v = {.job = {.work = work, .done = done}, .path = path, .follow = follow};
    list_init(&v.job.node);
    pool_submit(&pool, &v.job);
    while (!v.done)
        assert_int_equal(loop_once(&loop, 60 * LOOP_SEC), 0);
    assert_true(v.entered);
    return v.site;
}

static void a_path_leads_to_its_file_system(void **state) {
    (void)state;
    assert_int_equal(visited("/proc/self/status", true), site_of("/proc"));
    assert_int_equal(visited("/proc", true), site_of("/proc"));
    assert_int_equal(visited("/", true), site_of("/"));
    assert_int_equal(visited(".", true), site_of(dir));
    assert_int_not_equal(site_of("/proc"), site_of(dir));
}

static void what_is_missing_counts_where_it_would_be(void **state) {
    (void)state;
    assert_int_equal(visited("new", true), site_of(dir));
    assert_int_equal(visited("no/such/way", true), site_of(dir));
    assert_int_equal(visited("/proc/no/such", true), site_of("/proc"));
}

static void links_are_followed(void **state) {
    (void)state;
    assert_int_equal(symlink("/proc/self", "self"), 0);
    assert_int_equal(symlink("self/status", "status"), 0);
    assert_int_equal(symlink("/proc/no/such", "dangling"), 0);
    assert_int_equal(symlink("self/no-such", "within"), 0);
    assert_int_equal(visited("self", true), site_of("/proc"));
    assert_int_equal(visited("status", true), site_of("/proc"));
    assert_int_equal(visited("self/no-such", true), site_of("/proc"));
    assert_int_equal(visited("dangling", true), site_of("/proc"));
    assert_int_equal(visited("within", true), site_of("/proc"));
    assert_int_equal(visited("dangling", false), site_of(dir));
    assert_int_equal(visited("status", false), site_of(dir));
}

static void links_have_an_end(void **state) {
    (void)state;
    char longest[PATH_MAX - 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 200; i < sizeof longest - 1; i += 200)
        longest[i] = '/';
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_int_equal(symlink(longest, "long"), 0);
    assert_int_equal(visited("a", true), site_of(dir));
    assert_int_equal(visited("a/x", true), site_of(dir));
    assert_int_equal(visited("long/and/more", true), site_of(dir));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_leads_to_its_file_system, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_counts_where_it_would_be, setup, teardown),
        cmocka_unit_test_setup_teardown(links_are_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(links_have_an_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
