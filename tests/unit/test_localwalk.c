#include "client/localwalk.h"

#include "local_run.h"

#include <dirent.h>

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Everything that a walk of "." tells, sorted: what, name, kind. */
static void expect(bool follow, const char *const *lines, size_t n) {
    struct localwalk *w = localwalk_new(local_open("."), follow);
    struct localwalk_item i;
    char *got[64];
    size_t count = 0;
    for (;;) {
        assert_int_equal(localwalk_next(w, &i), 0);
        if (i.what == LOCALWALK_END)
            break;
        if (i.what == LOCALWALK_FAULT)
            assert_true(asprintf(&got[count++], "! %s %d", i.name, i.error) > 0);
        else
            assert_true(asprintf(&got[count++], "%c %s %c%s", i.what == LOCALWALK_LEAVE ? '<' : '>',
                                 i.name,
                                 S_ISDIR(i.st.st_mode)   ? 'd'
                                 : S_ISLNK(i.st.st_mode) ? 'l'
                                 : S_ISREG(i.st.st_mode) ? 'f'
                                                         : 'o',
                                 i.is_link ? "@" : "") > 0);
    }
    assert_int_equal(localwalk_next(w, &i), 0);
    assert_int_equal(i.what, LOCALWALK_END);
    localwalk_free(w);
    qsort(got, count, sizeof(got[0]), by_text);
    assert_int_equal(count, n);
    for (size_t j = 0; j < n; j++) {
        assert_string_equal(got[j], lines[j]);
        free(got[j]);
    }
}

static void trees(void **state) {
    (void)state;
    mkdir("a", 0700);
    mkdir("a/b", 0700);
    mkdir("empty", 0700);
    local_file("a/b/f\xff", "");
    assert_int_equal(symlink("a", "dir"), 0);
    assert_int_equal(symlink("a/b/f\xff", "file"), 0);
    assert_int_equal(symlink("nothing", "dangling"), 0);
    mkfifo("fifo", 0600);
    static const char *const plain[] = {
        "<  d",      "< a d",    "< a/b d",       "< empty d",     ">  d",
        "> a d",     "> a/b d",  "> a/b/f\xff f", "> dangling l@", "> dir l@",
        "> empty d", "> fifo o", "> file l@",
    };
    expect(false, plain, sizeof(plain) / sizeof(plain[0]));
    static const char *const followed[] = {
        "! dangling 2",  "<  d",      "< a d",     "< a/b d",         "< dir d@",
        "< dir/b d",     "< empty d", ">  d",      "> a d",           "> a/b d",
        "> a/b/f\xff f", "> dir d@",  "> dir/b d", "> dir/b/f\xff f", "> empty d",
        "> fifo o",      "> file f@",
    };
    expect(true, followed, sizeof(followed) / sizeof(followed[0]));
}

static void loops(void **state) {
    (void)state;
    mkdir("a", 0700);
    assert_int_equal(symlink("..", "a/up"), 0);
    assert_int_equal(symlink(".", "a/self"), 0);
    assert_int_equal(symlink("round", "round"), 0);
    char self[32], up[32], round[32];
    snprintf(self, sizeof(self), "! a/self %d", ELOOP);
    snprintf(up, sizeof(up), "! a/up %d", ELOOP);
    snprintf(round, sizeof(round), "! round %d", ELOOP);
    const char *const lines[] = {self,   up,      round,         "<  d",     "< a d",
                                 ">  d", "> a d", "> a/self d@", "> a/up d@"};
    expect(true, lines, sizeof(lines) / sizeof(lines[0]));
}

static int descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void too_deep(void **state) {
    (void)state;
    int before = descriptors();
    for (int i = 0; i < LOCALWALK_DEPTH_MAX + 3; i++) {
        assert_int_equal(mkdir("d", 0700), 0);
        assert_int_equal(chdir("d"), 0);
    }
    assert_int_equal(chdir(local_root), 0);
    struct localwalk *w = localwalk_new(local_open("."), false);
    struct localwalk_item i;
    int faults = 0, entries = 0;
    do {
        assert_int_equal(localwalk_next(w, &i), 0);
        faults += i.what == LOCALWALK_FAULT;
        entries += i.what == LOCALWALK_ENTRY;
        assert_true(i.what != LOCALWALK_FAULT || i.error == EMFILE);
    } while (i.what != LOCALWALK_END);
    assert_int_equal(faults, 1);
    assert_int_equal(entries, LOCALWALK_DEPTH_MAX + 1);
    localwalk_free(w);
    assert_int_equal(descriptors(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trees, local_setup, local_teardown),
        cmocka_unit_test_setup_teardown(loops, local_setup, local_teardown),
        cmocka_unit_test_setup_teardown(too_deep, local_setup, local_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
