#include "fs/fs_dir.h"

#include "base/utf8.h"
#define MANY_FILES
#include "fs_json_run.h"
#include "fs_run.h"
#include "json/json.h"

#include <limits.h>
#include <signal.h>

static atomic_bool never, always = true;

/* The listing of a directory as parsed JSON. */
struct listing {
    struct buf text;
    struct json_doc doc;
};

static const struct json_node *list_path(struct listing *l, const char *path) {
    struct err e = ERR_INIT;
    *l = (struct listing){.text = BUF_INIT(FS_RESULT_MAX)};
    json_doc_init(&l->doc, FS_RESULT_MAX, 1);
    if (json_dir(path, &never, &l->text, &e) < 0)
        fail_msg("%s: %d %s", path, e.code, err_msg(&e));
    assert_int_equal(e.code, 0);
    assert_true(utf8_valid(l->text.p, l->text.len));
    assert_int_equal(json_parse(&l->doc, l->text.p, l->text.len, &e), 0);
    const struct json_node *root = json_root(&l->doc);
    assert_int_equal(root->count, 1);
    const struct json_node *entries = json_get(root, "entries");
    assert_non_null(entries);
    return entries;
}

static void list_fini(struct listing *l) {
    buf_fini(&l->text);
    json_doc_fini(&l->doc);
}

/* How often an entry is listed with these flags; it must not be listed with others. */
static size_t listed(const struct json_node *entries, const char *name, bool dir, bool file) {
    size_t n = 0;
    json_for_each(v, entries) {
        assert_int_equal(v->count, 3);
        if (!str_eqz(json_str(json_get(v, "fileName")), name))
            continue;
        n++;
        assert_int_equal(json_get(v, "isDirectory")->type, dir ? JSON_TRUE : JSON_FALSE);
        assert_int_equal(json_get(v, "isFile")->type, file ? JSON_TRUE : JSON_FALSE);
    }
    return n;
}

static void exact_text(void **state) {
    (void)state;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    make_dir("d");
    assert_int_equal(buf_putz(&b, "before"), 0);
    assert_int_equal(json_dir(at("d"), &never, &b, &e), 0);
    assert_int_equal(b.len, strlen("before{\"entries\":[]}"));
    assert_memory_equal(b.p, "before{\"entries\":[]}", b.len);
    make_file("d/one", "");
    b.len = 0;
    assert_int_equal(json_dir(at("d"), &never, &b, &e), 0);
    const char *want =
        "{\"entries\":[{\"fileName\":\"one\",\"isDirectory\":false,\"isFile\":true}]}";
    assert_int_equal(b.len, strlen(want));
    assert_memory_equal(b.p, want, b.len);
    buf_fini(&b);
}

static void kinds(void **state) {
    (void)state;
    make_tree();
    make_file(".hidden", "");
    make_link("fifo", "to-fifo");
    make_link("dlink", "to-link");
    struct listing l;
    const struct json_node *entries = list_path(&l, scratch);
    assert_int_equal(listed(entries, "file", false, true), 1);
    assert_int_equal(listed(entries, "dir", true, false), 1);
    assert_int_equal(listed(entries, "flink", false, true), 1);
    assert_int_equal(listed(entries, "dlink", true, false), 1);
    assert_int_equal(listed(entries, "to-link", true, false), 1);
    assert_int_equal(listed(entries, "to-fifo", false, false), 1);
    assert_int_equal(listed(entries, "fifo", false, false), 1);
    assert_int_equal(listed(entries, "socket", false, false), 1);
    assert_int_equal(listed(entries, ".hidden", false, true), 1);
    assert_int_equal(entries->count, 9); /* neither dangling nor loop */
    list_fini(&l);
}

static void odd_names(void **state) {
    (void)state;
    static const char *const names[] = {"q\"uote",      "back\\slash", "new\nline", "\x01", "\x7F",
                                        "\xC3\xBC\x6E", "%41",         " ",         "..."};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_file(names[i], "");
    make_file("n\xFF", "");
    make_dir("n\xFE");
    make_file("cut\xE2\x82", "");
    char longest[256], bad[256], shown[3 * 255 + 1] = "";
    memset(longest, 'x', 255);
    memset(bad, '\xFF', 255);
    longest[255] = bad[255] = '\0';
    for (size_t i = 0; i < 255; i++)
        strcat(shown, "\xEF\xBF\xBD");
    make_file(longest, "");
    make_file(bad, "");
    struct listing l;
    const struct json_node *entries = list_path(&l, scratch);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(listed(entries, names[i], false, true), 1);
    assert_int_equal(listed(entries, longest, false, true), 1);
    assert_int_equal(listed(entries, shown, false, true), 1);
    assert_int_equal(listed(entries, "cut\xEF\xBF\xBD", false, true), 1);
    size_t same = 0; /* one is a file, one a directory */
    json_for_each(v, entries) same +=
        str_eqz(json_str(json_get(v, "fileName")), "n\xEF\xBF\xBD") ? 1 : 0;
    assert_int_equal(same, 2);
    assert_int_equal(entries->count, ARRAY_LEN(names) + 5);
    list_fini(&l);
}

static void failures(void **state) {
    (void)state;
    make_tree();
    static const struct {
        const char *name;
        int num;
    } cases[] = {
        {"file", ENOTDIR}, {"flink", ENOTDIR},   {"fifo", ENOTDIR},      {"socket", ENOTDIR},
        {"nope", ENOENT},  {"dangling", ENOENT}, {"nope/x", ENOENT},     {"file/x", ENOTDIR},
        {"loop", ELOOP},   {"loop/x", ELOOP},    {"dangling/x", ENOENT},
    };
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int code = cases[i].num == ENOENT ? -32004 : -32603;
        fails_os(json_dir(at(cases[i].name), &never, &b, &e), &e, code, cases[i].num, cases[i].name,
                 __LINE__);
    }
    char name[300];
    memset(name, 'n', 256);
    name[256] = '\0';
    FAILS_OS(json_dir(at(name), &never, &b, &e), &e, -32603, ENAMETOOLONG);
    assert_int_equal(b.len, 0);
    assert_int_equal(json_dir(at("dlink"), &never, &b, &e), 0);
    assert_true(b.len > 0);
    buf_fini(&b);
}

/* `n` files, named so that a second call adds to the first. */
static void make_many(const char *dir, size_t from, size_t n) {
    int fd = open(at(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = from; i < from + n; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%zu", i);
        assert_int_equal(mknodat(fd, name, S_IFREG | 0644, 0), 0);
    }
    close(fd);
}

static void limit(void **state) {
    (void)state;
    make_dir("d");
    make_many("d", 0, FS_ENTRIES_MAX);
    make_link("nothing", "d/dangling"); /* not counted */
    struct listing l;
    assert_int_equal(list_path(&l, at("d"))->count, FS_ENTRIES_MAX);
    list_fini(&l);

    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    make_many("d", FS_ENTRIES_MAX, 1);
    FAILS(json_dir(at("d"), &never, &b, &e), &e, -32603,
          "fs/readDirectory returned 50001 entries; limit is 50000");
    assert_int_equal(b.len, 0);
    make_many("d", FS_ENTRIES_MAX + 1, 1999);
    FAILS(json_dir(at("d"), &never, &b, &e), &e, -32603,
          "fs/readDirectory returned 52000 entries; limit is 50000");
    buf_fini(&b);
}

static void result_too_large(void **state) {
    (void)state;
    struct buf b = BUF_INIT(4096);
    struct err e = ERR_INIT;
    make_many("", 0, 200);
    assert_int_equal(buf_putz(&b, "kept"), 0);
    FAILS(json_dir(scratch, &never, &b, &e), &e, -32603,
          "fs/readDirectory result exceeds 50331648 bytes");
    assert_int_equal(b.len, 4);
    buf_fini(&b);
}

static void stops(void **state) {
    (void)state;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    make_file("f", "");
    FAILS_OS(json_dir(scratch, &always, &b, &e), &e, -32603, ECANCELED);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

/* Links whose path is longer than any path can be are left out, as links that lead nowhere. */
static void long_paths(void **state) {
    (void)state;
    char path[PATH_MAX + 300];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", scratch);
    while (n < PATH_MAX - 215) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/%0200d", 0);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[256];
    memset(name, 'l', 255);
    name[255] = '\0';
    assert_int_equal(symlinkat("/", fd, name), 0);
    assert_int_equal(symlinkat("/", fd, "l"), 0);
    name[0] = 'f';
    assert_int_equal(mknodat(fd, name, S_IFREG | 0644, 0), 0);
    struct listing l;
    const struct json_node *entries = list_path(&l, path);
    assert_int_equal(listed(entries, "l", true, false), 1);
    assert_int_equal(listed(entries, name, false, true), 1);
    assert_int_equal(entries->count, 2);
    list_fini(&l);
    assert_int_equal(unlinkat(fd, name, 0), 0);
    name[0] = 'l';
    assert_int_equal(unlinkat(fd, name, 0), 0);
    close(fd);
}

static int as_nobody(void) {
    CHECK(become_nobody() == 0);
    struct err e = ERR_INIT;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    CHECK(json_dir(at("readable"), &never, &b, &e) == 0);
    CHECK(memmem(b.p, b.len, "\"f\",\"isDirectory\":false,\"isFile\":true", 37) != NULL);
    CHECK(memmem(b.p, b.len, "\"d\",\"isDirectory\":true,\"isFile\":false", 37) != NULL);
    CHECK(memmem(b.p, b.len, "\"l\"", 3) == NULL); /* a link that cannot be followed */
    b.len = 0;
    CHECK_OS(json_dir(at("searchable"), &never, &b, &e), &e, -32600, EACCES);
    CHECK_OS(json_dir(at("closed/d"), &never, &b, &e), &e, -32600, EACCES);
    CHECK(b.len == 0);
    buf_fini(&b);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"readable", 0744}, {"searchable", 0711}, {"closed", 0700}};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        char name[64];
        make_dir(dirs[i].name);
        snprintf(name, sizeof name, "%s/f", dirs[i].name);
        make_file(name, "");
        snprintf(name, sizeof name, "%s/d", dirs[i].name);
        make_dir(name);
        snprintf(name, sizeof name, "%s/l", dirs[i].name);
        make_link("f", name);
        assert_int_equal(chmod(at(dirs[i].name), dirs[i].mode), 0);
    }
    in_child(as_nobody);
}

/* Makes and removes names until it is killed. */
_Noreturn static void meddle(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "come-and-go-%u", i % 50);
        int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
        snprintf(name, sizeof name, "come-and-go-%u", (i + 25) % 50);
        unlink(at(name));
        if (symlink("stays-1", at(name)) < 0)
            unlink(at(name));
    }
}

static void changing(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "stays-%d", i);
        make_file(name, "");
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        meddle();
    for (int i = 0; i < 300; i++) {
        struct listing l;
        const struct json_node *entries = list_path(&l, scratch);
        for (int k = 0; k < 40; k++) {
            char name[32];
            snprintf(name, sizeof name, "stays-%d", k);
            assert_int_equal(listed(entries, name, false, true), 1);
        }
        list_fini(&l);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(exact_text), scratch_test(kinds),      scratch_test(odd_names),
        scratch_test(failures),   scratch_test(limit),      scratch_test(result_too_large),
        scratch_test(stops),      scratch_test(long_paths), scratch_test(permissions),
        scratch_test(changing),
    };
    return cmocka_run_group_tests_name("fs_dir", tests, NULL, NULL);
}
