#include "net/tokens.h"

#include "base/util.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define DIGEST "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* of "hello" */

static const char *name_of(const struct tokens *t, const char *token) {
    uint8_t digest[32];
    crypto_hash_sha256(digest, (const unsigned char *)token, strlen(token));
    return tokens_find(t, digest);
}

static void expect_error(const char *text, const char *want) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct tokens *t = NULL;
    assert_int_equal(tokens_parse(str_of(text), &t, &e), -EINVAL);
    if (strncmp(err_msg(&e), want, strlen(want)) != 0)
        fail_msg("%s", err_msg(&e));
    assert_null(strstr(err_msg(&e), "sekret"));
}

/* Old and new token of one name are valid at once. */
static void several(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_free_ struct tokens *t = NULL;
    static const char text[] = "# rotation of ci\n\nci  old-one\r\n\tci\tnew-one  \n"
                               "laptop.of-ann_2 sha256:" DIGEST;
    assert_int_equal(tokens_parse(STR_LIT(text), &t, &e), 0);
    assert_int_equal(t->count, 3);
    assert_string_equal(name_of(t, "old-one"), "ci");
    assert_string_equal(name_of(t, "new-one"), "ci");
    assert_string_equal(name_of(t, "hello"), "laptop.of-ann_2");
    assert_null(name_of(t, "old-on"));
    assert_null(name_of(t, "ci"));
    assert_null(name_of(t, ""));
}

static void errors(void **state) {
    (void)state;
    char many[TOKENS_MAX * 16 + 64] = "", name[TOKENS_NAME_MAX + 16];
    expect_error("", "no token: add a line");
    expect_error("# nothing\n \n", "no token: add a line");
    expect_error("sekret\n", "line 1: expected `NAME TOKEN`");
    expect_error("a b\nsekret", "line 2: expected `NAME TOKEN`");
    expect_error("a/b sekret", "line 1: expected `NAME TOKEN`");
    expect_error("a sekret more", "line 1: a token is one word");
    expect_error("a sekr\xC3\xA9t", "line 1: a token is one word");
    expect_error("a sha256:sekret", "line 1: `sha256:` wants 64 hexadecimal digits");
    expect_error("a sekret\n\nb sekret", "line 3: the token is in the file twice");
    for (int i = 0; i <= TOKENS_MAX; i++)
        sprintf(many + strlen(many), "a sekret%d\n", i);
    expect_error(many, "line 65: more than 64 tokens");
    memset(name, 'n', sizeof name);
    strcpy(name + TOKENS_NAME_MAX + 1, " sekret");
    expect_error(name, "line 1: expected");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(several), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
