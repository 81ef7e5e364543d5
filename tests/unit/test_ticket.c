#include "console/ticket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void a_token_is_good_once(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char token[TICKET_LEN + 1];
    ticket_issue(&t, TICKET_FOREVER, token);
    assert_int_equal(strlen(token), TICKET_LEN);
    assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789-_"),
                     TICKET_LEN);
    assert_true(ticket_redeem(&t, str_of(token), UINT64_MAX - 1));
    assert_false(ticket_redeem(&t, str_of(token), 0));
}

static void a_token_ends(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char token[TICKET_LEN + 1];
    ticket_issue(&t, 100, token);
    assert_false(ticket_redeem(&t, str_of(token), 100));
    assert_false(ticket_redeem(&t, str_of(token), 99)); /* it was tried, and is gone */
    ticket_issue(&t, 100, token);
    assert_true(ticket_redeem(&t, str_of(token), 99));
}

static void other_texts_are_none(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char token[TICKET_LEN + 1], other[TICKET_LEN + 1];
    assert_false(ticket_redeem(&t, STR_LIT(""), 0));
    assert_false(ticket_redeem(&t, (struct str){NULL, 0}, 0));
    ticket_issue(&t, TICKET_FOREVER, token);
    memcpy(other, token, sizeof token);
    for (size_t i = 0; i < TICKET_LEN; i++) {
        other[i] = token[i] == 'A' ? 'B' : 'A';
        assert_false(ticket_redeem(&t, str_of(other), 0));
        other[i] = token[i];
    }
    assert_false(ticket_redeem(&t, (struct str){token, TICKET_LEN - 1}, 0));
    assert_false(ticket_redeem(&t, (struct str){token, TICKET_LEN + 1}, 0));
    assert_true(ticket_redeem(&t, str_of(token), 0));
}

/* The one that ends first goes; that of the start is the last. */
static void tokens_have_a_maximum(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char first[TICKET_LEN + 1], token[3 * TICKET_TOKENS][TICKET_LEN + 1];
    ticket_issue(&t, TICKET_FOREVER, first);
    for (size_t i = 0; i < 3 * TICKET_TOKENS; i++)
        ticket_issue(&t, 1000 + i, token[i]);
    size_t good = 0;
    for (size_t i = 0; i < 3 * TICKET_TOKENS; i++) {
        bool known = ticket_redeem(&t, str_of(token[i]), 0);
        assert_int_equal(known, i >= 3 * TICKET_TOKENS - (TICKET_TOKENS - 1));
        good += known;
    }
    assert_int_equal(good, TICKET_TOKENS - 1);
    assert_true(ticket_redeem(&t, str_of(first), 0));
}

static void a_secret_lasts(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char secret[TICKET_SECRET_LEN + 1], token[TICKET_LEN + 1];
    int place = ticket_secret_new(&t, 1, secret);
    assert_true(place >= 0);
    assert_int_equal(strlen(secret), TICKET_SECRET_LEN);
    assert_int_equal(ticket_secret_use(&t, str_of(secret), 2), place);
    assert_int_equal(t.secrets[place].users, 2);
    ticket_secret_leave(&t, place);
    ticket_secret_leave(&t, place);
    assert_int_equal(ticket_secret_use(&t, str_of(secret), UINT64_MAX), place);
    secret[0] = secret[0] == 'A' ? 'B' : 'A';
    assert_int_equal(ticket_secret_use(&t, str_of(secret), 3), -ENOENT);
    assert_int_equal(ticket_secret_use(&t, STR_LIT(""), 3), -ENOENT);
    /* A token is no secret, nor the other way round. */
    ticket_issue(&t, TICKET_FOREVER, token);
    assert_int_equal(ticket_secret_use(&t, str_of(token), 3), -ENOENT);
    secret[0] = secret[0] == 'A' ? 'B' : 'A';
    assert_false(ticket_redeem(&t, str_of(secret), 3));
}

/* Those in use stay; of the others the one that was not used for longest goes. */
static void secrets_have_a_maximum(void **state) {
    (void)state;
    struct ticket_table t = {0};
    char secret[TICKET_SECRETS][TICKET_SECRET_LEN + 1], late[TICKET_SECRET_LEN + 1];
    int place[TICKET_SECRETS];
    for (size_t i = 0; i < TICKET_SECRETS; i++)
        place[i] = ticket_secret_new(&t, 100 - i, secret[i]);
    assert_int_equal(ticket_secret_new(&t, 200, late), -EBUSY);
    for (size_t i = 0; i < TICKET_SECRETS; i += 2)
        ticket_secret_leave(&t, place[i]);
    assert_true(ticket_secret_new(&t, 200, late) >= 0);
    for (size_t i = 0; i < TICKET_SECRETS; i++) {
        int want = i == TICKET_SECRETS - 2 ? -ENOENT : place[i]; /* the oldest without a user */
        assert_int_equal(ticket_secret_use(&t, str_of(secret[i]), 300), want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_once), cmocka_unit_test(a_token_ends),
        cmocka_unit_test(other_texts_are_none), cmocka_unit_test(tokens_have_a_maximum),
        cmocka_unit_test(a_secret_lasts),       cmocka_unit_test(secrets_have_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
