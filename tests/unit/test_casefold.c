/* Names where case is ignored. */
#include "sandbox/policy/casefold.h"

#include "fs_run.h"

static void spellings(void **state) {
    (void)state;
    static const struct {
        const char *path, *dir;
        int inside;
    } cases[] = {
        {"/ws/.git", "/ws/.git", 2},
        {"/ws/.GIT", "/ws/.git", 2},
        {"/WS/.gIt/config", "/ws/.git", 1},
        {"/ws/.gitignore", "/ws/.git", 0},
        {"/ws/git", "/ws/.git", 0},
        {"/ws", "/ws/.git", 0},
        {"/ws/.git.", "/ws/.git", 2},
        {"/ws/.git. . ", "/ws/.git", 2},
        {"/ws/GIT~1", "/ws/.git", 2},
        {"/ws/git~12/x", "/ws/.git", 1},
        {"/ws/git~", "/ws/.git", 0},
        {"/ws/~1", "/ws/.git", 0},
        {"/ws/git~1a", "/ws/.git", 0},
        {"/ws/.g\xE2\x80\x8Cit", "/ws/.git", 2}, /* a joiner that shows nothing */
        {"/ws/.aw\xC5\xBF", "/ws/.aws", 2},      /* long s */
        {"/ws/\xE2\x84\xAA"
         "ey",
         "/ws/key", 2},                  /* Kelvin sign */
        {"/ws/.git\xFF", "/ws/.git", 2}, /* no character at all */
        {"/anything", "/", 1},
        {"/", "/", 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (casefold_inside(cases[i].path, cases[i].dir) != cases[i].inside)
            fail_msg("%s in %s", cases[i].path, cases[i].dir);
    }
}

static void other_case(void **state) {
    (void)state;
    char out[CASEFOLD_NAME_MAX + 1], longest[CASEFOLD_NAME_MAX + 2];
    assert_true(casefold_swap(".gIt-1@[`{", out));
    assert_string_equal(out, ".GiT-1@[`{");
    assert_false(casefold_swap("..1-2_", out));
    assert_false(casefold_swap("\xC3\xA9", out));
    memset(longest, 'a', sizeof longest);
    longest[CASEFOLD_NAME_MAX + 1] = '\0';
    assert_false(casefold_swap(longest, out));
    assert_true(casefold_swap(longest + 1, out));
}

/* The directories of the host that tests run in keep case. */
static void ordinary_directories(void **state) {
    (void)state;
    make_file("Name", "");
    assert_false(casefold_at(scratch));
    assert_false(casefold_at("/nonexistent"));
    assert_false(casefold_at(at("Name")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(spellings),
        scratch_test(other_case),
        scratch_test(ordinary_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
