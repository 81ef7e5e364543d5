#include "sandbox/policy/glob.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

static bool matches(const char *pattern, const char *path) {
    struct glob_set s = {0};
    const char *why = NULL;
    assert_int_equal(glob_add(&s, pattern, &why), 0);
    int r = glob_run_match(&s, path);
    assert_true(r == 0 || r == 1);
    glob_set_fini(&s);
    return r != 0;
}

static void patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool match;
    } cases[] = {
        /* without a slash: at every depth */
        {"*.env", "a.env", true},
        {"*.env", ".env", true},
        {"*.env", "x/y/a.env", true},
        {"*.env", "a.env/x", false},
        {"*.env", "A.ENV", false},
        {"name", "x/name", true},
        {"name", "name/x", false},
        /* with one: from the directory on */
        {"sub/*.env", "sub/a.env", true},
        {"sub/*.env", "x/sub/a.env", false},
        {"sub/*.env", "sub/x/a.env", false},
        {"*/c", "a/c", true},
        {"*/c", "a/b/c", false},
        /* any number of directories */
        {"**/*.env", "a.env", true},
        {"**/*.env", "x/y/a.env", true},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a/**/b", "ab", false},
        {"a/**", "a/x", true},
        {"a/**", "a/x/y", true},
        {"a/**", "a", false},
        {"**", "x/y", true},
        {"a**b/c", "axxb/c", true},
        {"a**b/c", "ax/xb/c", false},
        {"**a/c", "xa/c", true},
        {"***/c", "a/c", true},
        {"***/c", "a/b/c", false},
        /* characters */
        {"?.x", "a.x", true},
        {"?.x", ".x", false},
        {"?.x", "\xC3\xA4.x", true},
        {"?.x", "\xFF.x", true},
        {"??.x", "\xC3\xA4.x", false},
        {"a?/b", "a//b", false},
        {"[ab]x", "bx", true},
        {"[ab]x", "cx", false},
        {"[!ab]x", "cx", true},
        {"[!ab]x", "ax", false},
        {"[^ab]x", "cx", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[-a]x", "-x", true},
        {"[a-]x", "-x", true},
        {"[]a]x", "]x", true},
        {"[!]a]x", "]x", false},
        {"[\xC3\xA4-\xC3\xB6]", "\xC3\xA5", true},
        {"a[!b]c/d", "a/c/d", false},
        {"[br", "[br", true},
        {"x/[b/c]", "x/[b/c]", true},
        {"\\*.env", "*.env", true},
        {"\\*.env", "a.env", false},
        {"!a*", "!ab", true},
        {"!a*", "b", false},
        /* alternatives */
        {"*.{env,pem}", "a.pem", true},
        {"*.{env,pem}", "a.txt", false},
        {"{a,b/c}", "b/c", true},
        {"{a,b/c}", "x/b/c", false},
        {"{a,{b,c}d}e", "cde", true},
        {"{a,{b,c}d}e", "ce", false},
        {"{,x}a", "a", true},
        {"a{b,}", "a", true},
        {"a,b", "a,b", true},
        {"{**/x,y}/z", "q/x/z", true},
        {"", "", true},
        {"", "a", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (matches(cases[i].pattern, cases[i].path) != cases[i].match)
            fail_msg("%s on %s", cases[i].pattern, cases[i].path);
    }
}

static void malformed_patterns(void **state) {
    (void)state;
    static const char *const bad[] = {"*{a",   "{a,{b}", "a}",
                                      "[z-a]", "x\\",    "{{{{{{{{{{{{{{{{{a}}}}}}}}}}}}}}}}}"};
    struct glob_set s = {0};
    const char *why = NULL;
    assert_int_equal(glob_add(&s, "*.good", &why), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        why = NULL;
        assert_int_equal(glob_add(&s, bad[i], &why), -EINVAL);
        assert_non_null(why);
    }
    /* They have left nothing behind. */
    assert_int_equal(glob_run_match(&s, "a.good"), 1);
    assert_int_equal(glob_run_match(&s, "a"), 0);
    glob_set_fini(&s);
}

static void a_set_matches_when_one_does(void **state) {
    (void)state;
    struct glob_set s = {0};
    const char *why = NULL;
    assert_int_equal(glob_run_match(&s, "a"), 0);
    assert_int_equal(glob_add(&s, "*.a", &why), 0);
    assert_int_equal(glob_add(&s, "d/*.b", &why), 0);
    assert_int_equal(glob_run_match(&s, "x.a"), 1);
    assert_int_equal(glob_run_match(&s, "d/x.b"), 1);
    assert_int_equal(glob_run_match(&s, "x.b"), 0);
    glob_set_fini(&s);
}

static void patterns_have_a_maximum(void **state) {
    (void)state;
    static char pattern[GLOB_PATTERN_MAX + 2];
    memset(pattern, 'a', GLOB_PATTERN_MAX);
    struct glob_set s = {0};
    const char *why = NULL;
    assert_int_equal(glob_add(&s, pattern, &why), 0);
    assert_int_equal(glob_run_match(&s, pattern), 1);
    assert_int_equal(glob_add(&s, "a", &why), -EINVAL);
    glob_set_fini(&s);
    pattern[GLOB_PATTERN_MAX] = 'a';
    assert_int_equal(glob_add(&s, pattern, &why), -EINVAL);
    glob_set_fini(&s);
}

/* What takes a backtracking matcher for ever: here the work is bounded by the two lengths. */
static void hostile_patterns_end(void **state) {
    (void)state;
    char name[256] = {0};
    memset(name, 'a', 255);
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
    assert_false(matches("{a*,a*}{a*,a*}{a*,a*}{a*,a*}{a*,a*}{a*,a*}{a*,a*}{a*,a*}b", name));
    assert_false(matches("**/**/**/**/**/**/**/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"));
}

/* -- expansion -- */

static char dir[] = "/tmp/test-glob-XXXXXX";

static void make(const char *name, char kind) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int r = kind == 'd'   ? mkdir(path, 0755)
            : kind == 'l' ? symlink("sub", path)
                          : mknod(path, (kind == 'p' ? S_IFIFO : S_IFREG) | 0644, 0);
    assert_int_equal(r, 0);
}

static int set_up(void **state) {
    (void)state;
    assert_non_null(mkdtemp(dir));
    make("a.env", 'f');
    make("b.txt", 'f');
    make("link.env", 'l');
    make("pipe.env", 'p');
    make("sub", 'd');
    make("sub/c.env", 'f');
    make("sub/deep", 'd');
    make("sub/deep/d.env", 'f');
    make("sub.env", 'd');
    make("sub.env/x", 'f');
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

struct found {
    size_t count, links;
    char last[512];
    int answer;
    size_t entered;
    const char *leave_out;
};

static int on_found(void *arg, const struct glob_run_match *m) {
    struct found *f = arg;
    struct stat at, by_path;
    assert_memory_equal(m->path, dir, strlen(dir));
    assert_false(m->unlistable);
    assert_int_equal(fstatat(m->dir, m->name, &at, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(lstat(m->path, &by_path), 0);
    assert_int_equal(at.st_ino, by_path.st_ino);
    f->count++;
    f->links += m->is_link;
    snprintf(f->last, sizeof f->last, "%s", m->path + strlen(dir) + 1);
    return f->answer;
}

/* Counts directories, and leaves one out. */
static int on_enter(void *arg, int fd, const char *path) {
    struct found *f = arg;
    struct stat at, by_path;
    assert_int_equal(fstat(fd, &at), 0);
    assert_int_equal(lstat(path, &by_path), 0);
    assert_int_equal(at.st_ino, by_path.st_ino);
    f->entered++;
    return f->leave_out != NULL && strcmp(path + strlen(dir), f->leave_out) == 0;
}

static int expand_below(const char *pattern, const char *below, uint32_t depth, size_t budget,
                        struct found *f) {
    struct glob_set s = {0};
    const char *why = NULL;
    assert_int_equal(glob_add(&s, pattern, &why), 0);
    const struct glob_visit v = {depth, &budget, on_found, on_enter, f};
    int r = glob_expand(&s, dir, below, &v);
    glob_set_fini(&s);
    return r;
}

static int expand(const char *pattern, uint32_t depth, size_t budget, struct found *f) {
    return expand_below(pattern, NULL, depth, budget, f);
}

static void finds_files_and_links(void **state) {
    (void)state;
    struct found f = {0};
    assert_int_equal(expand("*.env", 0, 100, &f), 0);
    assert_int_equal(f.count, 5); /* a, link, pipe, sub/c, sub/deep/d: no directory */
    assert_int_equal(f.links, 1);
    f = (struct found){0};
    assert_int_equal(expand("sub/**", 0, 100, &f), 0);
    assert_int_equal(f.count, 2);
    f = (struct found){0};
    assert_int_equal(expand("sub*", 0, 100, &f), 0);
    assert_int_equal(f.count, 0);
    f = (struct found){0};
    assert_int_equal(expand("link.env/*", 0, 100, &f), 0); /* links are not entered */
    assert_int_equal(f.count, 0);
}

static void depth_is_limited(void **state) {
    (void)state;
    static const size_t expected[] = {5, 3, 4, 5, 5};
    for (uint32_t depth = 0; depth < ARRAY_LEN(expected); depth++) {
        struct found f = {0};
        assert_int_equal(expand("**/*.env", depth, 100, &f), 0);
        assert_int_equal(f.count, expected[depth]);
    }
}

static void expansion_ends_early(void **state) {
    (void)state;
    struct found f = {.answer = -EPIPE};
    assert_int_equal(expand("*.env", 0, 100, &f), -EPIPE);
    assert_int_equal(f.count, 1);
    f = (struct found){.answer = 7};
    assert_int_equal(expand("*.env", 0, 100, &f), 7);
    f = (struct found){0};
    assert_int_equal(expand("*.env", 0, 3, &f), -E2BIG);
    f = (struct found){0};
    /* What cannot match is not walked. */
    assert_int_equal(expand("nope/*.env", 0, 7, &f), 0);
}

/* One directory alone gives what the whole gives of it. */
static void only_one_directory(void **state) {
    (void)state;
    struct found f = {0};
    assert_int_equal(expand_below("*.env", "sub", 0, 100, &f), 0);
    assert_int_equal(f.count, 2); /* c, deep/d */
    assert_int_equal(f.entered, 2);
    f = (struct found){.leave_out = "/sub/deep"};
    assert_int_equal(expand_below("*.env", "sub", 0, 100, &f), 0);
    assert_int_equal(f.count, 1);
    f = (struct found){0};
    assert_int_equal(expand_below("**/*.env", "sub/deep", 3, 100, &f), 0);
    assert_int_equal(f.count, 1);
    f = (struct found){0};
    assert_int_equal(expand_below("**/*.env", "sub/deep", 2, 100, &f), 0);
    assert_int_equal(f.count, 0);
    assert_int_equal(expand_below("other/*.env", "sub", 0, 100, &f), 0);
    assert_int_equal(expand_below("*.env", "sub/gone", 0, 100, &f), 0);
    assert_int_equal(f.count, 0);
}

static void missing_directory(void **state) {
    (void)state;
    struct glob_set s = {0};
    const char *why = NULL;
    size_t budget = 10;
    struct found f = {0};
    assert_int_equal(glob_add(&s, "*", &why), 0);
    const struct glob_visit v = {0, &budget, on_found, NULL, &f};
    assert_int_equal(glob_expand(&s, "/nonexistent", NULL, &v), 0);
    assert_int_equal(f.count, 0);
    glob_set_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(malformed_patterns),
        cmocka_unit_test(a_set_matches_when_one_does),
        cmocka_unit_test(patterns_have_a_maximum),
        cmocka_unit_test(hostile_patterns_end),
        cmocka_unit_test(finds_files_and_links),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(expansion_ends_early),
        cmocka_unit_test(only_one_directory),
        cmocka_unit_test(missing_directory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
