/* What a file keeps when another takes its place: access list, extended attributes, owner, mode. */
#include "fs/fs_attrs.h"

#include "fs/fs_atomic.h"
#include "fs/fs_copy_file.h"
#include "fs_run.h"

#include <endian.h>
#include <linux/capability.h>
#include <sys/ptrace.h>
#include <sys/xattr.h>

/* -- access lists -- */

enum tag { OWNER = 0x01, USER = 0x02, GROUP = 0x04, MASK = 0x10, OTHER = 0x20 };

struct entry {
    uint16_t tag, perm;
    uint32_t id;
};

struct acl {
    uint32_t version;
    struct entry entries[5];
};

/* Mode bits show rw- for the group: that is the mask. The group itself has nothing. */
static struct acl guarded(uint16_t other) {
    struct acl acl = {.version = htole32(2)};
    const struct entry all[] = {
        {OWNER, 6, ~0u}, {USER, 6, 4321}, {GROUP, 0, ~0u}, {MASK, 6, ~0u}, {OTHER, other, ~0u}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        acl.entries[i] =
            (struct entry){htole16(all[i].tag), htole16(all[i].perm), htole32(all[i].id)};
    return acl;
}

static bool lists_work(void) {
    struct acl acl = guarded(0);
    make_file("probe", "");
    bool works = setxattr(at("probe"), FS_ATTRS_ACL, &acl, sizeof acl, 0) == 0 &&
                 setxattr(at("probe"), "user.probe", "", 0, 0) == 0;
    assert_int_equal(unlink(at("probe")), 0);
    return works;
}

static void needs_lists(void) {
    if (!lists_work())
        skip();
}

static void set_list(const char *path, const char *name, struct acl acl) {
    assert_int_equal(setxattr(path, name, &acl, sizeof acl, 0), 0);
}

/* The file has this list; or none, if wanted is NULL. */
static bool has_list(const char *path, const struct acl *wanted) {
    char value[256];
    ssize_t n = getxattr(path, FS_ATTRS_ACL, value, sizeof value);
    if (wanted == NULL)
        return n < 0 && errno == ENODATA;
    return n == sizeof *wanted && memcmp(value, wanted, sizeof *wanted) == 0;
}

static bool has_value(const char *path, const char *name, const char *wanted) {
    char value[256];
    ssize_t n = getxattr(path, name, value, sizeof value);
    return n == (ssize_t)strlen(wanted) && memcmp(value, wanted, strlen(wanted)) == 0;
}

static int put(const char *path, const char *data, bool follow, struct err *e) {
    return fs_file_write(&(struct fs_write){path, data, strlen(data), follow, true}, e);
}

static size_t entries(const char *name) {
    size_t n = 0;
    DIR *d = opendir(at(name));
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

/* -- replaced files -- */

static void keeps_lists_and_attributes(void **state) {
    (void)state;
    needs_lists();
    struct err e = ERR_INIT;
    struct acl acl = guarded(0);
    for (int follow = 0; follow <= 1; follow++) {
        make_file("file", "old");
        set_list(at("file"), FS_ATTRS_ACL, acl);
        assert_int_equal(setxattr(at("file"), "user.origin", "here", 4, 0), 0);
        assert_int_equal(setxattr(at("file"), "user.empty", "", 0, 0), 0);
        assert_int_equal(put(at("file"), "new", follow, &e), 0);
        expect_text(at("file"), "new");
        assert_true(has_list(at("file"), &acl));
        assert_true(has_value(at("file"), "user.origin", "here"));
        assert_true(has_value(at("file"), "user.empty", ""));
        assert_int_equal(stat_of(at("file")).st_mode & 07777, 0660);
        assert_int_equal(unlink(at("file")), 0);
    }
}

/* A file that was taken off the directory's list does not get it back; a fresh one does. */
static void inherits_nothing(void **state) {
    (void)state;
    needs_lists();
    struct err e = ERR_INIT;
    make_dir("dir");
    make_file("dir/file", "old");
    assert_int_equal(chmod(at("dir/file"), 0640), 0);
    set_list(at("dir"), "system.posix_acl_default", guarded(0));
    assert_int_equal(put(at("dir/file"), "new", true, &e), 0);
    assert_true(has_list(at("dir/file"), NULL));
    assert_int_equal(stat_of(at("dir/file")).st_mode & 07777, 0640);
    assert_int_equal(put(at("dir/fresh"), "new", true, &e), 0);
    assert_false(has_list(at("dir/fresh"), NULL));
}

/* The kernel takes capabilities from a file that is written; so do we. */
static void drops_capabilities(void **state) {
    (void)state;
    needs_root();
    needs_lists();
    struct err e = ERR_INIT;
    struct vfs_cap_data caps = {.magic_etc = htole32(VFS_CAP_REVISION_2)};
    caps.data[0].permitted = htole32(1u << CAP_NET_RAW);
    make_file("file", "old");
    if (setxattr(at("file"), "security.capability", &caps, sizeof caps, 0) < 0)
        skip();
    (void)!setxattr(at("file"), "trusted.inode", "1", 1, 0);
    assert_int_equal(setxattr(at("file"), "user.kept", "1", 1, 0), 0);
    assert_int_equal(put(at("file"), "new", true, &e), 0);
    assert_true(getxattr(at("file"), "security.capability", NULL, 0) < 0 && errno == ENODATA);
    assert_true(getxattr(at("file"), "trusted.inode", NULL, 0) < 0);
    assert_true(has_value(at("file"), "user.kept", "1"));
}

static int other_group(void) {
    struct err e = ERR_INIT;
    CHECK(become_nobody() == 0);
    CHECK(put(at("theirs/plain"), "new", true, &e) == 0);
    CHECK(put(at("theirs/denied"), "new", true, &e) == 0);
    CHECK(put(at("theirs/listed"), "new", true, &e) == 0);
    return 0;
}

/* A group that the file did not have before gets nothing that the others did not have. */
static void new_group_gains_nothing(void **state) {
    (void)state;
    needs_root();
    needs_lists();
    make_dir("theirs");
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    const char *names[] = {"theirs/plain", "theirs/denied", "theirs/listed"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_file(names[i], "old");
    assert_int_equal(chmod(at("theirs/plain"), 02676), 0);
    assert_int_equal(chmod(at("theirs/denied"), 0606), 0);
    struct acl acl = guarded(6);
    acl.entries[2].perm = htole16(4);
    set_list(at("theirs/listed"), FS_ATTRS_ACL, acl);
    in_child(other_group);
    assert_int_equal(stat_of(at("theirs/plain")).st_mode & 07777, 0666);
    assert_int_equal(stat_of(at("theirs/denied")).st_mode & 07777, 0600);
    acl.entries[4].perm = htole16(4);
    assert_true(has_list(at("theirs/listed"), &acl));
    assert_int_equal(stat_of(at("theirs/listed")).st_mode & 07777, 0664);
}

/* -- what cannot be kept -- */

static int refused_sets(void) {
    struct err e = ERR_INIT;
    CHECK(forbid(SYS_fsetxattr, EPERM) == 0);
    CHECK_OS(put(at("listed"), "new", true, &e), &e, -32600, EPERM);
    CHECK_OS(put(at("noted"), "new", false, &e), &e, -32600, EPERM);
    CHECK(put(at("plain"), "new", true, &e) == 0);
    return 0;
}

static int no_attributes(void) {
    struct err e = ERR_INIT;
    CHECK(forbid(SYS_fremovexattr, EOPNOTSUPP) == 0 && forbid(SYS_flistxattr, EOPNOTSUPP) == 0);
    CHECK(forbid(SYS_fgetxattr, EOPNOTSUPP) == 0 && forbid(SYS_fsetxattr, EOPNOTSUPP) == 0);
    CHECK(forbid(SYS_getxattr, EOPNOTSUPP) == 0 && forbid(SYS_listxattr, EOPNOTSUPP) == 0);
    CHECK(put(at("plain"), "newer", true, &e) == 0);
    return 0;
}

static int unreadable(void) {
    struct err e = ERR_INIT;
    CHECK(become_nobody() == 0);
    CHECK_OS(put(at("theirs/blind"), "new", true, &e), &e, -32600, EACCES);
    return 0;
}

static void refuses_what_it_cannot_keep(void **state) {
    (void)state;
    needs_lists();
    make_file("listed", "old");
    make_file("noted", "old");
    make_file("plain", "old");
    set_list(at("listed"), FS_ATTRS_ACL, guarded(0));
    assert_int_equal(setxattr(at("noted"), "user.note", "1", 1, 0), 0);
    in_child(refused_sets);
    expect_text(at("listed"), "old");
    expect_text(at("noted"), "old");
    expect_text(at("plain"), "new");
    in_child(no_attributes);
    expect_text(at("plain"), "newer");
    assert_int_equal(entries("."), 3);
    if (geteuid() != 0)
        return;
    make_dir("theirs");
    make_file("theirs/blind", "old"); /* may be written, but its attributes not be read */
    assert_int_equal(setxattr(at("theirs/blind"), "user.note", "1", 1, 0), 0);
    assert_int_equal(chmod(at("theirs/blind"), 0622), 0);
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    in_child(unreadable);
    expect_text(at("theirs/blind"), "old");
    assert_int_equal(entries("theirs"), 1);
}

/* Above the maxima nothing is cut: the write is refused. */
static void bounds(void **state) {
    (void)state;
    _cleanup_attrs_ struct fs_attrs a = FS_ATTRS_INIT;
    make_file("file", "");
    if (setxattr(at("file"), "user.a", "value", 5, 0) < 0)
        skip();
    int fd = open(at("file"), O_PATH | O_CLOEXEC);
    assert_int_equal(fs_attrs_read(fd, &a), 0);
    assert_int_equal(a.others.len, sizeof "user.a" + 4 + 5);
    buf_fini(&a.others);
    a.others = BUF_INIT(a.others.len + 8);
    assert_int_equal(fs_attrs_read(fd, &a), -E2BIG);
    close(fd);
}

/* -- changes while it is written -- */

static struct fs_atomic *begin(const char *path, int *fd) {
    struct err e = ERR_INIT;
    struct fs_atomic *a = NULL;
    assert_int_equal(
        fs_atomic_begin(&(struct fs_write){.path = path, .follow = true}, NULL, &a, fd, &e), 0);
    assert_int_equal(fs_file_write_all(*fd, "new", 3), 0);
    return a;
}

/* The attributes at the end count, whichever process set them, on whichever file. */
static void follows_changes(void **state) {
    (void)state;
    needs_lists();
    struct err e = ERR_INIT;
    struct acl acl = guarded(0);
    int fd;
    make_file("file", "old");
    struct fs_atomic *a = begin(at("file"), &fd);
    set_list(at("file"), FS_ATTRS_ACL, acl);
    assert_int_equal(fs_atomic_commit(a, &e), 0);
    assert_true(has_list(at("file"), &acl));

    a = begin(at("file"), &fd);
    make_file("swapped", "secret");
    assert_int_equal(chmod(at("swapped"), 0600), 0);
    assert_int_equal(rename(at("swapped"), at("file")), 0);
    assert_int_equal(fs_atomic_commit(a, &e), 0);
    assert_true(has_list(at("file"), NULL));
    assert_int_equal(stat_of(at("file")).st_mode & 07777, 0600);

    a = begin(at("fresh"), &fd);
    make_file("fresh", "secret");
    assert_int_equal(chmod(at("fresh"), 0600), 0);
    assert_int_equal(fs_atomic_commit(a, &e), 0); /* it was there before */
    assert_int_equal(stat_of(at("fresh")).st_mode & 07777, 0600);
    expect_text(at("fresh"), "new");

    a = begin(at("file"), &fd);
    assert_int_equal(unlink(at("file")), 0);
    assert_int_equal(fs_atomic_commit(a, &e), 0);
    assert_int_equal(stat_of(at("file")).st_mode & 07777, 0600);

    a = begin(at("file"), &fd);
    assert_int_equal(unlink(at("file")), 0);
    make_link("fresh", "file");
    FAILS_OS(fs_atomic_commit(a, &e), &e, -32603, ELOOP);
    assert_int_equal(entries("."), 2);
}

/* Two at once: one of them wins, and neither loses the attributes. */
static void two_writers(void **state) {
    (void)state;
    needs_lists();
    struct err e = ERR_INIT;
    struct acl acl = guarded(0);
    int fd;
    make_file("file", "old");
    set_list(at("file"), FS_ATTRS_ACL, acl);
    struct fs_atomic *a = begin(at("file"), &fd), *b = begin(at("file"), &fd);
    assert_int_equal(fs_atomic_commit(b, &e), 0);
    assert_int_equal(fs_atomic_commit(a, &e), 0);
    assert_true(has_list(at("file"), &acl));
    assert_int_equal(entries("."), 1);
}

/* -- each step -- */

static int write_traced(void) {
    struct err e = ERR_INIT;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        return 77;
    raise(SIGSTOP);
    return put(at("file"), "new", true, &e) < 0;
}

/* The name of the temporary file, or NULL. */
static const char *temporary(void) {
    static char name[NAME_MAX + 1];
    const char *found = NULL;
    DIR *d = opendir(scratch);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strstr(e->d_name, ".tmp") != NULL)
            found = strcpy(name, e->d_name);
    }
    closedir(d);
    return found;
}

/* Under each name there is: nothing for anybody but the owner, or the list; whole under its own. */
static void check_step(const struct acl *acl) {
    const char *temp = temporary();
    char text[8] = "";
    int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text) == 3);
    close(fd);
    assert_true(strcmp(text, "old") == 0 || strcmp(text, "new") == 0);
    assert_true(has_list(at("file"), acl));
    if (temp == NULL || has_list(at(temp), acl))
        return;
    struct stat st = stat_of(at(temp));
    if ((st.st_mode & 077) != 0)
        fail_msg("%s has mode %o", temp, st.st_mode);
}

/* Runs the write up to its nth stop at a system call, then kills it. False: it ended before. */
static bool stop_at(int n, const struct acl *acl) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(write_traced());
    int status;
    for (int i = 0; i <= n; i++) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip();
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
        assert_true(WIFSTOPPED(status));
        check_step(acl);
        if (i < n)
            assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return true;
}

static void never_wider(void **state) {
    (void)state;
    needs_lists();
    struct acl acl = guarded(0);
    make_file("file", "old");
    set_list(at("file"), FS_ATTRS_ACL, acl);
    set_list(scratch, "system.posix_acl_default", guarded(6)); /* for the temporary file */
    int stops = 0;
    for (; stop_at(stops, &acl); stops++) {
        check_step(&acl);
        const char *left = temporary();
        if (left != NULL)
            assert_int_equal(unlink(at(left)), 0);
    }
    expect_text(at("file"), "new");
    assert_null(temporary());
    assert_in_range(stops, 40, 400);
}

/* -- copies -- */

static int copy(const char *from, const char *to, struct err *e) {
    static const atomic_bool never;
    struct fs_copy_file c = {AT_FDCWD, AT_FDCWD, from, to, false};
    return fs_copy_file_regular(&c, &never, e);
}

static int copy_elsewhere(void) {
    struct err e = ERR_INIT;
    CHECK(forbid(SYS_fsetxattr, EOPNOTSUPP) == 0);
    CHECK(copy(at("file"), at("plain"), &e) == 0);
    return 0;
}

static void copies_keep_the_list(void **state) {
    (void)state;
    needs_lists();
    struct err e = ERR_INIT;
    struct acl acl = guarded(4);
    make_file("file", "data");
    make_file("there", "old");
    set_list(at("file"), FS_ATTRS_ACL, acl);
    assert_int_equal(copy(at("file"), at("fresh"), &e), 0);
    assert_int_equal(copy(at("file"), at("there"), &e), 0);
    assert_true(has_list(at("fresh"), &acl) && has_list(at("there"), &acl));
    expect_text(at("there"), "data");
    in_child(copy_elsewhere);
    expect_text(at("plain"), "data");
    assert_int_equal(stat_of(at("plain")).st_mode & 07777, 0604); /* the group had nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(keeps_lists_and_attributes),
        scratch_test(inherits_nothing),
        scratch_test(drops_capabilities),
        scratch_test(new_group_gains_nothing),
        scratch_test(refuses_what_it_cannot_keep),
        scratch_test(bounds),
        scratch_test(follows_changes),
        scratch_test(two_writers),
        scratch_test(never_wider),
        scratch_test(copies_keep_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
