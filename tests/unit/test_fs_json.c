/* Results as JSON, and what a helper's bytes become. */
#include "files/fs_json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define FILE_MODE (S_IFREG | 04755)

static struct buf bytes, text;

static int set_up(void **state) {
    (void)state;
    bytes = BUF_INIT(4096);
    text = BUF_INIT(4096);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    buf_fini(&bytes);
    buf_fini(&text);
    return 0;
}

static void put(enum fs_item_kind kind, const char *name, const char *message) {
    const struct fs_item item = {kind, str_of(name), str_of(message)};
    assert_int_equal(fs_item_encode(&bytes, &item), 0);
}

static void expect(enum fs_call_op op, const char *want) {
    text.len = 0;
    assert_int_equal(fs_json_call(&text, op, buf_str(&bytes)), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, want);
}

static void refuse(enum fs_call_op op, struct str what) {
    text.len = 0;
    assert_int_equal(buf_putz(&text, "kept"), 0);
    assert_int_equal(fs_json_call(&text, op, what), -EINVAL);
    assert_int_equal(text.len, 4);
}

static void lists(void **state) {
    (void)state;
    expect(FS_CALL_LIST, "{\"entries\":[]}");
    expect(FS_CALL_WALK, "{\"entries\":[],\"errors\":[],\"truncated\":false}");
    put(FS_ITEM_FILE, "a\"b", "");
    put(FS_ITEM_DIR, "d", "");
    expect(FS_CALL_WALK, "{\"entries\":[{\"path\":\"a\\\"b\",\"kind\":\"file\"},"
                         "{\"path\":\"d\",\"kind\":\"directory\"}],"
                         "\"errors\":[],\"truncated\":false}");
    put(FS_ITEM_OTHER, "s", "");
    expect(FS_CALL_LIST,
           "{\"entries\":[{\"fileName\":\"a\\\"b\",\"isDirectory\":false,\"isFile\":true},"
           "{\"fileName\":\"d\",\"isDirectory\":true,\"isFile\":false},"
           "{\"fileName\":\"s\",\"isDirectory\":false,\"isFile\":false}]}");
    bytes.len = 0;
    put(FS_ITEM_ERROR, "e", "no \"way\"");
    put(FS_ITEM_ERROR, "f", "n");
    put(FS_ITEM_TRUNCATED, "", "");
    expect(FS_CALL_WALK, "{\"entries\":[],\"errors\":[{\"path\":\"e\",\"message\":"
                         "\"no \\\"way\\\"\"},{\"path\":\"f\",\"message\":\"n\"}],"
                         "\"truncated\":true}");
}

static void links(void **state) {
    (void)state;
    put(FS_ITEM_LINK, "l", "a\"b");
    put(FS_ITEM_LINK, "m", "\xFF");
    put(FS_ITEM_LINK, "n", "");
    expect(FS_CALL_WALK,
           "{\"entries\":[{\"path\":\"l\",\"kind\":\"symlink\",\"target\":\"a\\\"b\"},"
           "{\"path\":\"m\",\"kind\":\"symlink\",\"target\":\"\xEF\xBF\xBD\","
           "\"targetBase64\":\"/w==\"},{\"path\":\"n\",\"kind\":\"symlink\"}],"
           "\"errors\":[],\"truncated\":false}");
    refuse(FS_CALL_LIST, buf_str(&bytes));
    bytes.len = 0;
    const struct fs_item bad = {FS_ITEM_LINK, STR_LIT("l"), {"a\0b", 3}};
    assert_int_equal(fs_item_encode(&bytes, &bad), 0);
    refuse(FS_CALL_WALK, buf_str(&bytes));
}

/* A target is 1 to 4,095 bytes without a NUL; a buffer that is too small stays as it was. */
static void targets(void **state) {
    (void)state;
    static char longest[4096];
    memset(longest, '\xFE', sizeof longest);
    refuse(FS_CALL_READ_LINK, (struct str){"", 0});
    refuse(FS_CALL_READ_LINK, (struct str){"a\0", 2});
    refuse(FS_CALL_READ_LINK, (struct str){longest, sizeof longest});
    _cleanup_buf_ struct buf big = BUF_INIT(FS_RESULT_MAX), small = BUF_INIT(4200);
    struct str target = {longest, sizeof longest - 1};
    assert_int_equal(fs_json_call(&big, FS_CALL_READ_LINK, target), 0);
    assert_int_equal(buf_putz(&small, "kept"), 0);
    assert_int_equal(fs_json_target(&small, target), -ENOBUFS);
    assert_int_equal(small.len, 4);
    assert_int_equal(buf_put(&bytes, "../x", 4), 0);
    expect(FS_CALL_READ_LINK, "{\"target\":\"../x\"}");
}

/* Every part of an item, and every kind or text that it cannot have. */
static void bad_items(void **state) {
    (void)state;
    put(FS_ITEM_ERROR, "name", "message");
    for (size_t n = 1; n < bytes.len; n++)
        refuse(FS_CALL_WALK, (struct str){bytes.p, n});
    bytes.len = 0;
    put((enum fs_item_kind)(FS_ITEM_TRUNCATED + 1), "n", "");
    refuse(FS_CALL_LIST, buf_str(&bytes));
    static const struct {
        enum fs_call_op op;
        enum fs_item_kind kind;
    } strangers[] = {{FS_CALL_WALK, FS_ITEM_OTHER},
                     {FS_CALL_LIST, FS_ITEM_ERROR},
                     {FS_CALL_LIST, FS_ITEM_TRUNCATED}};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        bytes.len = 0;
        put(strangers[i].kind, "n", "");
        refuse(strangers[i].op, buf_str(&bytes));
    }
    static const char *const texts[][2] = {{"\xFF", ""}, {"n", "\xC3"}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bytes.len = 0;
        put(FS_ITEM_FILE, "good", "");
        put(FS_ITEM_ERROR, texts[i][0], texts[i][1]);
        refuse(FS_CALL_WALK, buf_str(&bytes));
    }
}

static void others(void **state) {
    (void)state;
    expect(FS_CALL_REMOVE, "{}");
    refuse(FS_CALL_REMOVE, STR_LIT("x"));
    refuse(FS_CALL_CANONICALIZE, STR_LIT(""));
    refuse(FS_CALL_CANONICALIZE, STR_LIT("a"));
    refuse(FS_CALL_CANONICALIZE, STR_LIT("/a\0b"));
    assert_int_equal(buf_putz(&bytes, "/a \xFF"), 0);
    expect(FS_CALL_CANONICALIZE, "{\"path\":\"file:///a%20%FF\"}");
    const struct fs_meta m = {.size = UINT64_MAX,
                              .created_ms = INT64_MIN,
                              .modified_ms = 1,
                              .mode = FILE_MODE,
                              .link = 7};
    bytes.len = 0;
    assert_int_equal(buf_put(&bytes, &m, sizeof m), 0);
    expect(FS_CALL_METADATA, "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":true,"
                             "\"size\":18446744073709551615,\"createdAtMs\":-9223372036854775808,"
                             "\"modifiedAtMs\":1,\"mode\":2541}");
    refuse(FS_CALL_METADATA, (struct str){bytes.p, bytes.len - 1});
    refuse(FS_CALL_METADATA, STR_LIT(""));
}

/* A text that does not fit leaves nothing behind. */
static void no_room(void **state) {
    (void)state;
    put(FS_ITEM_FILE, "a name of some length", "");
    for (size_t max = 4; max < 80; max++) {
        _cleanup_buf_ struct buf small = BUF_INIT(max);
        assert_int_equal(buf_putz(&small, "kept"), 0);
        int r = fs_json_call(&small, FS_CALL_LIST, buf_str(&bytes));
        assert_true(r == 0 ? small.len > 4 : r == -ENOBUFS && small.len == 4);
    }
}

#define JSON_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        JSON_TEST(lists),     JSON_TEST(links),  JSON_TEST(targets),
        JSON_TEST(bad_items), JSON_TEST(others), JSON_TEST(no_room),
    };
    return cmocka_run_group_tests_name("fs_json", tests, NULL, NULL);
}
