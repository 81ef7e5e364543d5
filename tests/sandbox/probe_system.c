/* Rows 51 to 90: /proc, /sys, /dev. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creates outside through another name of the root directory. */
static int create_below(const struct probe_row *r) {
    char path[8192];
    snprintf(path, sizeof(path), "%s%s/new", r->path, aim.outside);
    return probe_create(&(struct probe_row){.path = path});
}

static int create_from_cwd(const struct probe_row *r) {
    char path[8192];
    if (chdir(aim.ws) < 0)
        return -errno;
    snprintf(path, sizeof(path), "/proc/self/cwd/../%s/new", strrchr(aim.outside, '/') + 1);
    (void)r;
    return probe_create(&(struct probe_row){.path = path});
}

static int host_root(const struct probe_row *r) {
    char path[8192];
    snprintf(path, sizeof(path), "/proc/%d/root%s/file", aim.pid, aim.outside);
    (void)r;
    return probe_opened(open(path, O_RDONLY | O_CLOEXEC));
}

static int read_it(const char *path) {
    char text[256];
    ssize_t n = probe_read(path, text, sizeof(text));
    return n < 0 ? (int)n : 0;
}

static int host_environment(const struct probe_row *r) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", aim.pid);
    (void)r;
    return read_it(path);
}

static int read_row(const struct probe_row *r) {
    return read_it(r->path);
}

static int list_descriptors(const struct probe_row *r) {
    char text[256] = "";
    size_t length = 0;
    const struct dirent *entry;
    DIR *d = opendir(r->path);
    if (!d)
        return -errno;
    while ((entry = readdir(d)) && length + 16 < sizeof(text))
        if (entry->d_name[0] != '.')
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%.10s",
                                       length ? "," : "", entry->d_name);
    closedir(d);
    return probe_say("OK (%s)", text);
}

static int parent_memory(const struct probe_row *r) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
    (void)r;
    return probe_opened(open(path, O_RDWR | O_CLOEXEC));
}

/* Writes a setting back exactly as it was read: where it succeeds it changes the host. */
static int write_back(const struct probe_row *r) {
    char text[4096];
    ssize_t n = probe_read(r->path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    int fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, text, (size_t)n) == n ? 0 : -errno;
    close(fd);
    return e;
}

static int map_user(const struct probe_row *r) {
    int fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, "0 0 1\n", 6) == 6 ? 0 : -errno;
    close(fd);
    return e;
}

static int lower_score(const struct probe_row *r) {
    int fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, "-500", 4) == 4 ? 0 : -errno;
    close(fd);
    return e;
}

static int count_processes(const struct probe_row *r) {
    const struct dirent *entry;
    int count = 0;
    DIR *d = opendir(r->path);
    if (!d)
        return -errno;
    while ((entry = readdir(d)))
        count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
    closedir(d);
    return probe_say("%d", count);
}

/* Where control groups of either version are usually found. */
static const char *const groups[] = {"/sys/fs/cgroup",         "/sys/fs/cgroup/memory",
                                     "/sys/fs/cgroup/cpu",     "/sys/fs/cgroup/pids",
                                     "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified",
                                     "/sys/fs/cgroup/freezer"};

static int make_group(const struct probe_row *r) {
    char path[128];
    int e = -ENOENT;
    (void)r;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        snprintf(path, sizeof(path), "%s/sandbox-probe", groups[i]);
        if (mkdir(path, 0755) == 0) {
            rmdir(path);
            return 0;
        }
        e = errno == ENOENT ? e : -errno;
    }
    return e;
}

static int release_agent(const struct probe_row *r) {
    char path[128];
    int e = -ENOENT;
    (void)r;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        snprintf(path, sizeof(path), "%s/release_agent", groups[i]);
        int one = write_back(&(struct probe_row){.path = path});
        if (one == 0)
            return 0;
        e = one == -ENOENT ? e : one;
    }
    return e;
}

static int open_disk(const struct probe_row *r) {
    (void)r;
    return probe_opened(open(aim.disk, O_RDONLY | O_CLOEXEC));
}

static int write_null(const struct probe_row *r) {
    int fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, "x", 1) == 1 ? 0 : -errno;
    close(fd);
    return e;
}

static int open_terminal(const struct probe_row *r) {
    return probe_opened(open(r->path, O_RDWR | O_NOCTTY | O_CLOEXEC));
}

static int shared_file(const struct probe_row *r) {
    char path[256];
    snprintf(path, sizeof(path), "/dev/shm/%s", aim.shm);
    (void)r;
    return probe_opened(open(path, O_RDWR | O_CLOEXEC));
}

static int shared_script(const struct probe_row *r) {
    static const char script[] = "#!/bin/sh\nexit 0\n";
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/sandbox-probe-%d", (int)getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
    if (fd < 0)
        return -errno;
    int e = write(fd, script, sizeof(script) - 1) > 0 ? 0 : -errno;
    close(fd);
    if (e == 0)
        e = probe_execute(path);
    unlink(path);
    (void)r;
    return e;
}

/*
 * True when the outside directory can be written through what pid 1 has open; for a descriptor
 * (`any`) also when anything can be written there.
 */
static bool leads_out(const char *name, bool any) {
    static const char *const ways[] = {"", "/..", "/../..", "/../../.."};
    char path[8192];
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        snprintf(path, sizeof(path), "%s%s%s/new", name, ways[i], aim.outside);
        if (probe_create(&(struct probe_row){.path = path}) == 0)
            return true;
        snprintf(path, sizeof(path), "%s%s/sandbox-probe", name, ways[i]);
        if (any && probe_create(&(struct probe_row){.path = path}) == 0)
            return true;
    }
    return false;
}

/* Whatever pid 1 has open, and its directories: no way out of the mounts through them. */
static int through_init(const struct probe_row *r) {
    static const char *const lists[] = {"/proc/1/fd", "/proc/1/task/1/fd"};
    char name[512];
    const struct dirent *entry;
    int seen = 0;
    (void)r;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        DIR *d = opendir(lists[i]);
        while (d && (entry = readdir(d))) {
            snprintf(name, sizeof(name), "%s/%s", lists[i], entry->d_name);
            bool number = entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
            seen += number;
            if (number && leads_out(name, true))
                return 0;
        }
        if (d)
            closedir(d);
    }
    if (leads_out("/proc/1/cwd", false) || leads_out("/proc/1/root", false))
        return 0;
    return seen ? -ENOTDIR : -EACCES;
}

const struct probe_row probe_system[] = {
    {51, create_below, "/proc/1/root", 0, 0},
    {52, create_below, "/proc/self/root/..", 0, 0},
    {53, create_from_cwd, NULL, 0, 0},
    {54, host_root, NULL, 0, 0},
    {55, host_environment, NULL, 0, 0},
    {56, read_row, "/proc/1/environ", 0, 0},
    {57, read_row, "/proc/1/cmdline", 0, 0},
    {58, probe_open, "/proc/1/mem", O_RDWR, 0},
    {59, list_descriptors, "/proc/1/fd", 0, 0},
    {60, probe_open, "/proc/1/exe", O_WRONLY, 0},
    {61, probe_open, "/proc/self/mem", O_RDWR, 0},
    {62, parent_memory, NULL, 0, 0},
    {63, write_back, "/proc/sys/kernel/core_pattern", 0, 0},
    {64, probe_open, "/proc/sysrq-trigger", O_WRONLY, 0},
    {65, write_back, "/proc/sys/kernel/hostname", 0, 0},
    {66, probe_open, "/proc/kcore", O_RDONLY, 0},
    {67, map_user, "/proc/self/uid_map", 0, 0},
    {68, lower_score, "/proc/self/oom_score_adj", 0, 0},
    {69, write_back, "/proc/sys/user/max_user_namespaces", 0, 0},
    {70, count_processes, "/proc", 0, 0},
    {71, make_group, NULL, 0, 0},
    {72, release_agent, NULL, 0, 0},
    {73, probe_open, "/sys/power/state", O_WRONLY, 0},
    {74, probe_open, "/dev/mem", O_RDONLY, 0},
    {75, probe_open, "/dev/kmsg", O_RDONLY, 0},
    {76, probe_open, "/dev/kvm", O_RDWR, 0},
    {77, probe_open, "/dev/fuse", O_RDWR, 0},
    {78, probe_open, "/dev/loop-control", O_RDWR, 0},
    {79, open_disk, NULL, 0, 0},
    {80, probe_open, "/dev/net/tun", O_RDWR, 0},
    {81, probe_open, "/dev/vsock", O_RDWR, 0},
    {82, open_terminal, "/dev/ptmx", 0, 0},
    {83, open_terminal, "/dev/tty", 0, 0},
    {84, open_terminal, "/dev/console", 0, 0},
    {85, write_null, "/dev/null", 0, 0},
    {86, read_row, "/dev/urandom", 0, 0},
    {87, probe_create, "~/dev/", 0, 0},
    {88, probe_create, "~/dev/shm/", 0, 0},
    {89, shared_file, NULL, 0, 0},
    {90, shared_script, NULL, 0, 0},
    /* Not of the table. */
    {230, through_init, NULL, 0, 0},
    {241, read_row, "/proc/1/maps", 0, 0},
    {242, write_back, "/proc/sys/net/ipv4/ip_forward", 0, 0},
    {243, write_back, "/proc/sys/kernel/modprobe", 0, 0},
    {244, write_back, "/proc/sys/vm/overcommit_memory", 0, 0},
    {245, write_back, "/sys/kernel/uevent_helper", 0, 0},
    {0, NULL, NULL, 0, 0},
};
