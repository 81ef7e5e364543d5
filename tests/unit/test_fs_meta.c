#include "fs/fs_meta.h"

#include "fs_json_run.h"
#include "fs_run.h"

#include <inttypes.h>

static char text[4096];

/* fs/getMetadata; `text` is its result. */
static int meta(const char *path, bool follow, struct err *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(sizeof text - 1);
    int r = json_meta(NULL, path, follow, &b, e);
    assert_true(r == 0 || b.len == 0);
    if (r == 0)
        memcpy(text, b.p, b.len);
    text[b.len] = '\0';
    return r;
}

static int64_t birth_ms(const char *path) {
    struct statx st;
    assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BTIME, &st), 0);
    return st.stx_mask & STATX_BTIME
               ? (int64_t)st.stx_btime.tv_sec * 1000 + st.stx_btime.tv_nsec / 1000000
               : 0;
}

/* What the result must be for a target, by what stat() says. */
static const char *expected(const char *path, const char *kind, bool link) {
    static char want[512];
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    snprintf(
        want, sizeof want,
        "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%lld,"
        "\"createdAtMs\":%" PRId64 ",\"modifiedAtMs\":%lld,\"mode\":%u}",
        strcmp(kind, "dir") == 0 ? "true" : "false", strcmp(kind, "file") == 0 ? "true" : "false",
        link ? "true" : "false", (long long)st.st_size, birth_ms(path),
        (long long)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000, st.st_mode & 07777u);
    return want;
}

static void expect_meta(const char *path, bool follow, const char *kind, bool link) {
    struct err e = ERR_INIT;
    assert_int_equal(meta(path, follow, &e), 0);
    assert_int_equal(e.code, 0);
    assert_string_equal(text, expected(path, kind, link));
}

static void kinds(void **state) {
    (void)state;
    make_tree();
    for (int follow = 0; follow <= 1; follow++) {
        expect_meta(at("file"), follow, "file", false);
        expect_meta(at("dir"), follow, "dir", false);
        expect_meta(at("dir/file"), follow, "file", false);
        expect_meta(at("fifo"), follow, "other", false);
        expect_meta(at("socket"), follow, "other", false);
        expect_meta("/dev/null", follow, "other", false);
        expect_meta("/", follow, "dir", false);
    }
    assert_non_null(strstr(expected(at("file"), "file", false), "\"size\":7,"));
    expect_meta("/proc/version", true, "file", false);
    assert_non_null(strstr(text, "\"size\":0,"));
}

static void links(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    expect_meta(at("flink"), true, "file", true);
    expect_meta(at("dlink"), true, "dir", true);
    expect_meta(at("dlink/file"), true, "file", false);
    FAILS_OS(meta(at("dangling"), true, &e), &e, -32004, ENOENT);
    FAILS_OS(meta(at("loop"), true, &e), &e, -32603, ELOOP);
    const char *refused[] = {"flink", "dlink", "dangling", "loop"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        FAILS(meta(at(refused[i]), false, &e), &e, -32600, "path contains a symbolic link");
    FAILS_OS(meta(at("dlink/file"), false, &e), &e, -32603, ENOTDIR);
}

static void errors(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    char name[300] = "";
    memset(name, 'n', 256);
    _cleanup_free_ char *path = malloc(8192);
    assert_non_null(path);
    memset(path, 'a', 8191);
    for (size_t i = 0; i < 8191; i += 2)
        path[i] = '/';
    path[4202] = '\0';
    for (int follow = 0; follow <= 1; follow++) {
        FAILS_OS(meta(at("nothing"), follow, &e), &e, -32004, ENOENT);
        FAILS_OS(meta(at("nothing/x"), follow, &e), &e, -32004, ENOENT);
        FAILS_OS(meta(at("file/x"), follow, &e), &e, -32603, ENOTDIR);
        FAILS_OS(meta(at(name), follow, &e), &e, -32603, ENAMETOOLONG);
    }
    FAILS_OS(meta(path, true, &e), &e, -32603, ENAMETOOLONG);
    FAILS_OS(meta(path, false, &e), &e, -32004, ENOENT);
}

static void set_mtime(const char *path, time_t sec, long nsec) {
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = sec, .tv_nsec = nsec}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static long long mtime_ms(const char *path, bool follow) {
    struct err e = ERR_INIT;
    assert_int_equal(meta(path, follow, &e), 0);
    const char *p = strstr(text, "\"modifiedAtMs\":");
    assert_non_null(p);
    return atoll(p + strlen("\"modifiedAtMs\":"));
}

static void times(void **state) {
    (void)state;
    make_file("file", "x");
    const char *path = at("file");
    static const struct {
        time_t sec;
        long nsec;
        long long follow, nofollow;
    } table[] = {
        {0, 0, 0, 0},
        {0, 1999999, 1, 1},
        {1700000000, 999999999, 1700000000999, 1700000000999},
        {-1, 0, 0, -1000},
        {-2, 500000000, 0, -1500}, /* 1.5 s before 1970 */
        {-1, 999999999, 0, -1},
        {4294967296, 0, 4294967296000, 4294967296000},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        set_mtime(path, table[i].sec, table[i].nsec);
        assert_int_equal(mtime_ms(path, true), table[i].follow);
        assert_int_equal(mtime_ms(path, false), table[i].nofollow);
    }
}

static void modes(void **state) {
    (void)state;
    make_file("file", "");
    static const mode_t table[] = {0, 0400, 0644, 0777, 01777, 02755, 04755, 07777};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        assert_int_equal(chmod(at("file"), table[i]), 0);
        expect_meta(at("file"), true, "file", false);
        char want[32];
        snprintf(want, sizeof want, "\"mode\":%u}", (unsigned)table[i]);
        assert_non_null(strstr(text, want));
    }
}

/* -- without waiting -- */

static int try_meta(const struct fs_devices *d, const char *path, char out[512]) {
    _cleanup_buf_ struct buf b = BUF_INIT(511);
    struct fs_meta m;
    int r = fs_meta_try(d, path, &m);
    if (r == 0) {
        assert_int_equal(fs_json_meta(&b, &m), 0);
        memcpy(out, b.p, b.len);
        out[b.len] = '\0';
    }
    return r;
}

static void quick_answers_are_the_same(void **state) {
    (void)state;
    struct fs_devices d;
    fs_devices_init(&d);
    make_tree();
    struct statx st;
    assert_int_equal(fs_statx(AT_FDCWD, scratch, 0, &st), 0);
    if (!(st.stx_mask & STATX_MNT_ID_UNIQUE))
        skip(); /* nothing is ever quick on this kernel */
    char quick[512];
    assert_int_equal(try_meta(&d, at("file"), quick), -EAGAIN); /* nothing is known yet */
    assert_int_equal(try_meta(NULL, at("file"), quick), -EAGAIN);
    struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(json_meta(&d, at("flink"), true, &b, &e), 0);
    if (fs_devices_find(&d, &st) < FS_DEVICE_METADATA)
        skip(); /* scratch lies on a slow file system */
    const char *names[] = {"file", "dir", "dir/file", "dlink/file", "fifo", "socket"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat warm;
        int r = -EAGAIN; /* also when something else is renamed at that moment */
        for (int tries = 100; r == -EAGAIN && tries > 0; tries--) {
            (void)stat(at(names[i]), &warm);
            r = try_meta(&d, at(names[i]), quick);
        }
        assert_int_equal(r, 0);
        assert_int_equal(meta(at(names[i]), true, &e), 0);
        assert_string_equal(quick, text);
    }
    const char *slow[] = {"flink", "dangling", "loop", "nothing", "file/x"};
    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        assert_int_equal(try_meta(&d, at(slow[i]), quick), -EAGAIN);
    assert_int_equal(try_meta(&d, "/proc/version", quick), -EAGAIN);
    assert_int_equal(try_meta(&d, "/proc/self/cwd/etc", quick), -EAGAIN);
}

/* -- real names -- */

static void expect_real(const char *path, const char *want) {
    struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    assert_int_equal(json_real(path, &b, &e), 0);
    assert_int_equal(e.code, 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, want);
}

static int real_fails(const char *path, struct err *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    int r = json_real(path, &b, e);
    return b.len == 0 ? r : 0;
}

static void real_names(void **state) {
    (void)state;
    make_tree();
    make_file("odd \"name\" %#?\\\x01\xff", "");
    char want[256];
    snprintf(want, sizeof want, "{\"path\":\"file://%s/dir/file\"}", scratch);
    expect_real(at("dir/file"), want);
    expect_real(at("dlink/file"), want);
    snprintf(want, sizeof want, "{\"path\":\"file://%s/file\"}", scratch);
    expect_real(at("flink"), want);
    snprintf(want, sizeof want,
             "{\"path\":\"file://%s/odd%%20%%22name%%22%%20%%25%%23%%3F%%5C%%01%%FF\"}", scratch);
    expect_real(at("odd \"name\" %#?\\\x01\xff"), want);
    expect_real("/", "{\"path\":\"file:///\"}");
    struct err e = ERR_INIT;
    FAILS_OS(real_fails(at("nothing"), &e), &e, -32004, ENOENT);
    FAILS_OS(real_fails(at("nothing/x"), &e), &e, -32004, ENOENT);
    FAILS_OS(real_fails(at("dangling"), &e), &e, -32004, ENOENT);
    FAILS_OS(real_fails(at("loop"), &e), &e, -32603, ELOOP);
    FAILS_OS(real_fails(at("file/x"), &e), &e, -32603, ENOTDIR);
    char name[300] = "";
    memset(name, 'n', 256);
    FAILS_OS(real_fails(at(name), &e), &e, -32603, ENAMETOOLONG);
    _cleanup_free_ char *path = malloc(8192);
    assert_non_null(path);
    for (size_t i = 0; i < 4200; i += 2)
        memcpy(path + i, "/a", 3);
    FAILS_OS(real_fails(path, &e), &e, -32603, ENAMETOOLONG);
}

static int drive_like(void) {
    struct err e = ERR_INIT;
    CHECK(own_mounts() == 0);
    CHECK(mount("none", scratch, "tmpfs", 0, NULL) == 0);
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    CHECK(mkdir("/C:", 0777) == 0 && mkdir("/C:/x", 0777) == 0 && symlink("C:/x", "/l") == 0);
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    CHECK(json_real("/l", &b, &e) == 0);
    CHECK(str_eqz(buf_str(&b), "{\"path\":\"file:///%00/bad/path/L0M6L3g\"}"));
    return 0;
}

static void real_name_like_a_drive(void **state) {
    (void)state;
    needs_root();
    in_child(drive_like);
}

/* -- permissions -- */

static void chmods(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    for (int follow = 0; follow <= 1; follow++) {
        static const mode_t table[] = {0, 0600, 0755, 01777, 06755};
        for (size_t i = 0; i < ARRAY_LEN(table); i++) {
            assert_int_equal(fs_meta_set_permissions(at("dir/file"), table[i], follow, &e), 0);
            assert_int_equal(stat_of(at("dir/file")).st_mode & 07777, table[i]);
            assert_int_equal(fs_meta_set_permissions(at("dir"), table[i] | 0700, follow, &e), 0);
            assert_int_equal(stat_of(at("dir")).st_mode & 07777, table[i] | 0700);
        }
        assert_int_equal(fs_meta_set_permissions(at("fifo"), 0640, follow, &e), 0);
        assert_int_equal(stat_of(at("fifo")).st_mode & 07777, 0640);
        FAILS_OS(fs_meta_set_permissions(at("nothing"), 0600, follow, &e), &e, -32004, ENOENT);
        FAILS_OS(fs_meta_set_permissions(at("file/x"), 0600, follow, &e), &e, -32603, ENOTDIR);
    }
}

static void chmods_and_links(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    assert_int_equal(fs_meta_set_permissions(at("flink"), 0611, true, &e), 0);
    assert_int_equal(stat_of(at("file")).st_mode & 07777, 0611);
    FAILS_OS(fs_meta_set_permissions(at("dangling"), 0600, true, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_meta_set_permissions(at("loop"), 0600, true, &e), &e, -32603, ELOOP);
    const char *refused[] = {"flink", "dlink", "dangling", "loop"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        FAILS(fs_meta_set_permissions(at(refused[i]), 0600, false, &e), &e, -32600,
              "path contains a symbolic link");
    FAILS_OS(fs_meta_set_permissions(at("dlink/file"), 0600, false, &e), &e, -32603, ENOTDIR);
    assert_int_equal(stat_of(at("file")).st_mode & 07777, 0611);
    assert_int_equal(stat_of(at("dir/file")).st_mode & 07777, 0644);
}

static int root_of_a_tree(void) {
    struct err e = ERR_INIT;
    CHECK(own_mounts() == 0);
    CHECK(mount("none", scratch, "tmpfs", 0, NULL) == 0);
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    struct stat st;
    for (int follow = 0; follow <= 1; follow++) {
        mode_t mode = follow ? 0700 : 0750;
        /* There is no /proc here: the system call of Linux 6.6 does without. */
        int r = fs_meta_set_permissions("/", mode, follow, &e);
        CHECK(r == 0 || (!follow && r == -EOPNOTSUPP));
        err_fini(&e);
        CHECK(r < 0 || (stat("/", &st) == 0 && (st.st_mode & 07777) == mode));
    }
    return 0;
}

static void chmods_the_root(void **state) {
    (void)state;
    needs_root();
    in_child(root_of_a_tree);
}

/* -- times -- */

static void expect_time(const char *path, int64_t sec, long nsec) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(st.st_mtim.tv_sec == sec && st.st_mtim.tv_nsec == nsec);
}

static void sets_times(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    const struct timespec old[2] = {{.tv_sec = 77, .tv_nsec = 5}, {.tv_sec = 1}};
    for (int follow = 0; follow <= 1; follow++) {
        static const struct {
            int64_t ms, sec;
            long nsec;
        } table[] = {{0, 0, 0},
                     {1, 0, 1000000},
                     {1999, 1, 999000000},
                     {-1, -1, 999000000},
                     {-1000, -1, 0},
                     {-1001, -2, 999000000},
                     {4000000000000, 4000000000, 0}};
        for (size_t i = 0; i < ARRAY_LEN(table); i++) {
            assert_int_equal(utimensat(AT_FDCWD, at("dir/file"), old, 0), 0);
            assert_int_equal(fs_meta_set_times(at("dir/file"), table[i].ms, follow, &e), 0);
            expect_time(at("dir/file"), table[i].sec, table[i].nsec);
            struct stat st = stat_of(at("dir/file"));
            assert_true(st.st_atim.tv_sec == 77 && st.st_atim.tv_nsec == 5);
        }
        assert_int_equal(fs_meta_set_times(at("dir"), 3000, follow, &e), 0);
        expect_time(at("dir"), 3, 0);
        FAILS_OS(fs_meta_set_times(at("nothing"), 0, follow, &e), &e, -32004, ENOENT);
        FAILS_OS(fs_meta_set_times(at("file/x"), 0, follow, &e), &e, -32603, ENOTDIR);
        assert_int_equal(fs_meta_set_times(at("file"), INT64_MAX, follow, &e), 0);
        assert_int_equal(fs_meta_set_times(at("file"), INT64_MIN, follow, &e), 0);
    }
}

static void sets_times_of_links(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    assert_int_equal(fs_meta_set_times(at("flink"), 1000, true, &e), 0);
    expect_time(at("file"), 1, 0);
    static const char *const names[] = {"flink", "dlink", "dangling", "loop"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(fs_meta_set_times(at(names[i]), 2000, false, &e), 0);
        expect_time(at(names[i]), 2, 0);
    }
    expect_time(at("file"), 1, 0);
    FAILS_OS(fs_meta_set_times(at("dangling"), 0, true, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_meta_set_times(at("loop"), 0, true, &e), &e, -32603, ELOOP);
    FAILS_OS(fs_meta_set_times(at("dlink/file"), 0, false, &e), &e, -32603, ENOTDIR);
}

/* A place: what it decided on gets the time, and nothing else that has its name by then. */
static void sets_times_at_places(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    struct fs_place p = FS_PLACE_INIT;
    strcpy(p.path, at("file"));
    assert_int_equal(fs_place_fill(&p, false), 0);
    assert_int_equal(fs_meta_set_times_at(&p, 5000, &e), 0);
    expect_time(at("file"), 5, 0);
    assert_int_equal(rename(at("flink"), at("file")), 0);
    FAILS_OS(fs_meta_set_times_at(&p, 6000, &e), &e, -32603, ESTALE);
    strcpy(p.path, at("dangling"));
    assert_int_equal(fs_place_fill(&p, false), 0);
    assert_int_equal(fs_meta_set_times_at(&p, 7000, &e), 0);
    expect_time(at("dangling"), 7, 0);
    strcpy(p.path, at("nothing"));
    assert_int_equal(fs_place_fill(&p, false), 0);
    make_file("nothing", "");
    FAILS_OS(fs_meta_set_times_at(&p, 0, &e), &e, -32004, ENOENT);
    fs_place_fini(&p);
}

/* -- as a plain user, and where calls are forbidden -- */

static int plain_user(void) {
    struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    CHECK(become_nobody() == 0);
    for (int follow = 0; follow <= 1; follow++) {
        CHECK_OS(json_meta(NULL, at("closed/file"), follow, &b, &e), &e, -32600, EACCES);
        CHECK(json_meta(NULL, at("closed"), follow, &b, &e) == 0);
        CHECK(json_meta(NULL, at("search/private"), follow, &b, &e) == 0);
        CHECK_OS(fs_meta_set_permissions(at("search/private"), 0666, follow, &e), &e, -32600,
                 EPERM);
        CHECK_OS(fs_meta_set_permissions(at("closed/file"), 0666, follow, &e), &e, -32600, EACCES);
        CHECK(fs_meta_set_permissions(at("theirs"), 0600, follow, &e) == 0);
        CHECK_OS(fs_meta_set_times(at("search/private"), 0, follow, &e), &e, -32600, EPERM);
        CHECK_OS(fs_meta_set_times(at("closed/file"), 0, follow, &e), &e, -32600, EACCES);
        CHECK(fs_meta_set_times(at("theirs"), 0, follow, &e) == 0);
    }
    b.len = 0;
    CHECK_OS(json_real(at("closed/file"), &b, &e), &e, -32600, EACCES);
    CHECK(b.len == 0 && json_real(at("search/private"), &b, &e) == 0);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_dir("closed");
    make_file("closed/file", "");
    assert_int_equal(chmod(at("closed"), 0700), 0);
    make_dir("search");
    make_file("search/private", "");
    assert_int_equal(chmod(at("search/private"), 0), 0);
    assert_int_equal(chmod(at("search"), 0711), 0);
    make_file("theirs", "");
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    in_child(plain_user);
}

static int no_statx(void) {
    struct err e = ERR_INIT;
    CHECK(chmod(at("file"), 0640) == 0);
    CHECK(forbid(SYS_statx, EPERM) == 0);
    for (int follow = 0; follow <= 1; follow++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        CHECK(json_meta(NULL, at("file"), follow, &b, &e) == 0);
        CHECK(buf_putc(&b, '\0') == 0);
        const char *head = "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":false,"
                           "\"size\":7,\"createdAtMs\":0,\"modifiedAtMs\":";
        CHECK(strncmp(b.p, head, strlen(head)) == 0);
        char tail[64];
        struct stat st;
        CHECK(fstatat(AT_FDCWD, at("file"), &st, 0) == 0);
        snprintf(tail, sizeof tail, "%lld,\"mode\":416}",
                 (long long)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
        CHECK(strcmp(b.p + strlen(head), tail) == 0);
        CHECK_OS(json_meta(NULL, at("nothing"), follow, &b, &e), &e, -32004, ENOENT);
    }
    return 0;
}

static int no_fchmodat2(void) {
    struct err e = ERR_INIT;
    CHECK(forbid(452, EPERM) == 0);
    CHECK(fs_meta_set_permissions(at("file"), 0611, false, &e) == 0);
    struct stat st;
    CHECK(stat(at("file"), &st) == 0 && (st.st_mode & 07777) == 0611);
    return 0;
}

static int no_openat2(void) {
    struct err e = ERR_INIT;
    struct fs_devices d;
    fs_devices_init(&d);
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    CHECK(json_meta(&d, at("file"), true, &b, &e) == 0);
    CHECK(forbid(SYS_openat2, ENOSYS) == 0);
    struct fs_meta m;
    CHECK(fs_meta_try(&d, at("file"), &m) == -EAGAIN);
    return 0;
}

static void forbidden_calls(void **state) {
    (void)state;
    make_tree();
    in_child(no_statx);
    in_child(no_fchmodat2);
    in_child(no_openat2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(kinds),
        scratch_test(links),
        scratch_test(errors),
        scratch_test(times),
        scratch_test(modes),
        scratch_test(quick_answers_are_the_same),
        scratch_test(real_names),
        scratch_test(real_name_like_a_drive),
        scratch_test(chmods),
        scratch_test(chmods_and_links),
        scratch_test(chmods_the_root),
        scratch_test(sets_times),
        scratch_test(sets_times_of_links),
        scratch_test(sets_times_at_places),
        scratch_test(permissions),
        scratch_test(forbidden_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
