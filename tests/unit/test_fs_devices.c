#include "fs/fs_file.h"
#include "fs/fs_meta.h"

#include "fs_run.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

static struct statx facts(const char *path) {
    struct statx st;
    assert_int_equal(fs_statx(AT_FDCWD, path, 0, &st), 0);
    return st;
}

static enum fs_device learn(struct fs_devices *d, const char *path) {
    int fd = open(path, O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    struct statx st = facts(path);
    enum fs_device kind = fs_devices_learn(d, fd, &st);
    close(fd);
    return kind;
}

/* Kernels before 6.8 have no ids that can be trusted. */
static void needs_unique_ids(void) {
    if (!(facts(scratch).stx_mask & STATX_MNT_ID_UNIQUE))
        skip();
}

/* -- the table -- */

static void learns(void **state) {
    (void)state;
    needs_unique_ids();
    struct fs_devices d;
    fs_devices_init(&d);
    struct statx st = facts("/proc/version");
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_UNKNOWN);
    assert_int_equal(learn(&d, "/proc/version"), FS_DEVICE_SLOW);
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_SLOW);
    st = facts(scratch);
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_UNKNOWN);
    enum fs_device kind = learn(&d, scratch);
    assert_int_equal(fs_devices_find(&d, &st), kind);
    assert_int_equal(learn(NULL, scratch), FS_DEVICE_UNKNOWN);
    assert_int_equal(fs_devices_find(NULL, &st), FS_DEVICE_UNKNOWN);
}

/* Without an id nothing is learned; without the attribute of local ones nothing is quick. */
static void needs_proof(void **state) {
    (void)state;
    needs_unique_ids();
    struct fs_devices d;
    fs_devices_init(&d);
    int fd = open(scratch, O_PATH | O_CLOEXEC);
    struct statx st = facts(scratch), bare = st;
    bare.stx_mask &= ~STATX_MNT_ID_UNIQUE;
    assert_int_equal(fs_devices_learn(&d, fd, &bare), FS_DEVICE_UNKNOWN);
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_UNKNOWN);
    assert_true(fs_devices_learn(&d, fd, &st) >= FS_DEVICE_SLOW);
    st.stx_attributes_mask &= ~(uint64_t)STATX_ATTR_NODUMP;
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_SLOW);
    assert_int_equal(fs_devices_learn(&d, fd, &st), FS_DEVICE_SLOW);
    close(fd);
}

/* Remembers the last FS_DEVICES_MAX; one that fell out can be learned again. */
static void forgets_the_oldest(void **state) {
    (void)state;
    needs_unique_ids();
    struct fs_devices d;
    fs_devices_init(&d);
    int fd = open("/proc", O_PATH | O_CLOEXEC);
    struct statx st = facts("/proc");
    uint64_t first = 1ull << 31;
    for (uint64_t i = 0; i < FS_DEVICES_MAX + 10; i++) {
        st.stx_mnt_id = first + i;
        assert_int_equal(fs_devices_learn(&d, fd, &st), FS_DEVICE_SLOW);
        assert_int_equal(fs_devices_learn(&d, fd, &st), FS_DEVICE_SLOW); /* takes no second slot */
    }
    for (uint64_t i = 0; i < FS_DEVICES_MAX + 10; i++) {
        st.stx_mnt_id = first + i;
        assert_int_equal(fs_devices_find(&d, &st), i < 10 ? FS_DEVICE_UNKNOWN : FS_DEVICE_SLOW);
    }
    st.stx_mnt_id = first;
    assert_int_equal(fs_devices_learn(&d, fd, &st), FS_DEVICE_SLOW);
    assert_int_equal(fs_devices_find(&d, &st), FS_DEVICE_SLOW);
    close(fd);
}

static struct fs_devices shared;

/* Half the threads learn mounts of one kind, half of another; nobody ever sees a mixture. */
static void *learn_many(void *arg) {
    bool proc = arg != NULL;
    struct statx st;
    int fd = open(proc ? "/proc" : scratch, O_PATH | O_CLOEXEC);
    if (fd < 0 || fs_statx(fd, "", AT_EMPTY_PATH, &st) < 0)
        return arg == NULL ? &shared : NULL;
    enum fs_device kind = FS_DEVICE_UNKNOWN;
    uintptr_t bad = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        st.stx_mnt_id = (1ull << 31) + 2 * (i % 50) + proc;
        enum fs_device got = fs_devices_learn(&shared, fd, &st);
        bad += i > 0 && got != kind;
        kind = got;
        got = fs_devices_find(&shared, &st);
        bad += got != kind && got != FS_DEVICE_UNKNOWN;
    }
    close(fd);
    return bad == 0 ? NULL : &shared;
}

static void many_threads(void **state) {
    (void)state;
    needs_unique_ids();
    fs_devices_init(&shared);
    pthread_t t[4];
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        assert_int_equal(pthread_create(&t[i], NULL, learn_many, i % 2 ? &shared : NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        void *bad;
        assert_int_equal(pthread_join(t[i], &bad), 0);
        assert_null(bad);
    }
}

/* -- reading without waiting -- */

static struct fs_devices known;

/* Scratch lies where cached data can be had, and `known` knows it. */
static void needs_quick_scratch(void) {
    needs_unique_ids();
    fs_devices_init(&known);
    if (learn(&known, scratch) < FS_DEVICE_DATA)
        skip();
}

/* Sets the access time, seconds from now; the others become now. */
static void set_atime(const char *path, time_t from_now) {
    struct timespec t[2] = {{.tv_sec = time(NULL) + from_now}, {.tv_nsec = UTIME_NOW}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static struct fs_file try_open(const char *path) {
    struct fs_file f = FS_FILE_NONE;
    struct stat warm;
    assert_int_equal(stat(path, &warm), 0);
    assert_int_equal(fs_file_try_open_read(&known, path, &f), 0);
    assert_true(f.fd >= 0 && f.quick);
    assert_int_equal(fcntl(f.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    return f;
}

static void quick_reads(void **state) {
    (void)state;
    make_tree();
    needs_quick_scratch();
    set_atime(at("file"), 60);
    const char *names[] = {"file", "flink"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct fs_file f = try_open(at(names[i]));
        assert_int_equal(f.size, 7);
        char data[16] = "";
        assert_int_equal(fs_file_try_pread(&f, data, sizeof data, 0), 7);
        assert_string_equal(data, "content");
        assert_int_equal(fs_file_try_pread(&f, data, 3, 1), 3);
        assert_memory_equal(data, "ont", 3);
        assert_int_equal(fs_file_try_pread(&f, data, 7, 0), 7);
        assert_int_equal(fs_file_try_pread(&f, data, 8, 7), 0);
        assert_int_equal(fs_file_try_pread(&f, data, 8, 1000), 0);
        assert_int_equal(fs_file_try_pread(&f, data, 10, INT64_MAX - 9), -EAGAIN);
        assert_int_equal(fs_file_try_pread(&f, data, 10, UINT64_MAX), -EAGAIN);
        f.quick = false;
        assert_int_equal(fs_file_try_pread(&f, data, 7, 0), -EAGAIN);
        close(f.fd);
    }
}

/* What the quick way leaves to the other; that one then says what is the matter. */
static void quick_refuses(void **state) {
    (void)state;
    make_tree();
    needs_quick_scratch();
    struct fs_file f = FS_FILE_NONE;
    const char *paths[] = {at("dir"),      at("fifo"),   at("socket"),    at("nothing"),
                           at("dangling"), at("file/x"), "/proc/version", "/proc/self/exe",
                           "/dev/null",    "/"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(fs_file_try_open_read(&known, paths[i], &f), -EAGAIN);
    struct fs_devices nothing;
    fs_devices_init(&nothing);
    assert_int_equal(fs_file_try_open_read(&nothing, at("file"), &f), -EAGAIN);
    assert_int_equal(fs_file_try_open_read(NULL, at("file"), &f), -EAGAIN);
    assert_int_equal(f.fd, -1);
}

/* The calls that may wait teach the quick ones. */
static void opening_teaches(void **state) {
    (void)state;
    make_tree();
    needs_quick_scratch();
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    struct stat warm;
    assert_int_equal(stat(at("file"), &warm), 0);
    fs_devices_init(&known);
    assert_int_equal(fs_file_open_read(&known, at("file"), true, &f, &e), 0);
    assert_true(f.quick);
    close(f.fd);
    close(try_open(at("file")).fd);
    fs_devices_init(&known);
    assert_int_equal(fs_file_open_replace(&known, at("file"), &f, &e), 0);
    assert_false(f.quick); /* cannot be read */
    close(f.fd);
    close(try_open(at("file")).fd);
    fs_devices_init(&known);
    struct fs_meta m;
    assert_int_equal(fs_meta_get(&known, at("flink"), true, &m, &e), 0);
    close(try_open(at("file")).fd);
    assert_int_equal(fs_file_open_read(&known, "/proc/version", true, &f, &e), 0);
    assert_false(f.quick);
    close(f.fd);
}

enum { BIG = 8 << 20 };

/* Whether nothing of it is in memory. */
static bool is_cold(int fd) {
    static unsigned char pages[BIG / 4096];
    void *p = mmap(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mincore(p, BIG, pages), 0);
    munmap(p, BIG);
    for (size_t i = 0; i < BIG / (size_t)sysconf(_SC_PAGESIZE); i++) {
        if (pages[i] & 1)
            return false;
    }
    return true;
}

/* A file on disk of which nothing is in memory. What is in use just then stays there: try again. */
static void make_cold(const char *path) {
    _cleanup_free_ char *data = malloc(BIG);
    assert_non_null(data);
    memset(data, 'd', BIG);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, BIG), BIG);
    int tries = 0;
    do {
        assert_in_range(++tries, 1, 10000);
        assert_int_equal(fsync(fd), 0);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    } while (!is_cold(fd) && usleep(1000) == 0);
    close(fd);
    set_atime(path, 60);
}

/* Opens a cold file and finds it cold. A fast disk may be done before the kernel gives up. */
static struct fs_file open_cold(const char *path, char *data) {
    for (int tries = 0; tries < 1000; tries++) {
        make_cold(path);
        struct fs_file f = try_open(path);
        ssize_t n = fs_file_try_pread(&f, data, 4096, 0);
        if (n == -EAGAIN)
            return f;
        assert_int_equal(n, 4096);
        close(f.fd);
    }
    fail_msg("what is not in memory is waited for");
    return FS_FILE_NONE;
}

/* What is not in memory is not waited for, and no part is taken for the whole. */
static void cold_data(void **state) {
    (void)state;
    needs_quick_scratch();
    _cleanup_free_ char *data = malloc(BIG + 1);
    assert_non_null(data);
    struct fs_file f = open_cold(at("big"), data);
    assert_int_equal(fs_file_pread(f.fd, data, 4096, 0), 4096);
    assert_int_equal(fs_file_try_pread(&f, data, 4096, 0), 4096);
    /* A part is there; asking makes the kernel fetch the rest, which a fast disk has at once. */
    ssize_t n = fs_file_try_pread(&f, data, BIG + 1, 0);
    assert_true(n == -EAGAIN || n == BIG);
    assert_int_equal(fs_file_try_pread(&f, data, 10, BIG), 0);
    assert_int_equal(fs_file_pread(f.fd, data, BIG + 1, 0), BIG);
    assert_int_equal(fs_file_try_pread(&f, data, BIG + 1, 0), BIG);
    assert_int_equal(data[BIG - 1], 'd');
    close(f.fd);
}

/* A read that would write the access time is work for a thread, which may wait. */
static void access_times(void **state) {
    (void)state;
    make_tree();
    needs_quick_scratch();
    char data[16];
    static const time_t due[] = {-1000, -2 * 24 * 60 * 60};
    for (size_t i = 0; i < ARRAY_LEN(due); i++) {
        set_atime(at("file"), due[i]);
        struct fs_file f = try_open(at("file"));
        assert_int_equal(fs_file_try_pread(&f, data, 7, 0), f.noatime ? 7 : -EAGAIN);
        f.noatime = true;
        assert_true(fs_file_try_settle(&f));
        assert_int_equal(fs_file_try_pread(&f, data, 7, 0), 7);
        close(f.fd);
    }
    set_atime(at("file"), -1000);
    struct fs_file f = try_open(at("file"));
    /* The read that may wait writes it; later than the change as soon as the clock has ticked. */
    time_t give_up = time(NULL) + 60;
    ssize_t r;
    do {
        assert_int_equal(fs_file_pread(f.fd, data, 7, 0), 7);
        r = fs_file_try_settle(&f) ? fs_file_try_pread(&f, data, 7, 0) : -EAGAIN;
    } while (r == -EAGAIN && time(NULL) < give_up);
    assert_int_equal(r, 7);
    close(f.fd);
}

/* What was opened stays what it was when something else takes its name. */
static void keeps_the_file(void **state) {
    (void)state;
    make_tree();
    needs_quick_scratch();
    set_atime(at("file"), 60);
    struct fs_file f = try_open(at("file"));
    make_file("next", "another");
    assert_int_equal(rename(at("next"), at("file")), 0);
    char data[16] = "";
    assert_int_equal(fs_file_pread(f.fd, data, 7, 0), 7);
    assert_string_equal(data, "content");
    close(f.fd);
}

static int plain_user(void) {
    struct fs_file f = FS_FILE_NONE;
    CHECK(become_nobody() == 0);
    CHECK(fs_file_try_open_read(&known, at("private"), &f) == -EAGAIN);
    CHECK(fs_file_try_open_read(&known, at("closed/file"), &f) == -EAGAIN);
    CHECK(fs_file_try_open_read(&known, at("file"), &f) == 0);
    char data[16];
    CHECK(fs_file_try_pread(&f, data, sizeof data, 0) == 7);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_tree();
    needs_quick_scratch();
    set_atime(at("file"), 60);
    make_file("private", "x");
    assert_int_equal(chmod(at("private"), 0600), 0);
    make_dir("closed");
    make_file("closed/file", "x");
    assert_int_equal(chmod(at("closed"), 0700), 0);
    in_child(plain_user);
}

/* -- other file systems -- */

static int tmpfs_and_overlay(void) {
    CHECK(own_mounts() == 0);
    struct err e = ERR_INIT;
    struct fs_file f = FS_FILE_NONE;
    fs_devices_init(&known);
    CHECK(mount("none", at("m"), "tmpfs", 0, NULL) == 0);
    make_file("m/file", "content");
    CHECK(learn(&known, at("m/file")) == FS_DEVICE_METADATA);
    struct fs_meta m;
    CHECK(fs_meta_try(&known, at("m/file"), &m) == 0);
    CHECK(fs_file_try_open_read(&known, at("m/file"), &f) == -EAGAIN);
    CHECK(fs_file_open_read(&known, at("m/file"), true, &f, &e) == 0 && !f.quick);
    close(f.fd);
    /* What is mounted there next is another mount. */
    CHECK(umount(at("m")) == 0 && mount("none", at("m"), "tmpfs", 0, NULL) == 0);
    make_file("m/file", "content");
    CHECK(fs_meta_try(&known, at("m/file"), &m) == -EAGAIN);
    CHECK(mkdir(at("m/low"), 0755) == 0 && mkdir(at("m/up"), 0755) == 0);
    CHECK(mkdir(at("m/work"), 0755) == 0 && mkdir(at("m/o"), 0755) == 0);
    make_file("m/low/file", "content");
    char options[512];
    snprintf(options, sizeof options, "lowerdir=%s/m/low,upperdir=%s/m/up,workdir=%s/m/work",
             scratch, scratch, scratch);
    if (mount("none", at("m/o"), "overlay", 0, options) < 0)
        return errno == ENODEV ? 0 : 1; /* the kernel has none */
    CHECK(learn(&known, at("m/o/file")) == FS_DEVICE_METADATA);
    CHECK(fs_meta_try(&known, at("m/o/file"), &m) == 0);
    CHECK(fs_file_try_open_read(&known, at("m/o/file"), &f) == -EAGAIN);
    return 0;
}

static void other_systems(void **state) {
    (void)state;
    needs_root();
    needs_unique_ids();
    make_dir("m");
    in_child(tmpfs_and_overlay);
}

/* A sandbox may have mounted something over the directory, where nobody else sees it. */
static int mounted_elsewhere(void) {
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (own_mounts() == 0 && mount("none", at("d"), "tmpfs", 0, NULL) == 0)
            (void)!write(ready[1], "r", 1);
        close(ready[1]);
        pause();
        _exit(0);
    }
    close(ready[1]);
    CHECK(pid > 0 && read(ready[0], &byte, 1) == 1);
    fs_devices_hold_root(&known);
    struct fs_file f = try_open(at("d/file"));
    close(f.fd);
    fs_devices_fini(&known);
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    return 0;
}

static void mounts_of_others(void **state) {
    (void)state;
    needs_root();
    make_dir("d");
    make_file("d/file", "content");
    needs_quick_scratch();
    in_child(mounted_elsewhere);
}

static int no_proc(void) {
    struct fs_file f = FS_FILE_NONE;
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    CHECK(fs_file_try_open_read(&known, "/file", &f) == -EAGAIN);
    return 0;
}

static void without_proc(void **state) {
    (void)state;
    needs_root();
    make_tree();
    needs_quick_scratch();
    in_child(no_proc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(learns),
        scratch_test(needs_proof),
        scratch_test(forgets_the_oldest),
        scratch_test(many_threads),
        scratch_test(quick_reads),
        scratch_test(quick_refuses),
        scratch_test(opening_teaches),
        scratch_test(cold_data),
        scratch_test(access_times),
        scratch_test(keeps_the_file),
        scratch_test(permissions),
        scratch_test(other_systems),
        scratch_test(mounts_of_others),
        scratch_test(without_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
