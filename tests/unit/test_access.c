/* The policy: tables of questions, on a tree of our own, as any user. */
#include "sandbox/policy/access.h"

#include "fs_run.h"

static struct arena arena;
static struct access policy;
static struct fault fault;

/* "w ws", "d ws/secret", "r :root", "g ws/ *.env" without the blank: directory and pattern. */
static int build(const char *const *texts, size_t n, bool full_read) {
    static struct plan_entry entries[16];
    static struct plan_glob globs[16];
    static struct plan plan;
    plan = (struct plan){.confine_files = true,
                         .full_read = full_read,
                         .entries = entries,
                         .globs = globs,
                         .cwd = "/"};
    access_fini(&policy);
    arena_fini(&arena);
    arena = ARENA_INIT(8u << 20);
    fault = (struct fault){0};
    for (size_t i = 0; i < n; i++) {
        const char *name = texts[i] + 2, *blank = strchr(name, ' ');
        char text[512];
        snprintf(text, sizeof text, "%s/%.*s", scratch,
                 blank != NULL ? (int)(blank - name) : (int)strlen(name), name);
        if (texts[i][0] == 'g') {
            char *pattern = arena_alloc(&arena, 512);
            uint32_t fixed = (uint32_t)snprintf(pattern, 512, "%s", text);
            snprintf(pattern + fixed, 512 - fixed, "/%s", blank + 1);
            globs[plan.glob_count++] = (struct plan_glob){pattern, fixed, 0};
            continue;
        }
        enum plan_access access = texts[i][0] == 'w'   ? PLAN_WRITE
                                  : texts[i][0] == 'r' ? PLAN_READ
                                                       : PLAN_DENY;
        entries[plan.entry_count++] =
            (struct plan_entry){arena_strdup(&arena, str_of(text)), access};
    }
    return access_build(&policy, &plan, &arena, &fault);
}

#define BUILD(full, ...)                                                                           \
    build((const char *const[]){__VA_ARGS__},                                                      \
          sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), full)

static int set_up(void **state) {
    if (scratch_new(state) < 0)
        return -1;
    make_dir("ws");
    make_dir("ws/sub");
    make_dir("ws/sub/deep");
    make_dir("ws/deny");
    make_dir("ws/deny/in");
    make_dir("ws/deny/in/open");
    make_dir("ws/.agents");
    make_dir("out");
    make_file("ws/file", "");
    make_file("ws/a.env", "");
    make_file("ws/sub/b.env", "");
    make_file("out/file", "");
    assert_int_equal(symlink("sub/deep", at("ws/x.env")), 0);
    return 0;
}

static int tear_down(void **state) {
    access_fini(&policy);
    arena_fini(&arena);
    arena = (struct arena){0};
    return scratch_rm(state);
}

struct question {
    const char *path;
    int read, change, make, take, get; /* errno, or 0 */
};

static int ask(enum access_need need, const char *name, bool tree) {
    struct stat st;
    const char *path = at(name);
    struct access_query q = {.need = need, .path = path, .tree = tree};
    q.mode = lstat(path, &st) == 0 ? st.st_mode : 0;
    return -access_may(&policy, &q);
}

static void check(const struct question *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct question *q = &list[i];
        const int got[] = {ask(ACCESS_READ, q->path, false), ask(ACCESS_CHANGE, q->path, false),
                           ask(ACCESS_MAKE, q->path, false), ask(ACCESS_TAKE, q->path, true),
                           ask(ACCESS_GET, q->path, false)};
        const int want[] = {q->read, q->change, q->make, q->take, q->get};
        for (size_t k = 0; k < 5; k++) {
            if (got[k] != want[k])
                fail_msg("%s, question %zu: %d, not %d", q->path, k, got[k], want[k]);
        }
    }
}

#define ASK(...)                                                                                   \
    check((const struct question[]){__VA_ARGS__},                                                  \
          sizeof((const struct question[]){__VA_ARGS__}) / sizeof(struct question))

enum { RO = EROFS, NO = EACCES, BUSY = EBUSY };

static void writable_root(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws"), 0);
    /*          path         read change make take get; what exists needs no making */
    ASK({"ws/file", 0, 0, 0, 0, 0}, {"ws/new", 0, 0, 0, 0, 0}, {"ws/sub", 0, 0, 0, 0, 0},
        {"ws", 0, 0, 0, RO, 0}, {"out/file", 0, RO, 0, RO, RO}, {"out/new", 0, RO, RO, 0, RO},
        {"ws/.git", 0, RO, RO, 0, RO}, {"ws/.git/config", 0, RO, RO, 0, RO},
        {"ws/.agents", 0, RO, 0, RO, RO}, {"ws/.agents/x", 0, RO, RO, 0, RO},
        {"ws/.gitignore", 0, 0, 0, 0, 0}, {"ws/sub/.git", 0, 0, 0, 0, 0}, );
}

static void protected_names_can_be_granted(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "w ws/.git", "w ws/.agents"), 0);
    ASK({"ws/.git", 0, 0, 0, 0, 0}, {"ws/.git/config", 0, 0, 0, 0, 0},
        {"ws/.agents/x", 0, 0, 0, 0, 0}, {"ws/.agents", 0, 0, 0, BUSY, 0},
        {"ws/.codex", 0, RO, RO, 0, RO}, );
}

static void denied(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "d ws/deny"), 0);
    ASK({"ws/deny", NO, NO, 0, NO, NO}, {"ws/deny/in", NO, NO, 0, NO, NO},
        {"ws/deny/new", ENOENT, NO, NO, 0, NO}, {"ws/denyx", 0, 0, 0, 0, 0}, );
    /* What holds something that is mounted keeps its place. */
    assert_int_equal(BUILD(true, "w ws", "d ws/deny/in"), 0);
    assert_int_equal(ask(ACCESS_TAKE, "ws/deny", true), BUSY);
    assert_int_equal(ask(ACCESS_TAKE, "ws/deny", false), 0);
}

/* Directories on the way to what is granted below a denied one can be listed. */
static void between_denied_and_granted(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "d ws/deny", "w ws/deny/in/open"), 0);
    ASK({"ws/deny", NO, NO, 0, NO, NO}, {"ws/deny/in", 0, RO, 0, RO, RO},
        {"ws/deny/in/open", 0, 0, 0, RO, 0}, {"ws/deny/in/x", ENOENT, RO, RO, 0, RO},
        {"ws/deny/x", ENOENT, NO, NO, 0, NO}, {"ws/deny/in/open/x", 0, 0, 0, 0, 0}, );
    assert_int_equal(BUILD(true, "w ws", "d ws/deny", "r ws/deny/in/open"), 0);
    ASK({"ws/deny/in", NO, NO, 0, NO, NO}, {"ws/deny/in/open", NO, NO, 0, NO, NO}, );
}

/* Nobody may make a missing path, nor the missing directories above it. */
static void missing_paths(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "d ws/no/such/dir", "r ws/sub/ro"), 0);
    ASK({"ws/no", 0, RO, RO, 0, RO}, {"ws/no/other", 0, RO, RO, 0, RO},
        {"ws/no/such/dir", ENOENT, NO, NO, 0, NO}, {"ws/sub/ro", 0, RO, RO, 0, RO},
        {"ws/sub/ro/x", 0, RO, RO, 0, RO}, {"ws/sub/rox", 0, 0, 0, 0, 0}, );
    assert_int_equal(access_may_missing(&policy, ACCESS_CHANGE, at("ws/no/x/y"), strlen(at("ws"))),
                     -RO);
    assert_int_equal(access_may_missing(&policy, ACCESS_READ, at("ws/no/x/y"), strlen(at("ws"))),
                     -ENOENT);
}

/* A grant for what does not exist: it can be made where its directory can be changed. */
static void missing_grants(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "r ws/sub", "w ws/sub/new", "w ws/new", "w out/new"), 0);
    ASK({"ws/new", 0, 0, 0, 0, 0}, {"ws/sub/new", 0, RO, RO, 0, RO}, {"out/new", 0, RO, RO, 0, RO},
        {"ws/new/.git", 0, 0, 0, 0, 0}, );
    assert_int_equal(BUILD(true, "w ws", "w ws/.agents/new", "w ws/sub/new"), 0);
    ASK({"ws/.agents/new", 0, RO, RO, 0, RO}, {"ws/sub", 0, 0, 0, 0, 0}, );
}

static void patterns(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws", "g ws **/*.env"), 0);
    ASK({"ws/a.env", NO, NO, 0, NO, NO}, {"ws/sub/b.env", NO, NO, 0, NO, NO},
        {"ws/new.env", NO, NO, 0, 0, NO}, {"ws/sub", 0, 0, 0, NO, 0}, {"ws/file", 0, 0, 0, 0, 0}, );
    /* Where a link with a denied name leads. */
    ASK({"ws/sub/deep", NO, NO, 0, NO, NO}, {"ws/sub/deep/x", NO, NO, NO, 0, NO}, );
}

static void nothing_but_what_is_granted(void **state) {
    (void)state;
    assert_int_equal(BUILD(false, "w ws", "d out"), 0);
    assert_true(access_may_is_unseen(&policy, at("out/file")));
    assert_false(access_may_is_unseen(&policy, at("elsewhere")));
    assert_true(access_may_is_hidden(&policy, at("elsewhere")));
    assert_true(access_may_is_hidden(&policy, at("out")));
    assert_false(access_may_is_hidden(&policy, at("ws/file")));
    ASK({"out/file", NO, NO, 0, NO, NO}, {"ws/file", 0, 0, 0, 0, 0}, );
}

static void refused(const char *text) {
    assert_non_null(strstr(fault.text, text));
}

static void links_in_writable_roots(void **state) {
    (void)state;
    assert_int_equal(symlink("../out", at("ws/link")), 0);
    assert_int_equal(BUILD(true, "w ws", "d ws/link/file"), -EINVAL);
    refused("crosses writable symlink");
    assert_int_equal(symlink("sub", at("ws/.git")), 0);
    assert_int_equal(BUILD(true, "w ws"), -EINVAL);
    refused("crosses writable symlink");
    assert_int_equal(BUILD(true, "r ws"), 0);
}

/* The directory that a .git file names is protected, wherever it is written. */
static void git_files(void **state) {
    (void)state;
    FILE *f = fopen(at("ws/.git"), "w");
    assert_non_null(f);
    fprintf(f, "gitdir: %s\n", at("ws/sub/deep"));
    fclose(f);
    assert_int_equal(BUILD(true, "w ws"), 0);
    ASK({"ws/.git", 0, RO, 0, RO, RO}, {"ws/sub/deep", 0, RO, 0, RO, RO},
        {"ws/sub/deep/config", 0, RO, RO, 0, RO}, {"ws/sub/x", 0, 0, 0, 0, 0}, );
}

static void private_places(void **state) {
    (void)state;
    assert_int_equal(BUILD(true, "w ws"), 0);
    struct access_query q = {.need = ACCESS_CHANGE, .path = "/dev/new"};
    assert_int_equal(access_may(&policy, &q), -RO);
    q.path = "/proc/self/comm";
    q.mode = S_IFREG;
    assert_int_equal(access_may(&policy, &q), -RO);
    q = (struct access_query){.need = ACCESS_CHANGE, .path = "/dev/null", .mode = S_IFCHR};
    assert_int_equal(access_may(&policy, &q), 0);
}

static bool is_readonly(void *arg) {
    (*(int *)arg)++;
    return true;
}

/* Where the mount refuses by itself, its word counts; not for a file that has its own mount. */
static void the_kernel_speaks_first(void **state) {
    (void)state;
    int asked = 0;
    assert_int_equal(BUILD(true, "w ws", "r ws/file"), 0);
    struct access_query q = {.need = ACCESS_CHANGE,
                             .path = at("out/file"),
                             .mode = S_IFREG,
                             .is_readonly = is_readonly,
                             .arg = &asked};
    assert_int_equal(access_may(&policy, &q), 0);
    assert_int_equal(asked, 1);
    q.path = at("ws/file");
    assert_int_equal(access_may(&policy, &q), -RO);
    q.path = at("ws/sub");
    assert_int_equal(access_may(&policy, &q), 0);
    assert_int_equal(asked, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(writable_root),
        TEST(protected_names_can_be_granted),
        TEST(denied),
        TEST(between_denied_and_granted),
        TEST(missing_paths),
        TEST(missing_grants),
        TEST(patterns),
        TEST(nothing_but_what_is_granted),
        TEST(links_in_writable_roots),
        TEST(git_files),
        TEST(private_places),
        TEST(the_kernel_speaks_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
