#include "process/denial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static uint64_t last_seq;

static void add(struct outlog *l, enum outlog_stream stream, const char *text) {
    assert_int_equal(outlog_append(l, ++last_seq, stream, text, strlen(text)), 0);
}

/* Whether `text`, on stdout in one piece, makes exit code 1 a denial. */
static bool denied(const char *text) {
    struct outlog l;
    outlog_init(&l, 1 << 20);
    add(&l, OUTLOG_STDOUT, text);
    bool r = denial_seen(&l, 1);
    outlog_fini(&l);
    return r;
}

static const char *const phrases[] = {
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
};

static void knows_the_phrases(void **state) {
    (void)state;
    char text[128];
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
        assert_true(denied(phrases[i]));
        snprintf(text, sizeof text, "sh: 1: cannot: %s\n", phrases[i]);
        assert_true(denied(text));
        for (size_t j = 0; phrases[i][j] != '\0'; j++) { /* less than all of it is nothing */
            snprintf(text, sizeof text, "%s", phrases[i]);
            text[j] = '_';
            assert_false(denied(text));
        }
    }
    assert_true(denied("touch: f: Read-Only File System"));
    assert_true(denied("PERMISSION DENIED"));
    assert_false(denied("read_only file system"));
    assert_false(denied("No such file or directory"));
}

static void falls_back_to_shorter_beginnings(void **state) {
    (void)state;
    assert_true(denied("sandbsandbox"));
    assert_true(denied("operation not pepermission denied"));
    assert_true(denied("seccoseccomp"));
    assert_true(denied("lanlandlock"));
    assert_true(denied("read-onlread-only file system"));
    assert_true(denied("failed to write failed to write file"));
    assert_false(denied("failed to write fil"));
}

static void exit_codes(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    assert_false(denial_seen(&l, 0));
    assert_false(denial_seen(&l, 1));
    assert_false(denial_seen(&l, 137));
    assert_true(denial_seen(&l, 159));
    add(&l, OUTLOG_STDERR, "permission denied");
    assert_false(denial_seen(&l, 0));
    assert_true(denial_seen(&l, 2));
    assert_true(denial_seen(&l, 126));
    assert_true(denial_seen(&l, 127));
    outlog_fini(&l);
}

static void pieces_and_streams(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    add(&l, OUTLOG_STDOUT, "permis");
    add(&l, OUTLOG_STDERR, "seccom");
    assert_false(denial_seen(&l, 1));
    add(&l, OUTLOG_STDOUT, "sion deni");
    add(&l, OUTLOG_STDERR, "-");
    assert_false(denial_seen(&l, 1));
    add(&l, OUTLOG_STDOUT, "ed");
    assert_true(denial_seen(&l, 1)); /* of one stream, the other in between */
    outlog_fini(&l);

    outlog_init(&l, 1 << 20);
    add(&l, OUTLOG_STDOUT, "permission ");
    add(&l, OUTLOG_STDERR, "denied");
    assert_true(denial_seen(&l, 1)); /* in the order of arrival */
    outlog_fini(&l);

    outlog_init(&l, 1 << 20);
    add(&l, OUTLOG_STDERR, "denied");
    add(&l, OUTLOG_STDOUT, "permission ");
    assert_false(denial_seen(&l, 1));
    outlog_fini(&l);
}

/* Against a plain search, over texts made of parts of phrases cut anywhere. */
static void agrees_with_a_plain_search(void **state) {
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char streams[2][512] = {"", ""}, all[1024] = "";
        struct outlog l;
        outlog_init(&l, 1 << 20);
        seed = seed * 1103515245 + 12345;
        for (unsigned i = 0; i < 2 + (seed >> 16) % 4; i++) {
            seed = seed * 1103515245 + 12345;
            const char *phrase = phrases[(seed >> 8) % ARRAY_LEN(phrases)];
            size_t from = (seed >> 16) % strlen(phrase);
            size_t n = (seed >> 16) % 3 == 0 ? strlen(phrase) - from : (seed >> 20) % 6 + 1;
            char piece[64];
            snprintf(piece, sizeof piece, "%.*s", (int)n, phrase + from);
            unsigned stream = (seed >> 24) & 1;
            strcat(streams[stream], piece);
            strcat(all, piece);
            add(&l, stream ? OUTLOG_STDERR : OUTLOG_STDOUT, piece);
        }
        bool expected = false;
        for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
            expected |= strstr(all, phrases[i]) || strstr(streams[0], phrases[i]) ||
                        strstr(streams[1], phrases[i]);
        if (denial_seen(&l, 1) != expected)
            fail_msg("`%s` / `%s` / `%s`: expected %d", all, streams[0], streams[1], expected);
        outlog_fini(&l);
    }
}

static void only_the_newest_counts(void **state) {
    (void)state;
    static char noise[OUTLOG_CHUNK_MAX + 1];
    struct outlog l;
    outlog_init(&l, 16 << 20);
    memset(noise, 'x', OUTLOG_CHUNK_MAX);
    add(&l, OUTLOG_STDERR, "permission denied");
    for (unsigned i = 0; i < DENIAL_SEARCH_MAX / OUTLOG_CHUNK_MAX - 1; i++)
        add(&l, OUTLOG_STDOUT, noise);
    assert_true(denial_seen(&l, 1));
    add(&l, OUTLOG_STDOUT, noise);
    assert_false(denial_seen(&l, 1));
    add(&l, OUTLOG_PTY, "sandbox");
    assert_true(denial_seen(&l, 1));
    outlog_fini(&l);
}

/* The ring of an outlog cuts chunks in two. */
static void a_chunk_that_wraps(void **state) {
    (void)state;
    char text[64];
    int wrapped = 0;
    struct outlog l;
    outlog_init(&l, OUTLOG_CAP_MIN);
    for (int i = 0; i < 20000; i++) {
        bool phrase = i % 2 == 1;
        snprintf(text, sizeof text, phrase ? "a permission denied z" : "noise %09d", i);
        add(&l, OUTLOG_STDOUT, text);
        struct str s[2];
        outlog_bytes(&l, outlog_at(&l, l.count - 1), s);
        if (!phrase || s[1].n == 0)
            continue;
        wrapped++;
        struct outlog only = l; /* nothing but this chunk */
        only.first = (l.first + l.count - 1) % l.chunks_cap;
        only.count = 1;
        assert_true(denial_seen(&only, 1));
    }
    assert_true(wrapped > 0);
    outlog_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_phrases),
        cmocka_unit_test(falls_back_to_shorter_beginnings),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(pieces_and_streams),
        cmocka_unit_test(agrees_with_a_plain_search),
        cmocka_unit_test(only_the_newest_counts),
        cmocka_unit_test(a_chunk_that_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
