/* Packets between the server and a helper in a sandbox, and what is on disk for one. */
#include "base/fdpass.h"
#include "confine/fs_helper_main.h"
#include "confine/fs_places.h"

#include "fs_run.h"

#include <sys/resource.h>
#include <time.h>

/* -- packets -- */

static void make_pair(int pair[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(int pair[2]) {
    close(pair[0]);
    close(pair[1]);
}

/* Sends a packet with n descriptors, as a helper that was taken over might. */
static void send_fds(int channel, size_t n) {
    char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec iov = {(char *)"text", 4};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof(int));
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &channel, sizeof channel);
    assert_int_equal(sendmsg(channel, &m, 0), 4);
}

static void passes(void **state) {
    (void)state;
    int pair[2], fd;
    char got[16];
    make_pair(pair);
    assert_int_equal(fdpass_send(pair[1], STR_LIT("ab"), (struct str){"cd", 2}, pair[1]), 0);
    assert_int_equal(fdpass_receive(pair[0], got, sizeof got, 0, &fd), 4);
    assert_memory_equal(got, "abcd", 4);
    assert_true(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    close(fd);
    assert_int_equal(fdpass_send(pair[1], STR_LIT("ab"), (struct str){"", 0}, -1), 0);
    assert_int_equal(fdpass_receive(pair[0], got, sizeof got, 0, &fd), 2);
    assert_int_equal(fd, -1);
    shutdown(pair[1], SHUT_RDWR);
    assert_int_equal(fdpass_receive(pair[0], got, sizeof got, 0, &fd), 0);
    close_pair(pair);
}

/* More descriptors than one are an error, and none of them stays: the teardown counts. */
static void too_many_descriptors(void **state) {
    (void)state;
    int pair[2], fd;
    char got[16];
    make_pair(pair);
    for (size_t n = 2; n <= 8; n++) {
        send_fds(pair[1], n);
        assert_int_equal(fdpass_receive(pair[0], got, sizeof got, 0, &fd), -EMSGSIZE);
        assert_int_equal(fd, -1);
    }
    send_fds(pair[1], 1);
    assert_int_equal(fdpass_receive(pair[0], got, 3, 0, &fd), -EMSGSIZE);
    assert_int_equal(fd, -1);
    close_pair(pair);
}

/* A shortage of ours is told from a helper that misbehaves. */
static void no_room_for_a_descriptor(void **state) {
    (void)state;
    int pair[2], fd;
    char got[16];
    struct rlimit limit;
    make_pair(pair);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {3, limit.rlim_max};
    send_fds(pair[1], 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    ssize_t n = fdpass_receive(pair[0], got, sizeof got, 0, &fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(n, -EMFILE);
    assert_int_equal(fd, -1);
    send_fds(pair[1], 1);
    assert_int_equal(fdpass_receive(pair[0], got, sizeof got, 0, &fd), 4);
    close(fd);
    close_pair(pair);
}

/* -- places -- */

static struct plan_entry entries[2];
static struct plan plan;

static struct fs_places *look_first(enum plan_access access) {
    static char root[sizeof scratch + 8], other[sizeof scratch + 8];
    snprintf(root, sizeof root, "%s/root", scratch);
    snprintf(other, sizeof other, "%s/other", scratch);
    entries[0] = (struct plan_entry){root, access};
    entries[1] = (struct plan_entry){other, PLAN_DENY};
    plan = (struct plan){.minimal = true, .entries = entries, .entry_count = 2, .cwd = "/"};
    struct fs_places *p = fs_places_look(&plan, true);
    assert_non_null(p);
    return p;
}

/* Whether the places are still as `*first` has them. If not, looks at them anew. */
static bool same(struct fs_places **first) {
    struct fs_places *now = fs_places_look(&plan, false);
    assert_non_null(now);
    bool r = fs_places_same(*first, now);
    fs_places_free(now);
    if (r)
        return true;
    fs_places_free(*first);
    *first = fs_places_look(&plan, true);
    return false;
}

/* Like same(), but tries again: other processes of the host mount something now and then. */
static bool stays(struct fs_places **first) {
    for (int i = 0; i < 100; i++) {
        if (same(first))
            return true;
    }
    return false;
}

static void changes(void **state) {
    (void)state;
    make_dir("root");
    struct fs_places *first = look_first(PLAN_WRITE);
    assert_true(stays(&first));
    make_file("root/file", "");
    assert_int_equal(chmod(at("root"), 0700), 0);
    assert_true(stays(&first));
    make_file("other", "");
    assert_false(same(&first));
    make_file("root/.git", "gitdir: ../tree");
    assert_false(same(&first));
    assert_true(stays(&first));
    make_dir("tree");
    assert_false(same(&first));
    make_dir("tree2");
    assert_int_equal(rename(at("tree2"), at("tree")), 0);
    assert_false(same(&first));
    make_link("nowhere", "root/.codex");
    assert_false(same(&first));
    assert_int_equal(rename(at("root"), at("old")), 0);
    assert_false(same(&first));
    make_link("old", "root"); /* the same directory as at first, but not as now */
    assert_false(same(&first));
    assert_true(stays(&first));
    fs_places_free(first);
}

/* Until times of files made from now on are later ones. */
static void pass_a_tick(void) {
    struct timespec began, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &began);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec == began.tv_sec && now.tv_nsec == began.tv_nsec);
}

/* A file with the number of the one before, which the file system gives again, is another. */
static void recreated(void **state) {
    (void)state;
    make_file("root", "");
    struct fs_places *first = look_first(PLAN_READ);
    for (int i = 0; i < 20; i++) {
        pass_a_tick();
        assert_int_equal(unlink(at("root")), 0);
        make_file("root", "");
        assert_false(same(&first));
        assert_true(stays(&first));
    }
    fs_places_free(first);
}

static int mounts_change(void) {
    CHECK(own_mounts() == 0);
    struct fs_places *first = look_first(PLAN_READ);
    CHECK(same(&first));
    CHECK(mount("tmpfs", at("elsewhere"), "tmpfs", 0, "size=4k") == 0);
    CHECK(!same(&first));
    CHECK(same(&first));
    fs_places_free(first);
    return 0;
}

static void mounts(void **state) {
    (void)state;
    needs_root();
    make_dir("elsewhere");
    in_child(mounts_change);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(passes),  scratch_test(too_many_descriptors),
        scratch_test(changes), scratch_test(recreated),
        scratch_test(mounts),  scratch_test(no_room_for_a_descriptor),
    };
    return cmocka_run_group_tests_name("fs_helper", tests, NULL, NULL);
}
