#include "cli/cli_keep.h"

#include "base/uuid.h"
#include "cli/cli_args.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SUFFIX ".json"

static int fail(struct err *e, const char *what, const char *path, int num) {
    err_set(e, ERR_INTERNAL, "cannot %s %s: %s", what, path, strerror(num));
    return -num;
}

char *cli_keep_directory(const char *state_home, const char *home, struct err *e) {
    char *path = NULL;
    int r = 0;
    if (state_home != NULL && state_home[0] == '/') /* a relative one counts as unset */
        r = asprintf(&path, "%s/exec-server", state_home);
    else if (home != NULL && home[0] != '\0')
        r = asprintf(&path, "%s/.local/state/exec-server", home);
    else
        err_set(e, ERR_INVALID_PARAMS, "neither XDG_STATE_HOME nor HOME is set");
    return r < 0 ? NULL : path;
}

/* Makes the directory and its parents, of mode 0700. */
static int make_directory(const char *directory, struct err *e) {
    _cleanup_free_ char *path = strdup(directory);
    if (path == NULL)
        return fail(e, "make", directory, ENOMEM);
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char c = *p;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return fail(e, "make", path, errno);
        *p = c;
        if (c == '\0')
            return 0;
    }
}

static int open_directory(const char *directory, struct err *e) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : fail(e, "open", directory, errno);
}

static int write_all(int fd, struct str s) {
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        str_take(&s, (size_t)n);
    }
    return 0;
}

/* Changes to a directory happen one at a time, so that none removes what another has written. */
static int lock(int dir) {
    while (flock(dir, LOCK_EX) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/* Writes the text to a file of its own, then gives it its name. */
static int store(int dir, const char *name, struct str text, bool replace) {
    char temporary[sizeof ".new-" + UUID_LEN], file[80], id[UUID_LEN + 1];
    uuid_random(id);
    snprintf(temporary, sizeof temporary, ".new-%s", id);
    snprintf(file, sizeof file, "%s" SUFFIX, name);
    _cleanup_close_ int fd =
        openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, text);
    if (r == 0)
        r = replace ? renameat(dir, temporary, dir, file) : linkat(dir, temporary, dir, file, 0);
    if (r == -1)
        r = -errno;
    unlinkat(dir, temporary, 0);
    return r;
}

static int save(const char *directory, const struct cli_state *s, bool replace, struct err *e) {
    _cleanup_buf_ struct buf text = BUF_INIT(CLI_STATE_MAX);
    int r = cli_state_encode(s, &text);
    if (r < 0)
        return fail(e, "write the state of", s->name, -r);
    r = make_directory(directory, e);
    if (r < 0)
        return r;
    _cleanup_close_ int dir = open_directory(directory, e);
    if (dir < 0)
        return dir;
    r = lock(dir);
    if (r == 0)
        r = store(dir, s->name, buf_str(&text), replace);
    if (r == -EEXIST)
        return err_set(e, ERR_INVALID_PARAMS, "the name %s is taken", s->name), r;
    return r < 0 ? fail(e, "write a file in", directory, -r) : 0;
}

int cli_keep_create(const char *directory, const struct cli_state *s, struct err *e) {
    return save(directory, s, false, e);
}

int cli_keep_replace(const char *directory, const struct cli_state *s, struct err *e) {
    return save(directory, s, true, e);
}

static int read_text(int fd, struct buf *text) {
    for (;;) {
        int r = buf_reserve(text, 4096);
        if (r < 0)
            return r == -ENOBUFS ? -EFBIG : r;
        ssize_t n = read(fd, text->p + text->len, text->cap - text->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        text->len += (size_t)n;
    }
}

/* What is read must be a file of this user that nobody else can write. */
static int check_file(int fd, const char *file, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail(e, "read", file, errno);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "%s must be a file of this user that nobody else can write", file);
    return 0;
}

static int read_at(int dir, const char *name, struct cli_state *out, struct err *e) {
    char file[80];
    snprintf(file, sizeof file, "%s" SUFFIX, name);
    _cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "no process is kept under the name %s; see 'xs ps'", name),
               -ENOENT;
    if (fd < 0)
        return fail(e, "read", file, errno);
    _cleanup_buf_ struct buf text = BUF_INIT(2 * CLI_STATE_MAX);
    int r = check_file(fd, file, e);
    if (r < 0)
        return r;
    r = read_text(fd, &text);
    if (r < 0)
        return fail(e, "read", file, -r);
    r = cli_state_decode(buf_str(&text), out, e);
    if (r == 0 && strcmp(out->name, name) != 0) {
        cli_state_fini(out);
        r = err_set(e, ERR_INVALID_PARAMS, "the state file is damaged: it has another name");
    }
    return r;
}

int cli_keep_read(const char *directory, const char *name, struct cli_state *out, struct err *e) {
    *out = (struct cli_state){.name = NULL};
    if (!cli_args_is_name(name))
        return err_set(e, ERR_INVALID_PARAMS, "%.100s is no name of a process; see 'xs ps'", name);
    _cleanup_close_ int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "no process is kept under the name %s; see 'xs ps'", name),
               -ENOENT;
    return dir < 0 ? fail(e, "open", directory, errno) : read_at(dir, name, out, e);
}

void cli_keep_remove(const char *directory, const char *name, const char *session) {
    _cleanup_cli_state_ struct cli_state s = {.name = NULL};
    _cleanup_err_ struct err e = ERR_INIT;
    char file[80];
    _cleanup_close_ int dir = open_directory(directory, &e);
    if (dir < 0 || !cli_args_is_name(name) || lock(dir) < 0 || read_at(dir, name, &s, &e) < 0 ||
        strcmp(s.session, session) != 0)
        return;
    snprintf(file, sizeof file, "%s" SUFFIX, name);
    unlinkat(dir, file, 0);
}

/* The name that a file stands for, to be freed; NULL if it is no state file. */
static char *name_of(const char *file) {
    size_t n = strlen(file), suffix = strlen(SUFFIX);
    if (n <= suffix || strcmp(file + n - suffix, SUFFIX) != 0)
        return NULL;
    char *name = str_dup((struct str){file, n - suffix});
    if (name != NULL && !cli_args_is_name(name)) {
        free(name);
        name = NULL;
    }
    return name;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int cli_keep_names(const char *directory, char ***names, struct err *e) {
    size_t n = 0;
    DIR *d = opendir(directory);
    if (d == NULL && errno != ENOENT)
        return fail(e, "list", directory, errno);
    *names = calloc(CLI_KEEP_NAMES_MAX + 1, sizeof **names);
    if (*names == NULL) {
        if (d != NULL)
            closedir(d);
        return fail(e, "list", directory, ENOMEM);
    }
    struct dirent *entry;
    while (d != NULL && n < CLI_KEEP_NAMES_MAX && (entry = readdir(d)) != NULL) {
        (*names)[n] = name_of(entry->d_name);
        n += (*names)[n] != NULL;
    }
    if (d != NULL)
        closedir(d);
    qsort(*names, n, sizeof **names, by_name);
    return 0;
}

void cli_keep_names_free(char **names) {
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        free(names[i]);
    free(names);
}
