/* File calls and their answers as bytes. */
#include "fs/fs_call.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct fs_call full = {
    .op = FS_CALL_COPY,
    .path = "/a",
    .destination = "/b/c",
    .uri = "file:///a",
    .target = "\xFF/x",
    .links = true,
    .follow = true,
    .force = true,
    .prune_hidden = true,
    .max_depth = 1,
    .max_directories = UINT64_MAX,
    .max_entries = 3,
    .mode = 07777,
    .modified_ms = INT64_MIN,
};

static void test_round_trip(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(FS_CALL_BYTES_MAX);
    struct fs_call c;
    assert_int_equal(fs_call_encode(&full, &b), 0);
    assert_int_equal(fs_call_decode(buf_str(&b), &c), 0);
    assert_int_equal(c.op, FS_CALL_COPY);
    assert_string_equal(c.path, "/a");
    assert_string_equal(c.destination, "/b/c");
    assert_string_equal(c.uri, "file:///a");
    assert_string_equal(c.target, "\xFF/x");
    assert_true(c.follow && c.force && c.prune_hidden && c.links);
    assert_false(c.recursive || c.replace || c.follow_directory_links);
    assert_true(c.max_depth == 1 && c.max_directories == UINT64_MAX && c.max_entries == 3);
    assert_int_equal(c.mode, 07777);
    assert_true(c.modified_ms == INT64_MIN);
}

/* Every shorter text, and one with more behind it, is refused. */
static void test_cut(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(FS_CALL_BYTES_MAX);
    struct fs_call c;
    assert_int_equal(fs_call_encode(&full, &b), 0);
    for (size_t n = 0; n < b.len; n++)
        assert_int_equal(fs_call_decode((struct str){b.p, n}, &c), -EINVAL);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_int_equal(fs_call_decode(buf_str(&b), &c), -EINVAL);
}

static void refuse(struct fs_call c) {
    _cleanup_buf_ struct buf b = BUF_INIT(FS_CALL_BYTES_MAX);
    assert_int_equal(fs_call_encode(&c, &b), 0);
    assert_int_equal(fs_call_decode(buf_str(&b), &c), -EINVAL);
}

static void test_bad_calls(void **state) {
    (void)state;
    refuse((struct fs_call){.op = (enum fs_call_op)FS_CALL_OPS, .path = "/a"});
    refuse((struct fs_call){.op = FS_CALL_READ});
    refuse((struct fs_call){.op = FS_CALL_READ, .path = "a"});
    refuse((struct fs_call){.op = FS_CALL_RENAME, .path = "/a"});
    refuse((struct fs_call){.op = FS_CALL_SYMLINK, .path = "/a"});
    refuse((struct fs_call){.op = FS_CALL_CHMOD, .path = "/a", .mode = 010000});
}

static void test_too_long(void **state) {
    (void)state;
    static char path[FS_CALL_BYTES_MAX];
    _cleanup_buf_ struct buf b = BUF_INIT(2 * FS_CALL_BYTES_MAX);
    memset(path, '/', sizeof path - 1);
    const struct fs_call c = {.op = FS_CALL_READ, .path = path};
    assert_int_equal(fs_call_encode(&c, &b), -ENAMETOOLONG);
    assert_int_equal(b.len, 0);
}

/* -- answers -- */

static int decode(struct fs_call_head head, const char *text, bool file,
                  struct fs_call_answer *out) {
    static char packet[256];
    size_t n = strlen(text);
    memcpy(packet, &head, sizeof head);
    memcpy(packet + sizeof head, text, n);
    return fs_call_answer_decode((struct str){packet, sizeof head + n}, file, out);
}

static struct fs_call_head head_of(uint32_t kind) {
    return (struct fs_call_head){.magic = FS_CALL_MAGIC, .kind = kind};
}

static void test_answers(void **state) {
    (void)state;
    struct fs_call_answer a;
    struct fs_call_head error = {
        .magic = FS_CALL_MAGIC, .kind = FS_CALL_ERROR, .code = -32004, .error = ENOENT};
    assert_int_equal(decode(error, "no such file", false, &a), 0);
    assert_true(a.kind == FS_CALL_ERROR && a.code == -32004 && a.error == ENOENT);
    assert_true(str_eqz(a.text, "no such file"));
    assert_int_equal(decode(head_of(FS_CALL_INLINE), "", false, &a), 0);
    assert_int_equal(decode(head_of(FS_CALL_INLINE), "bytes\xFF", false, &a), 0);
    assert_true(a.kind == FS_CALL_INLINE && str_eqz(a.text, "bytes\xFF"));
    assert_int_equal(decode(head_of(FS_CALL_MEMFD), "", true, &a), 0);
    assert_int_equal(a.kind, FS_CALL_MEMFD);
    assert_int_equal(decode(head_of(FS_CALL_FILE), "", true, &a), 0);
    assert_int_equal(a.kind, FS_CALL_FILE);
}

/* What could break the text or the errno of our own answer. */
static void test_bad_answers(void **state) {
    (void)state;
    struct fs_call_answer a;
    static const struct fs_call_head errors[] = {
        {FS_CALL_MAGIC, FS_CALL_ERROR, -32004, 0},
        {FS_CALL_MAGIC, FS_CALL_ERROR, -32004, -2},
        {FS_CALL_MAGIC, FS_CALL_ERROR, -32004, 4096},
        {FS_CALL_MAGIC, FS_CALL_ERROR, 0, ENOENT},
        {FS_CALL_MAGIC, FS_CALL_ERROR, -1, ENOENT},
        {FS_CALL_MAGIC, FS_CALL_ERROR, 32004, ENOENT},
        {FS_CALL_MAGIC, FS_CALL_ERROR, INT32_MIN, 2},
        {FS_CALL_MAGIC, FS_CALL_ERROR, 2, INT32_MIN},
        {FS_CALL_MAGIC, 4, -32004, ENOENT},
        {FS_CALL_MAGIC, UINT32_MAX, -32004, ENOENT},
        {FS_CALL_MAGIC + 1, FS_CALL_INLINE, 0, ENOENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        assert_int_equal(decode(errors[i], "", false, &a), -EINVAL);
    struct fs_call_head error = {FS_CALL_MAGIC, FS_CALL_ERROR, -32004, ENOENT};
    assert_int_equal(decode(error, "\xFF", false, &a), -EINVAL);
    assert_int_equal(decode(error, "", true, &a), -EINVAL);
    assert_int_equal(decode(head_of(FS_CALL_INLINE), "", true, &a), -EINVAL);
    assert_int_equal(decode(head_of(FS_CALL_FILE), "", false, &a), -EINVAL);
    assert_int_equal(decode(head_of(FS_CALL_FILE), "x", true, &a), -EINVAL);
    assert_int_equal(decode(head_of(FS_CALL_MEMFD), "", false, &a), -EINVAL);
    for (size_t n = 0; n < sizeof error; n++)
        assert_int_equal(fs_call_answer_decode((struct str){(char *)&error, n}, false, &a),
                         -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_bad_calls),  cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_answers),    cmocka_unit_test(test_bad_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
