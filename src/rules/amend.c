#include "rules/amend.h"

#include "json/jsonw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define AMEND_TRIES 100 /* of a file that others keep replacing */

static int amend_fail(struct err *e, const char *what, const char *path, int r) {
    err_set(e, ERR_INTERNAL, "failed to %s %s: %s (os error %d)", what, path, err_os_text(-r), -r);
    return r;
}

static int amend_put_rule(struct buf *b, const struct execpolicy_words *words) {
    int r = buf_putz(b, "prefix_rule(pattern=[");
    for (size_t i = 0; r == 0 && i < words->n; i++) {
        r = i == 0 ? 0 : buf_putz(b, ", ");
        if (r == 0)
            r = jsonw_str(b, words->list[i]);
    }
    return r == 0 ? buf_putz(b, "], decision=\"allow\")") : r;
}

/* -- the file -- */

/* Whether the path still names the open file. */
static bool amend_is_there(const char *path, const struct stat *open) {
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == open->st_dev && now.st_ino == open->st_ino;
}

/* Opens and locks the file that the path names. The descriptor or -errno. */
static int amend_open(const char *path) {
    for (int i = 0; i < AMEND_TRIES; i++) {
        struct stat st;
        _cleanup_close_ int fd =
            open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                 0666);
        if (fd < 0)
            return -errno;
        int r;
        do
            r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        if (r < 0 || fstat(fd, &st) < 0)
            return -errno;
        if (!S_ISREG(st.st_mode))
            return -EINVAL;
        if (amend_is_there(path, &st))
            return steal_fd(&fd);
    }
    return -EAGAIN;
}

static int amend_read(int fd, struct buf *b) {
    for (;;) {
        int r = buf_reserve(b, 16384);
        if (r < 0)
            return r == -ENOBUFS ? -EFBIG : r;
        ssize_t n = pread(fd, b->p + b->len, 16384, (off_t)b->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        b->len += (size_t)n;
    }
}

static bool amend_has(struct str text, struct str line) {
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t whole = end == NULL ? text.n : (size_t)(end - text.p) + 1;
        size_t n = end == NULL ? whole : whole - 1;
        if (n > 0 && text.p[n - 1] == '\r')
            n--;
        if (str_eq((struct str){text.p, n}, line))
            return true;
        str_take(&text, whole);
    }
    return false;
}

/* Appends in one write, or takes back what came short. */
static int amend_append(int fd, size_t size, struct str text) {
    ssize_t n;
    do
        n = write(fd, text.p, text.n);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n == text.n)
        return 0;
    int r = n < 0 ? -errno : -ENOSPC;
    return ftruncate(fd, (off_t)size) < 0 ? -EIO : r;
}

/* As amend_allow(). `line` is the rule. */
static int amend_file(const char *path, struct str line, struct err *e) {
    _cleanup_buf_ struct buf old = BUF_INIT(AMEND_FILE_MAX + 16384);
    _cleanup_buf_ struct buf more = BUF_INIT(AMEND_LINE_MAX + 2);
    _cleanup_close_ int fd = amend_open(path);
    if (fd < 0)
        return amend_fail(e, "open rules file", path, fd);
    int r = amend_read(fd, &old);
    if (r < 0)
        return amend_fail(e, "read rules file", path, r);
    if (amend_has(buf_str(&old), line))
        return 0;
    bool open_end = old.len > 0 && old.p[old.len - 1] != '\n';
    r = open_end ? buf_putc(&more, '\n') : 0;
    if (r == 0)
        r = buf_put(&more, line.p, line.n);
    if (r == 0)
        r = buf_putc(&more, '\n');
    if (r == 0 && old.len + more.len > AMEND_FILE_MAX)
        r = -EFBIG;
    if (r == 0)
        r = amend_append(fd, old.len, buf_str(&more));
    return r < 0 ? amend_fail(e, "write rules file", path, r) : 1;
}

int amend_allow(const char *user_dir, const struct execpolicy_words *words, struct buf *line,
                struct err *e) {
    _cleanup_buf_ struct buf b = BUF_INIT(AMEND_LINE_MAX);
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/rules", user_dir);
    if (n < 0 || (size_t)n + sizeof "/default.rules" > sizeof path)
        return amend_fail(e, "open rules directory below", user_dir, -ENAMETOOLONG);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return amend_fail(e, "create rules directory", path, -errno);
    memcpy(path + n, "/default.rules", sizeof "/default.rules");
    int r = amend_put_rule(&b, words);
    if (r == 0 && line != NULL)
        r = buf_put(line, b.p, b.len);
    if (r < 0)
        return amend_fail(e, "write rules file", path, r == -ENOBUFS ? -E2BIG : r);
    return amend_file(path, buf_str(&b), e);
}
