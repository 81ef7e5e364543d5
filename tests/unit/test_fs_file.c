#include "fs/fs_file.h"

#include "fs_run.h"

#include <pty.h>

/* -- the common part -- */

static void codes(void **state) {
    (void)state;
    static const struct {
        int num, code;
    } table[] = {
        {ENOENT, -32004},  {EACCES, -32600}, {EPERM, -32600},   {EINVAL, -32600},
        {ENOTDIR, -32603}, {EISDIR, -32603}, {EEXIST, -32603},  {ENOTEMPTY, -32603},
        {EROFS, -32603},   {ELOOP, -32603},  {EBUSY, -32603},   {ENAMETOOLONG, -32603},
        {EIO, -32603},     {EBADF, -32603},  {ENXIO, -32603},   {ENOSPC, -32603},
        {EMFILE, -32603},  {EAGAIN, -32603}, {ETXTBSY, -32603}, {EDQUOT, -32603},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct err e = ERR_INIT;
        FAILS_OS(fs_fail(&e, table[i].num), &e, table[i].code, table[i].num);
    }
    struct err e = ERR_INIT;
    FAILS(fs_fail(&e, ELOOP), &e, -32603, "Symbolic link loop (os error 40)");
}

static void lossy(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } table[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"a\xFFz", "a\uFFFDz"},
        {"\x80\xBF", "\uFFFD\uFFFD"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},                     /* over-long */
        {"\xE2\x82y", "\uFFFDy"},                         /* one for what could have become one */
        {"\xE2\x82", "\uFFFD"},                           /* cut off */
        {"\xF0\x9F\x98z", "\uFFFDz"},                     /* */
        {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},           /* over-long from the second byte on */
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},           /* surrogate */
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, /* above U+10FFFF */
        {"\xF5\x80", "\uFFFD\uFFFD"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(64);
        assert_int_equal(fs_put_lossy(&b, str_of(table[i].in)), 0);
        assert_int_equal(buf_putc(&b, '\0'), 0);
        assert_string_equal(b.p, table[i].out);
    }
    struct buf small = BUF_INIT(4);
    assert_int_equal(buf_putz(&small, "x"), 0);
    assert_int_equal(fs_put_lossy(&small, STR_LIT("a\xFF")), -ENOBUFS);
    assert_int_equal(small.len, 1);
    buf_fini(&small);
}

static void parents(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    int fd = -1;
    const char *leaf = NULL, *path = at("dir/anything");
    assert_int_equal(fs_parent_open(path, &fd, &leaf, &e), 0);
    assert_string_equal(leaf, "anything");
    assert_ptr_equal(leaf, path + strlen(path) - strlen("anything"));
    struct stat st;
    assert_int_equal(fstatat(fd, "file", &st, 0), 0);
    assert_int_equal(st.st_ino, stat_of(at("dir/file")).st_ino);
    close(fd);
    assert_int_equal(fs_parent_open("/top", &fd, &leaf, &e), 0);
    assert_string_equal(leaf, "top");
    close(fd);
    fd = -1;
    FAILS(fs_parent_open("/", &fd, &leaf, &e), &e, -32600, "path must name an entry");
    FAILS_OS(fs_parent_open(at("dlink/x"), &fd, &leaf, &e), &e, -32603, ENOTDIR);
    FAILS_OS(fs_parent_open(at("loop/x"), &fd, &leaf, &e), &e, -32603, ENOTDIR);
    FAILS_OS(fs_parent_open(at("file/x"), &fd, &leaf, &e), &e, -32603, ENOTDIR);
    FAILS_OS(fs_parent_open(at("nothing/x"), &fd, &leaf, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_parent_open("/proc/self/status", &fd, &leaf, &e), &e, -32603, ENOTDIR);
    assert_int_equal(fd, -1);
}

/* A component is refused when its turn comes, be it as long as it may. */
static void long_parents(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    int fd = -1;
    const char *leaf;
    static const size_t lengths[] = {256, 4095, 4096, 60000};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        _cleanup_free_ char *path = calloc(1, lengths[i] + 128);
        assert_non_null(path);
        char *p = path + sprintf(path, "%s/", scratch);
        memset(p, 'n', lengths[i]);
        strcpy(p + lengths[i], "/x");
        FAILS_OS(fs_parent_open(path, &fd, &leaf, &e), &e, -32603, ENAMETOOLONG);
        memcpy(path + 1, "nix", 3);
        FAILS_OS(fs_parent_open(path, &fd, &leaf, &e), &e, -32004, ENOENT);
    }
}

/* -- reading -- */

/* Opens and reads; what was read must be `want`. */
static int read_back(const char *path, bool follow, const char *want, struct err *e) {
    struct fs_file f = FS_FILE_NONE;
    int r = fs_file_open_read(NULL, path, follow, &f, e);
    if (r < 0) {
        assert_int_equal(f.fd, -1);
        return r;
    }
    assert_non_null(want);
    char got[256] = "";
    assert_int_equal(fcntl(f.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(f.size, strlen(want));
    assert_false(f.quick);
    assert_int_equal(fs_file_pread(f.fd, got, sizeof got, 0), strlen(want));
    assert_string_equal(got, want);
    close(f.fd);
    return 0;
}

static const char *not_a_file(const char *path) {
    static char text[8192];
    snprintf(text, sizeof text, "path `%s` is not a file", path);
    return text;
}

static void reads_what_is_there(void **state) {
    (void)state;
    make_tree();
    make_file("empty", "");
    struct err e = ERR_INIT;
    for (int follow = 0; follow <= 1; follow++) {
        assert_int_equal(read_back(at("file"), follow, "content", &e), 0);
        assert_int_equal(read_back(at("empty"), follow, "", &e), 0);
        assert_int_equal(read_back(at("dir/file"), follow, "inner", &e), 0);
        FAILS_OS(read_back(at("nothing"), follow, NULL, &e), &e, -32004, ENOENT);
        FAILS_OS(read_back(at("nothing/x"), follow, NULL, &e), &e, -32004, ENOENT);
        FAILS_OS(read_back(at("file/x"), follow, NULL, &e), &e, -32603, ENOTDIR);
        FAILS_OS(read_back(at("loop"), follow, NULL, &e), &e, -32603, ELOOP);
        FAILS_OS(read_back(at("socket"), follow, NULL, &e), &e, -32603, ENXIO);
    }
    assert_int_equal(read_back(at("flink"), true, "content", &e), 0);
    assert_int_equal(read_back(at("dlink/file"), true, "inner", &e), 0);
    FAILS_OS(read_back(at("dangling"), true, NULL, &e), &e, -32004, ENOENT);
    FAILS_OS(read_back(at("flink"), false, NULL, &e), &e, -32603, ELOOP);
    FAILS_OS(read_back(at("dangling"), false, NULL, &e), &e, -32603, ELOOP);
    FAILS_OS(read_back(at("dlink/file"), false, NULL, &e), &e, -32603, ENOTDIR);
}

static void reads_regular_files_only(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    const char *others[] = {at("dir"), at("fifo"), "/dev/null"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        FAILS(read_back(others[i], true, NULL, &e), &e, -32600, not_a_file(others[i]));
        FAILS(read_back(others[i], false, NULL, &e), &e, -32600, "path is not a regular file");
    }
    FAILS(read_back(at("dlink"), true, NULL, &e), &e, -32600, not_a_file(at("dlink")));
    FAILS_OS(read_back(at("dlink"), false, NULL, &e), &e, -32603, ELOOP);
    FAILS(read_back("/", true, NULL, &e), &e, -32600, "path `/` is not a file");
    FAILS(read_back("/", false, NULL, &e), &e, -32600, "path must name an entry");
    make_dir("\xFF dir \xE2\x82");
    FAILS(read_back(at("\xFF dir \xE2\x82"), true, NULL, &e), &e, -32600,
          not_a_file(at("\uFFFD dir \uFFFD")));
}

static void long_names(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    char name[300] = "";
    memset(name, 'n', 255);
    make_file(name, "long");
    for (int follow = 0; follow <= 1; follow++)
        assert_int_equal(read_back(at(name), follow, "long", &e), 0);
    memset(name, 'n', 256);
    for (int follow = 0; follow <= 1; follow++)
        FAILS_OS(read_back(at(name), follow, NULL, &e), &e, -32603, ENAMETOOLONG);
    _cleanup_free_ char *path = calloc(1, 8192);
    assert_non_null(path);
    for (size_t i = 0; i < 4096; i += 2)
        memcpy(path + i, "/a", 2);
    FAILS_OS(read_back(path, true, NULL, &e), &e, -32603, ENAMETOOLONG);
    FAILS_OS(read_back(path, false, NULL, &e), &e, -32004, ENOENT);
}

/* Files of size 0 that have contents, and one that cannot be read. */
static void reads_proc(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    char data[4096];
    assert_int_equal(fs_file_open_read(NULL, "/proc/version", false, &f, &e), 0);
    assert_int_equal(f.size, 0);
    assert_true(fs_file_pread(f.fd, data, sizeof data, 0) > 10);
    close(f.fd);
    assert_int_equal(fs_file_open_read(NULL, "/proc/self/mem", true, &f, &e), 0);
    assert_int_equal(fs_file_pread(f.fd, data, sizeof data, 0), -EIO);
    close(f.fd);
}

static int no_terminal(void) {
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    CHECK(setsid() > 0);
    CHECK_OS(fs_file_open_read(NULL, "/dev/tty", true, &f, &e), &e, -32603, ENXIO);
    CHECK_OS(fs_file_open_read(NULL, "/dev/tty", false, &f, &e), &e, -32603, ENXIO);
    int master, slave;
    char name[64];
    CHECK(openpty(&master, &slave, name, NULL, NULL) == 0);
    CHECK_OS(fs_file_open_read(NULL, name, true, &f, &e), &e, -32600, EINVAL);
    CHECK(open("/dev/tty", O_RDONLY | O_CLOEXEC) < 0); /* it did not become ours */
    return 0;
}

static void terminals(void **state) {
    (void)state;
    in_child(no_terminal);
}

/* Who holds a lease is told, and we do not wait for him. */
static int leased(void) {
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR);
    int fd = open(at("file"), O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    CHECK_OS(fs_file_open_read(NULL, at("file"), true, &f, &e), &e, -32603, EAGAIN);
    return 0;
}

static void leases(void **state) {
    (void)state;
    make_file("file", "x");
    in_child(leased);
}

static void preads(void **state) {
    (void)state;
    make_file("file", "0123456789");
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    assert_int_equal(fs_file_open_read(NULL, at("file"), true, &f, &e), 0);
    char data[16] = "";
    assert_int_equal(fs_file_pread(f.fd, data, 4, 3), 4);
    assert_memory_equal(data, "3456", 4);
    assert_int_equal(fs_file_pread(f.fd, data, 10, 0), 10);
    assert_int_equal(fs_file_pread(f.fd, data, 10, 7), 3);
    assert_memory_equal(data, "789", 3);
    assert_int_equal(fs_file_pread(f.fd, data, 10, 10), 0);
    assert_int_equal(fs_file_pread(f.fd, data, 10, 1000000), 0);
    assert_int_equal(fs_file_pread(f.fd, data, 10, INT64_MAX - 10), 0);
    assert_int_equal(fs_file_pread(f.fd, data, 10, INT64_MAX - 9), -EINVAL);
    assert_int_equal(fs_file_pread(f.fd, data, 10, UINT64_MAX), -EINVAL);
    assert_int_equal(fs_file_pwrite(f.fd, "x", 1, 0), -EBADF);
    make_file("file", "0123456789 and more"); /* the same file: growth is seen */
    assert_int_equal(fs_file_pread(f.fd, data, 10, 10), 9);
    assert_int_equal(unlink(at("file")), 0);
    assert_int_equal(fs_file_pread(f.fd, data, 10, 0), 10);
    close(f.fd);
    assert_int_equal(fs_file_pread(-1, data, 10, 0), -EBADF);
}

/* -- replacing -- */

static void replaces(void **state) {
    (void)state;
    make_tree();
    assert_int_equal(chmod(at("file"), 0600), 0);
    assert_int_equal(link(at("file"), at("other")), 0);
    struct stat before = stat_of(at("file"));
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    assert_int_equal(fs_file_open_replace(NULL, at("flink"), &f, &e), 0);
    assert_int_equal(f.size, 0);
    assert_false(f.quick);
    expect_text(at("file"), ""); /* truncated at once */
    assert_int_equal(fs_file_pwrite(f.fd, "world", 5, 6), 0);
    assert_int_equal(fs_file_pwrite(f.fd, "hello", 5, 0), 0);
    struct stat after = stat_of(at("file"));
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_mode, before.st_mode);
    char data[16];
    int fd = open(at("other"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, data, sizeof data), 11);
    assert_memory_equal(data, "hello\0world", 11);
    close(fd);
    assert_int_equal(fs_file_pwrite(f.fd, "x", 1, INT64_MAX), -EINVAL);
    assert_int_equal(fs_file_pwrite(f.fd, "x", 1, UINT64_MAX), -EINVAL);
    assert_int_equal(fs_file_pread(f.fd, data, 1, 0), -EBADF);
    close(f.fd);
}

/* What is there stays, and is written over where the client says. */
static void updates(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    assert_int_equal(chmod(at("file"), 0640), 0);
    assert_int_equal(fs_file_open_update(NULL, at("flink"), &f, &e), 0);
    assert_int_equal(f.size, 7);
    assert_false(f.quick);
    assert_int_equal(fs_file_pwrite(f.fd, "XY", 2, 3), 0);
    char got[16] = "";
    assert_int_equal(fs_file_pread(f.fd, got, sizeof got, 0), -EBADF);
    close(f.fd);
    assert_int_equal(fs_file_open_read(NULL, at("file"), true, &f, &e), 0);
    assert_int_equal(fs_file_pread(f.fd, got, sizeof got, 0), 7);
    close(f.fd);
    assert_memory_equal(got + 3, "XY", 2);
    assert_int_equal(stat_of(at("file")).st_mode & 07777, 0640);
    static const char *const made[] = {"fresh", "dangling"};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        assert_int_equal(fs_file_open_update(NULL, at(made[i]), &f, &e), 0);
        assert_true(f.fd >= 0 && f.size == 0 && !missing(at(made[i])));
        close(f.fd);
    }
    f = FS_FILE_NONE;
    FAILS_OS(fs_file_open_update(NULL, at("no/file"), &f, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_file_open_update(NULL, at("dir"), &f, &e), &e, -32603, EISDIR);
    FAILS_OS(fs_file_open_update(NULL, at("loop"), &f, &e), &e, -32603, ELOOP);
    FAILS_OS(fs_file_open_update(NULL, at("fifo"), &f, &e), &e, -32603, ENXIO);
    assert_int_equal(f.fd, -1);
}

static void replace_makes(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    umask(027);
    assert_int_equal(fs_file_open_replace(NULL, at("fresh"), &f, &e), 0);
    close(f.fd);
    assert_int_equal(fs_file_open_replace(NULL, at("dangling"), &f, &e), 0);
    close(f.fd);
    umask(022);
    assert_int_equal(stat_of(at("fresh")).st_mode, S_IFREG | 0640);
    assert_int_equal(stat_of(at("nothing")).st_mode, S_IFREG | 0640);
    assert_int_equal(stat_of(at("fresh")).st_size, 0);
    f = FS_FILE_NONE;
    FAILS_OS(fs_file_open_replace(NULL, at("no/file"), &f, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_file_open_replace(NULL, at("dir"), &f, &e), &e, -32603, EISDIR);
    FAILS_OS(fs_file_open_replace(NULL, at("dlink"), &f, &e), &e, -32603, EISDIR);
    FAILS_OS(fs_file_open_replace(NULL, "/", &f, &e), &e, -32603, EISDIR);
    FAILS_OS(fs_file_open_replace(NULL, at("loop"), &f, &e), &e, -32603, ELOOP);
    FAILS_OS(fs_file_open_replace(NULL, at("socket"), &f, &e), &e, -32603, ENXIO);
    FAILS_OS(fs_file_open_replace(NULL, at("fifo"), &f, &e), &e, -32603, ENXIO);
    FAILS(fs_file_open_replace(NULL, "/dev/null", &f, &e), &e, -32600, not_a_file("/dev/null"));
    int reader = open(at("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FAILS(fs_file_open_replace(NULL, at("fifo"), &f, &e), &e, -32600, not_a_file(at("fifo")));
    close(reader);
    assert_int_equal(f.fd, -1);
}

/* -- writing whole files -- */

static int put(const char *path, const char *data, bool follow, struct err *e) {
    return fs_file_write(&(struct fs_write){path, data, strlen(data), follow, false}, e);
}

static void writes(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    for (int follow = 0; follow <= 1; follow++) {
        make_file("file", "a long former content");
        assert_int_equal(chmod(at("file"), 0604), 0);
        struct stat before = stat_of(at("file"));
        assert_int_equal(put(at("file"), "new", follow, &e), 0);
        expect_text(at("file"), "new");
        struct stat after = stat_of(at("file"));
        assert_int_equal(after.st_ino, before.st_ino);
        assert_int_equal(after.st_mode, before.st_mode);
        assert_int_equal(put(at("file"), "", follow, &e), 0);
        expect_text(at("file"), "");
        umask(027);
        const char *fresh = at(follow ? "fresh1" : "fresh2");
        assert_int_equal(put(fresh, "fresh", follow, &e), 0);
        umask(022);
        expect_text(fresh, "fresh");
        assert_int_equal(stat_of(fresh).st_mode, S_IFREG | 0640);
        FAILS_OS(put(at("no/file"), "x", follow, &e), &e, -32004, ENOENT);
        FAILS_OS(put(at("file/x"), "x", follow, &e), &e, -32603, ENOTDIR);
        FAILS_OS(put(at("dir"), "x", follow, &e), &e, -32603, EISDIR);
        FAILS_OS(put(at("socket"), "x", follow, &e), &e, -32603, ENXIO);
        FAILS_OS(put(at("loop"), "x", follow, &e), &e, -32603, ELOOP);
    }
    FAILS_OS(put("/", "x", true, &e), &e, -32603, EISDIR);
    FAILS(put("/", "x", false, &e), &e, -32600, "path must name an entry");
}

static void writes_and_links(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    FAILS_OS(put(at("flink"), "x", false, &e), &e, -32603, ELOOP);
    FAILS_OS(put(at("dangling"), "x", false, &e), &e, -32603, ELOOP);
    FAILS_OS(put(at("dlink/file"), "x", false, &e), &e, -32603, ENOTDIR);
    FAILS_OS(put(at("dlink/fresh"), "x", false, &e), &e, -32603, ENOTDIR);
    expect_text(at("file"), "content");
    expect_text(at("dir/file"), "inner");
    assert_true(missing(at("nothing")));
    assert_true(missing(at("dir/fresh")));
    assert_int_equal(put(at("flink"), "1", true, &e), 0);
    expect_text(at("file"), "1");
    assert_int_equal(put(at("dangling"), "2", true, &e), 0);
    expect_text(at("nothing"), "2");
    assert_int_equal(put(at("dlink/fresh"), "3", true, &e), 0);
    expect_text(at("dir/fresh"), "3");
}

static void writes_to_special_files(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    assert_int_equal(put("/dev/null", "gone", true, &e), 0);
    FAILS(put("/dev/null", "gone", false, &e), &e, -32600, "path is not a regular file");
    FAILS_OS(put("/dev/full", "x", true, &e), &e, -32603, ENOSPC);
    for (int follow = 0; follow <= 1; follow++)
        FAILS_OS(put(at("fifo"), "x", follow, &e), &e, -32603, ENXIO);
    int reader = open(at("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FAILS(put(at("fifo"), "x", true, &e), &e, -32600, not_a_file(at("fifo")));
    FAILS(put(at("fifo"), "x", false, &e), &e, -32600, "path is not a regular file");
    char c;
    assert_int_equal(read(reader, &c, 1), 0); /* nothing was written */
    close(reader);
}

/* More than a terminal takes at once; the other side reads only when it is full. */
static void writes_to_a_terminal(void **state) {
    (void)state;
    int master, slave;
    char name[64], data[200001];
    assert_int_equal(openpty(&master, &slave, name, NULL, NULL), 0);
    struct termios raw;
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    memset(data, 'x', sizeof data);
    data[sizeof data - 1] = '\0';
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e = ERR_INIT;
        close(master);
        _exit(put(name, data, true, &e) == 0 ? 0 : 1);
    }
    size_t got = 0;
    while (got < sizeof data - 1) {
        char chunk[512];
        ssize_t n = read(master, chunk, sizeof chunk);
        assert_true(n > 0);
        got += (size_t)n;
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(master);
    close(slave);
}

static void writes_to_a_running_program(void **state) {
    (void)state;
    pid_t pid = start_program(at("program"));
    struct err e = ERR_INIT;
    FAILS_OS(put(at("program"), "x", true, &e), &e, -32603, ETXTBSY);
    FAILS_OS(put(at("program"), "x", false, &e), &e, -32603, ETXTBSY);
    end_program(pid);
}

/* -- as a plain user, and on other mounts -- */

static int plain_user(void) {
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    CHECK(become_nobody() == 0);
    for (int follow = 0; follow <= 1; follow++) {
        CHECK_OS(fs_file_open_read(NULL, at("private"), follow, &f, &e), &e, -32600, EACCES);
        CHECK_OS(fs_file_open_read(NULL, at("closed/file"), follow, &f, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("private"), "x", follow, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("fresh"), "x", follow, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("closed/file"), "x", follow, &e), &e, -32600, EACCES);
        CHECK(fs_file_open_read(NULL, at("search/file"), follow, &f, &e) == 0);
        close(f.fd);
        CHECK(put(at("theirs"), "x", follow, &e) == 0);
    }
    CHECK_OS(fs_file_open_replace(NULL, at("private"), &f, &e), &e, -32600, EACCES);
    CHECK_OS(fs_file_open_replace(NULL, at("fresh"), &f, &e), &e, -32600, EACCES);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_file("private", "content");
    assert_int_equal(chmod(at("private"), 0600), 0);
    make_dir("closed");
    make_file("closed/file", "content");
    assert_int_equal(chmod(at("closed"), 0700), 0);
    make_dir("search");
    make_file("search/file", "content");
    assert_int_equal(chmod(at("search"), 0711), 0);
    make_file("theirs", "");
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    in_child(plain_user);
    expect_text(at("private"), "content");
}

/* A full disk: an error, and what fitted stays. */
static int full_disk(void) {
    struct err e = ERR_INIT;
    CHECK(own_mounts() == 0);
    CHECK(mount("none", at("m"), "tmpfs", 0, "size=64k") == 0);
    _cleanup_free_ char *data = calloc(1, 1 << 20);
    CHECK(data != NULL);
    for (int follow = 0; follow <= 1; follow++) {
        struct fs_write w = {at("m/big"), data, 1 << 20, follow, false};
        CHECK_OS(fs_file_write(&w, &e), &e, -32603, ENOSPC);
    }
    struct fs_file f = FS_FILE_NONE;
    CHECK(fs_file_open_replace(NULL, at("m/big"), &f, &e) == 0);
    CHECK(fs_file_pwrite(f.fd, data, 1 << 20, 0) == -ENOSPC);
    CHECK(fs_file_pwrite(f.fd, data, 1000, 0) == 0);
    close(f.fd);
    CHECK(mount("none", at("m"), NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_OS(put(at("m/big"), "x", true, &e), &e, -32603, EROFS);
    CHECK_OS(put(at("m/big"), "x", false, &e), &e, -32603, EROFS);
    CHECK_OS(fs_file_open_replace(NULL, at("m/big"), &f, &e), &e, -32603, EROFS);
    return 0;
}

static void full_and_read_only(void **state) {
    (void)state;
    needs_root();
    make_dir("m");
    in_child(full_disk);
}

/* -- probing -- */

static int no_null_device(void) {
    CHECK(own_mounts() == 0);
    CHECK(mount(at("file"), "/dev/null", NULL, MS_BIND, NULL) == 0); /* not to be written */
    int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fs_file_probe(fd, 100, 0) == 7);
    return 0;
}

static void probes(void **state) {
    (void)state;
    make_file("file", "content");
    int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(fs_file_probe(fd, 100, 0), 7);
    assert_int_equal(fs_file_probe(fd, 7, 0), 7);
    assert_int_equal(fs_file_probe(fd, 3, 2), 3);
    assert_int_equal(fs_file_probe(fd, 100, 7), 0);
    assert_int_equal(fs_file_probe(fd, 100, 1000), 0);
    assert_int_equal(fs_file_probe(fd, 100, UINT64_MAX), -EINVAL);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    close(fd);
    fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fs_file_probe(fd, 100, 0), -EIO);
    close(fd);
    fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    assert_in_range(fs_file_probe(fd, 1 << 20, 0), 100, 100000);
    close(fd);
    if (geteuid() == 0)
        in_child(no_null_device);
    expect_text(at("file"), "content");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(codes),
        scratch_test(lossy),
        scratch_test(parents),
        scratch_test(long_parents),
        scratch_test(reads_what_is_there),
        scratch_test(reads_regular_files_only),
        scratch_test(long_names),
        scratch_test(reads_proc),
        scratch_test(terminals),
        scratch_test(leases),
        scratch_test(preads),
        scratch_test(replaces),
        scratch_test(updates),
        scratch_test(replace_makes),
        scratch_test(writes),
        scratch_test(writes_and_links),
        scratch_test(writes_to_special_files),
        scratch_test(writes_to_a_terminal),
        scratch_test(writes_to_a_running_program),
        scratch_test(permissions),
        scratch_test(full_and_read_only),
        scratch_test(probes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
