/*
 * faultfs DIRECTORY MOUNTPOINT [fold]: shows a directory through FUSE, with faults asked for by
 * name. With "fold" it ignores case: a name that is not there stands for one that differs in case.
 *
 * A file named eN-OP fails OP with errno N; hang-OP makes OP wait; short-OP lets read and write
 * move a few bytes at a time. With @OFFSET behind it the fault begins there; whatever follows a
 * dot tells files apart: "e5-read@4194304.bin". OP is the name of a callback below: stat, open,
 * read, write, flush, fsync, list, create, ...
 *
 * A call that waits says so on standard output, "hang OP PATH", and when it goes on "went OP PATH"
 * (let go) or "gave OP PATH" (its caller was killed). Standard input: "release" lets go those that
 * wait and all later ones until "hold". Its end ends the program and the mount, with ENOTCONN for
 * the calls that still wait.
 */

#define FUSE_USE_VERSION 31

#include <fuse.h>
#include <fuse_lowlevel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREADS 160        /* calls that may wait at a time */
#define SHORT_BYTES 4099u  /* moved by one call of a short-read or short-write */
#define POLL_NS 20000000   /* between two looks whether the caller was killed */
#define MAX_BACKGROUND 256 /* reads and writes that the kernel has under way */

static const char *root;
static bool fold;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all below, and for stdout */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool open_gate;

enum kind { NONE, FAIL, HANG, SHORT };

struct fault {
    enum kind kind;
    int error;
    off_t offset; /* where it begins */
};

/* The fault that the name of `path` asks for in `op`. */
static struct fault fault_of(const char *path, const char *op) {
    struct fault f = {.kind = NONE};
    if (path == NULL) /* removed while open */
        return f;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dash = strchr(name, '-');
    size_t n = strlen(op);
    if (dash == NULL || strncmp(dash + 1, op, n) != 0 || strchr("@.", dash[1 + n]) == NULL)
        return f;
    if (dash[1 + n] == '@')
        f.offset = (off_t)strtoll(dash + 2 + n, NULL, 10);
    if (strncmp(name, "hang-", 5) == 0)
        f.kind = HANG;
    else if (strncmp(name, "short-", 6) == 0)
        f.kind = SHORT;
    else if (name[0] == 'e' && (f.error = atoi(name + 1)) > 0)
        f.kind = FAIL;
    return f;
}

static void say(const char *what, const char *op, const char *path) {
    printf("%s %s %s\n", what, op, path);
    fflush(stdout);
}

/* Waits until released; -EINTR when the caller was killed first. */
static int hang(const char *op, const char *path) {
    int r = 0;
    pthread_mutex_lock(&lock);
    if (!open_gate) {
        say("hang", op, path);
        while (!open_gate && r == 0) {
            struct timespec t;
            clock_gettime(CLOCK_REALTIME, &t);
            t.tv_nsec += POLL_NS;
            t.tv_sec += t.tv_nsec / 1000000000;
            t.tv_nsec %= 1000000000;
            pthread_cond_timedwait(&released, &lock, &t);
            r = fuse_interrupted() ? -EINTR : 0;
        }
        say(r < 0 ? "gave" : "went", op, path);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* Does what the name asks for; 0 to go on. */
static int check(const char *path, const char *op) {
    struct fault f = fault_of(path, op);
    return f.kind == FAIL ? -f.error : f.kind == HANG ? hang(op, path) : 0;
}

/* Like check(), for bytes at an offset. Cuts *size to the bytes in front of the fault. */
static int check_range(const char *path, const char *op, size_t *size, off_t offset) {
    struct fault f = fault_of(path, op);
    if (f.kind == NONE)
        return 0;
    if (offset < f.offset) {
        off_t left = f.offset - offset;
        *size = (off_t)*size > left ? (size_t)left : *size;
        return 0;
    }
    if (f.kind == SHORT)
        *size = *size > SHORT_BYTES ? SHORT_BYTES : *size;
    return f.kind == FAIL ? -f.error : f.kind == HANG ? hang(op, path) : 0;
}

/* Gives the last component of a path the spelling it has on disk, if it differs in case only. */
static void spell(char *path) {
    struct stat st;
    char *slash = strrchr(path, '/');
    if (lstat(path, &st) == 0)
        return;
    *slash = '\0';
    DIR *d = opendir(path);
    *slash = '/';
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strcasecmp(e->d_name, slash + 1) == 0)
            memcpy(slash + 1, e->d_name, strlen(e->d_name));
    if (d != NULL)
        closedir(d);
}

/* Checks, and says where the file behind `path` is. */
static int enter(const char *path, const char *op, char real[static PATH_MAX]) {
    int n = snprintf(real, PATH_MAX, "%s%s", root, path);
    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    for (char *p = real + strlen(root); fold && p != NULL && p[0] != '\0' && p[1] != '\0';) {
        char *next = strchr(p + 1, '/');
        if (next != NULL)
            *next = '\0';
        spell(real);
        if (next != NULL)
            *next = '/';
        p = next;
    }
    return check(path, op);
}

static int result(int r) {
    return r < 0 ? -errno : 0;
}

static int ff_stat(const char *path, struct stat *st, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    int r = enter(path, "stat", real);
    if (r < 0)
        return r;
    return result(fi ? fstat((int)fi->fh, st) : lstat(real, st));
}

static int ff_readlink(const char *path, char *target, size_t size) {
    char real[PATH_MAX];
    int r = enter(path, "readlink", real);
    if (r < 0)
        return r;
    ssize_t n = readlink(real, target, size - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    return 0;
}

static int ff_mkdir(const char *path, mode_t mode) {
    char real[PATH_MAX];
    int r = enter(path, "mkdir", real);
    return r < 0 ? r : result(mkdir(real, mode));
}

static int ff_unlink(const char *path) {
    char real[PATH_MAX];
    int r = enter(path, "unlink", real);
    return r < 0 ? r : result(unlink(real));
}

static int ff_rmdir(const char *path) {
    char real[PATH_MAX];
    int r = enter(path, "rmdir", real);
    return r < 0 ? r : result(rmdir(real));
}

static int ff_symlink(const char *target, const char *path) {
    char real[PATH_MAX];
    int r = enter(path, "symlink", real);
    return r < 0 ? r : result(symlink(target, real));
}

/* Source and destination are asked for faults. */
static int ff_rename(const char *from, const char *to, unsigned flags) {
    char real[2][PATH_MAX];
    int r = enter(from, "rename", real[0]);
    if (r == 0)
        r = enter(to, "rename", real[1]);
    return r < 0 ? r : result(renameat2(AT_FDCWD, real[0], AT_FDCWD, real[1], flags));
}

static int ff_link(const char *from, const char *to) {
    char real[2][PATH_MAX];
    int r = enter(from, "link", real[0]);
    if (r == 0)
        r = enter(to, "link", real[1]);
    return r < 0 ? r : result(link(real[0], real[1]));
}

static int ff_chmod(const char *path, mode_t mode, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    int r = enter(path, "chmod", real);
    if (r < 0)
        return r;
    return result(fi ? fchmod((int)fi->fh, mode) : chmod(real, mode));
}

static int ff_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    (void)fi;
    int r = enter(path, "chown", real);
    return r < 0 ? r : result(lchown(real, uid, gid));
}

static int ff_utimens(const char *path, const struct timespec tv[2], struct fuse_file_info *fi) {
    char real[PATH_MAX];
    (void)fi;
    int r = enter(path, "utimens", real);
    return r < 0 ? r : result(utimensat(AT_FDCWD, real, tv, AT_SYMLINK_NOFOLLOW));
}

static int ff_truncate(const char *path, off_t size, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    int r = enter(path, "truncate", real);
    if (r < 0)
        return r;
    return result(fi ? ftruncate((int)fi->fh, size) : truncate(real, size));
}

/* Nothing is cached: every read and write of a client comes here. */
static int opened(int fd, struct fuse_file_info *fi) {
    if (fd < 0)
        return -errno;
    fi->fh = (uint64_t)fd;
    fi->direct_io = 1;
    return 0;
}

static int ff_create(const char *path, mode_t mode, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    int r = enter(path, "create", real);
    return r < 0 ? r : opened(open(real, fi->flags | O_CREAT | O_CLOEXEC, mode), fi);
}

static int ff_open(const char *path, struct fuse_file_info *fi) {
    char real[PATH_MAX];
    int r = enter(path, "open", real);
    return r < 0 ? r : opened(open(real, fi->flags | O_CLOEXEC), fi);
}

static int ff_read(const char *path, char *dst, size_t size, off_t offset,
                   struct fuse_file_info *fi) {
    int r = check_range(path, "read", &size, offset);
    if (r < 0)
        return r;
    ssize_t n = pread((int)fi->fh, dst, size, offset);
    return n < 0 ? -errno : (int)n;
}

static int ff_write(const char *path, const char *src, size_t size, off_t offset,
                    struct fuse_file_info *fi) {
    int r = check_range(path, "write", &size, offset);
    if (r < 0)
        return r;
    ssize_t n = pwrite((int)fi->fh, src, size, offset);
    return n < 0 ? -errno : (int)n;
}

/* What close(2) waits for. */
static int ff_flush(const char *path, struct fuse_file_info *fi) {
    (void)fi;
    return check(path, "flush");
}

static int ff_release(const char *path, struct fuse_file_info *fi) {
    (void)path;
    return result(close((int)fi->fh));
}

static int ff_fsync(const char *path, int datasync, struct fuse_file_info *fi) {
    (void)datasync;
    int r = check(path, "fsync");
    return r < 0 ? r : result(fsync((int)fi->fh));
}

static int ff_list(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                   struct fuse_file_info *fi, enum fuse_readdir_flags flags) {
    char real[PATH_MAX];
    (void)offset, (void)fi, (void)flags;
    int r = enter(path, "list", real);
    DIR *d = r < 0 ? NULL : opendir(real);
    if (d == NULL)
        return r < 0 ? r : -errno;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st = {.st_ino = e->d_ino, .st_mode = (mode_t)DTTOIF(e->d_type)};
        if (fill(buf, e->d_name, &st, 0, 0) != 0)
            break;
    }
    closedir(d);
    return 0;
}

static void *ff_init(struct fuse_conn_info *conn, struct fuse_config *cfg) {
    conn->max_background = MAX_BACKGROUND;
    cfg->intr = 1;
    cfg->intr_signal = SIGUSR1;
    cfg->hard_remove = 1;
    cfg->entry_timeout = cfg->attr_timeout = cfg->negative_timeout = 0;
    return NULL;
}

static const struct fuse_operations operations = {
    .getattr = ff_stat,
    .readlink = ff_readlink,
    .mkdir = ff_mkdir,
    .unlink = ff_unlink,
    .rmdir = ff_rmdir,
    .symlink = ff_symlink,
    .rename = ff_rename,
    .link = ff_link,
    .chmod = ff_chmod,
    .chown = ff_chown,
    .utimens = ff_utimens,
    .truncate = ff_truncate,
    .create = ff_create,
    .open = ff_open,
    .read = ff_read,
    .write = ff_write,
    .flush = ff_flush,
    .release = ff_release,
    .fsync = ff_fsync,
    .readdir = ff_list,
    .init = ff_init,
};

static void *serve(void *arg) {
    struct fuse_session *se = arg;
    struct fuse_buf b = {.mem = NULL};
    int r;
    while ((r = fuse_session_receive_buf(se, &b)) > 0 || r == -EINTR)
        if (r > 0)
            fuse_session_process_buf(se, &b);
    free(b.mem);
    return NULL;
}

static void obey(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        pthread_mutex_lock(&lock);
        open_gate = strcmp(line, "release\n") == 0;
        pthread_cond_broadcast(&released);
        pthread_mutex_unlock(&lock);
    }
}

static void ignore(int number) {
    (void)number;
}

int main(int argc, char *argv[]) {
    fold = argc == 4 && strcmp(argv[3], "fold") == 0;
    if (argc != 3 && !fold) {
        fprintf(stderr, "usage: faultfs DIRECTORY MOUNTPOINT [fold]\n");
        return 2;
    }
    root = argv[1];
    umask(0);
    /* The library sends it to the thread of an interrupted call, and sets no handler. */
    signal(SIGUSR1, ignore);
    signal(SIGPIPE, SIG_IGN);
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse *f = fuse_new(&args, &operations, sizeof operations, NULL);
    if (f == NULL || fuse_mount(f, argv[2]) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, serve, fuse_get_session(f)) != 0)
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    obey();
    umount2(argv[2], MNT_DETACH);
    /* The kernel fails whatever is under way when the descriptor of the mount is closed. */
    _exit(0);
}
