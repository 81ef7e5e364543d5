/* Rows 1 to 50: files and directories. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Writes one byte more to a file and takes it back. */
static int append(const struct probe_row *r) {
    int fd = open(probe_path(r->path), O_WRONLY | O_APPEND | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return -errno;
    int e = fstat(fd, &st) < 0 || write(fd, "x", 1) != 1 ? -errno : 0;
    if (e == 0 && ftruncate(fd, st.st_size) < 0)
        e = -errno;
    close(fd);
    return e;
}

static int read_file(const struct probe_row *r) {
    char text[64];
    ssize_t n = probe_read(probe_path(r->path), text, sizeof(text));
    return n < 0 ? (int)n : 0;
}

/* Puts a small file back that a row removed. */
static void restore(const char *path, const char *text) {
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
        perror(path);
    if (fd >= 0)
        close(fd);
}

static int remove_file(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    char text[256] = "";
    (void)probe_read(path, text, sizeof(text));
    if (unlink(path) < 0)
        return -errno;
    restore(path, text);
    return 0;
}

/* Renames a workspace file over an outside one; what was there is lost. */
static int rename_over(const struct probe_row *r) {
    (void)r;
    return probe_done(rename(probe_path("W/mover"), probe_path("O/target")));
}

static int rename_in(const struct probe_row *r) {
    (void)r;
    const char *from = probe_path("O/file"), *to = probe_path("W/moved");
    if (rename(from, to) < 0)
        return -errno;
    rename(to, from);
    return 0;
}

static int hard_link(const struct probe_row *r) {
    const char *to = probe_path("W/linked");
    if (link(probe_path(r->path), to) < 0)
        return -errno;
    unlink(to);
    return 0;
}

static int symlink_to_file(const struct probe_row *r) {
    const char *name = probe_path("W/symlink");
    if (symlink(probe_path("O/file"), name) < 0)
        return -errno;
    int e = append(&(struct probe_row){.path = name});
    unlink(name);
    (void)r;
    return e;
}

static int symlink_to_directory(const struct probe_row *r) {
    char below[4096];
    const char *name = probe_path("W/symlink");
    if (symlink(aim.outside, name) < 0)
        return -errno;
    snprintf(below, sizeof(below), "%s/new", name);
    int e = probe_create(&(struct probe_row){.path = below});
    unlink(name);
    (void)r;
    return e;
}

/* Creates in the sibling, reached from `path` through "..". */
static int through_parent(const struct probe_row *r) {
    char path[8192];
    snprintf(path, sizeof(path), "%s/../%s/new", probe_path(r->path),
             strrchr(aim.outside, '/') + 1);
    return probe_create(&(struct probe_row){.path = path});
}

static int rename_away(const struct probe_row *r) {
    char away[4096];
    const char *path = probe_path(r->path);
    snprintf(away, sizeof(away), "%s-away", path);
    if (rename(path, away) < 0)
        return -errno;
    rename(away, path);
    return 0;
}

static int exchange(const struct probe_row *r) {
    const char *new = probe_path("W/exchanged"), *old = probe_path("W/.git");
    (void)r;
    if (mkdir(new, 0755) < 0)
        return -errno;
    int e = probe_done(renameat2(AT_FDCWD, new, AT_FDCWD, old, RENAME_EXCHANGE));
    if (e == 0)
        renameat2(AT_FDCWD, new, AT_FDCWD, old, RENAME_EXCHANGE);
    rmdir(new);
    return e;
}

static int remove_git(const struct probe_row *r) {
    const char *path = probe_path(r->path), *file = probe_path("W/.git/config");
    char text[256] = "";
    (void)probe_read(file, text, sizeof(text));
    bool removed = unlink(file) == 0;
    int e = probe_done(rmdir(path));
    if (e == 0)
        mkdir(path, 0755);
    if (removed)
        restore(file, text);
    return e;
}

static int make_directory(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    if (mkdir(path, 0755) < 0)
        return -errno;
    rmdir(path);
    return 0;
}

/* A file in a directory that was missing before. */
static int create_in_new(const struct probe_row *r) {
    char directory[4096];
    const char *path = probe_path(r->path);
    snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
    bool made = mkdir(directory, 0755) == 0;
    int e = probe_create(&(struct probe_row){.path = path});
    if (made)
        rmdir(directory);
    return e;
}

static int make_symlink(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    if (symlink("elsewhere", path) < 0)
        return -errno;
    unlink(path);
    return 0;
}

static int change_mode(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    struct stat st;
    if (stat(path, &st) < 0 || chmod(path, (mode_t)r->a) < 0)
        return -errno;
    chmod(path, st.st_mode & 07777);
    return 0;
}

/* Gives a file to a user that we are not. */
static int change_owner(const struct probe_row *r) {
    uid_t other = geteuid() == 12345 ? 12346 : 12345;
    return probe_done(chown(probe_path(r->path), other, (gid_t)-1));
}

static int change_times(const struct probe_row *r) {
    return probe_done(utimensat(AT_FDCWD, probe_path(r->path), NULL, 0));
}

/* Column a: 0 user, 1 trusted, 2 file capabilities (CAP_SYS_ADMIN, effective). */
static int set_attribute(const struct probe_row *r) {
    static const char *const keys[] = {"user.probe", "trusted.probe", "security.capability"};
    static const unsigned char caps[20] = {1, 0, 0, 2, 0, 0, 0x20, 0};
    const char *path = probe_path(r->path);
    size_t size = r->a == 2 ? sizeof(caps) : 1;
    if (setxattr(path, keys[r->a], caps, size, 0) < 0)
        return -errno;
    removexattr(path, keys[r->a]);
    return 0;
}

static int cut(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    return probe_done(truncate(path, st.st_size));
}

/* Column a: mode, b: minor number of a memory device. */
static int make_node(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    if (mknod(path, (mode_t)r->a | 0600, makedev(1, (unsigned)r->b)) < 0)
        return -errno;
    unlink(path);
    return 0;
}

/* A read-only mount does not stop this by itself. Column a: how to open. */
static int write_fifo(const struct probe_row *r) {
    int fd = open(probe_path(r->path), r->a | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = write(fd, "PWNED", 5) == 5 ? 0 : -errno;
    close(fd);
    return e;
}

/* Opens for reading, then the descriptor's name for writing. */
static int reopen(const struct probe_row *r) {
    char name[64];
    int fd = open(probe_path(r->path), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    int e = write_fifo(&(struct probe_row){.path = name, .a = O_WRONLY | O_APPEND});
    close(fd);
    return e;
}

static int make_immutable(const struct probe_row *r) {
    int fd = open(probe_path(r->path), O_RDONLY | O_CLOEXEC), flags = 0;
    if (fd < 0)
        return -errno;
    int e = probe_done(ioctl(fd, FS_IOC_GETFLAGS, &flags));
    if (e == 0) {
        int wanted = flags | FS_IMMUTABLE_FL;
        e = probe_done(ioctl(fd, FS_IOC_SETFLAGS, &wanted));
        if (e == 0)
            ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
    close(fd);
    return e;
}

/* Column a: also open what the handle names. */
static int by_handle(const struct probe_row *r) {
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } u = {.handle.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    if (name_to_handle_at(AT_FDCWD, probe_path(r->path), &u.handle, &mount, 0) < 0)
        return -errno;
    if (!r->a)
        return 0;
    int directory = open(probe_path("O"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    int e = probe_opened(open_by_handle_at(directory, &u.handle, O_WRONLY | O_CLOEXEC));
    close(directory);
    return e;
}

/* Handles of a file system are guessable: an inode's without asking for it. */
static int forged_handle(const struct probe_row *r) {
    struct {
        unsigned bytes;
        int type;
        unsigned inode[2];
    } h = {8, 1 /* FILEID_INO32_GEN */, {2, 0}};
    (void)r;
    int directory = open(aim.ws, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    int e = probe_opened((int)syscall(SYS_open_by_handle_at, directory, &h, O_RDONLY | O_CLOEXEC));
    close(directory);
    return PROBE_REACHED(e, ESTALE);
}

static int list(const struct probe_row *r) {
    DIR *d = opendir(probe_path(r->path));
    if (!d)
        return -errno;
    closedir(d);
    return 0;
}

/* Directories that another server of this protocol keeps; %u is the user. Column a: list. */
static int foreign_directory(const struct probe_row *r) {
    char path[4096];
    snprintf(path, sizeof(path), "/tmp/codex-%s-%u%s", r->path, geteuid(), r->a ? "" : "/new");
    struct probe_row at = {.path = path};
    return r->a ? list(&at) : probe_create(&at);
}

static int unnamed(const struct probe_row *r) {
    return probe_opened(open(probe_path(r->path), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
}

static int look_at(const struct probe_row *r) {
    struct stat st;
    return probe_done(stat(probe_path(r->path), &st));
}

static int go_to(const struct probe_row *r) {
    return probe_done(chdir(probe_path(r->path)));
}

static int execute(const struct probe_row *r) {
    return probe_execute(probe_path(r->path));
}

const struct probe_row probe_files[] = {
    {1, probe_create, "W/new", 0, 0},
    {2, probe_create, "O/new", 0, 0},
    {3, probe_create, "~/etc/", 0, 0},
    {4, probe_create, "~/", 0, 0},
    {5, probe_create, "~/root/", 0, 0},
    {6, probe_create, "~/tmp/", 0, 0},
    {7, append, "O/file", 0, 0},
    {8, probe_open, "/etc/passwd", O_WRONLY | O_APPEND, 0},
    {9, remove_file, "O/file", 0, 0},
    {10, rename_over, NULL, 0, 0},
    {11, rename_in, NULL, 0, 0},
    {12, hard_link, "O/file", 0, 0},
    {13, hard_link, "W/.git/config", 0, 0},
    {14, append, "W/hardlink", 0, 0},
    {15, symlink_to_file, NULL, 0, 0},
    {16, symlink_to_directory, NULL, 0, 0},
    {17, through_parent, "W", 0, 0},
    {18, probe_create, "W/.git/new", 0, 0},
    {19, append, "W/.git/config", 0, 0},
    {20, rename_away, "W/.git", 0, 0},
    {21, exchange, NULL, 0, 0},
    {22, remove_file, "W/.git/config", 0, 0},
    {23, remove_git, "W/.git", 0, 0},
    {24, make_directory, "W/.codex", 0, 0},
    {25, create_in_new, "W/.codex/config.toml", 0, 0},
    {26, make_symlink, "W/.agents", 0, 0},
    {27, create_in_new, "W/.aws/credentials", 0, 0},
    {28, rename_away, "W", 0, 0},
    {29, change_mode, "O/file", 0600, 0},
    {30, change_mode, "W/.git/config", 0600, 0},
    {31, change_owner, "W/file", 0, 0},
    {32, change_times, "O/file", 0, 0},
    {33, set_attribute, "O/file", 0, 0},
    {34, set_attribute, "W/file", 1, 0},
    {35, set_attribute, "W/file", 2, 0},
    {36, cut, "O/file", 0, 0},
    {37, make_node, "W/node", S_IFCHR, 1},
    {38, make_node, "W/node", S_IFCHR, 3},
    {39, make_node, "W/new-fifo", S_IFIFO, 0},
    {40, write_fifo, "O/fifo", O_WRONLY, 0},
    {41, change_mode, "W/file", 04755, 0},
    {42, make_immutable, "W/file", 0, 0},
    {43, by_handle, "O/file", 1, 0},
    {44, by_handle, "O/file", 0, 0},
    {45, read_file, "D/secret", 0, 0},
    {46, read_file, "O/file", 0, 0},
    {47, read_file, "/etc/shadow", 0, 0},
    {48, foreign_directory, "daemon", 1, 0},
    {49, foreign_directory, "daemon", 0, 0},
    {50, foreign_directory, "bwrap-synthetic-mount-targets", 0, 0},
    /* Not of the table. */
    {231, reopen, "O/file", 0, 0},
    {232, unnamed, "O", 0, 0},
    {233, write_fifo, "O/fifo", O_RDWR, 0},
    {234, reopen, "O/fifo", 0, 0},
    {235, forged_handle, NULL, 0, 0},
    {236, look_at, "D/secret", 0, 0},
    {237, execute, "D/program", 0, 0},
    {238, go_to, "D", 0, 0},
    {239, list, "D", 0, 0},
    {240, unnamed, "W", 0, 0},
    {0, NULL, NULL, 0, 0},
};
