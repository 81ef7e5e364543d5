#include "net/resolve_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

void resolve_files_init(struct resolve_files *f, const char *hosts_path, const char *conf_path) {
    *f = (struct resolve_files){.hosts_path = hosts_path, .conf_path = conf_path};
}

void resolve_files_fini(struct resolve_files *f) {
    free(f->hosts);
    f->hosts = NULL;
}

static struct resolve_files_stamp resolve_files_stamp_of(const struct stat *st) {
    struct resolve_files_stamp stamp;
    memset(&stamp, 0, sizeof stamp); /* stamps are compared as bytes */
    stamp.dev = st->st_dev;
    stamp.ino = st->st_ino;
    stamp.size = st->st_size;
    stamp.mtime = st->st_mtim;
    stamp.ctime = st->st_ctim;
    return stamp;
}

static bool resolve_files_changed(const char *path, const struct resolve_files_stamp *old) {
    struct stat st;
    struct resolve_files_stamp now;
    memset(&now, 0, sizeof now);
    if (stat(path, &st) == 0)
        now = resolve_files_stamp_of(&st);
    return memcmp(&now, old, sizeof now) != 0;
}

/* Reads at most `max` bytes. A text to be freed, or NULL; *n is its length. Stamps the version
 * before it reads: a change in the meantime shows next time. */
static char *resolve_files_read(const char *path, size_t max, size_t *n,
                                struct resolve_files_stamp *stamp) {
    struct stat st;
    *n = 0;
    memset(stamp, 0, sizeof *stamp);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        if (stat(path, &st) == 0) /* unreadable: not to be tried again until it changes */
            *stamp = resolve_files_stamp_of(&st);
        return NULL;
    }
    *stamp = resolve_files_stamp_of(&st);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0)
        return NULL;
    size_t want = MIN((size_t)st.st_size, max);
    char *text = malloc(want);
    while (text != NULL && *n < want) {
        ssize_t got = read(fd, text + *n, want - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *n += (size_t)got;
    }
    if (text == NULL) /* try again next time */
        memset(stamp, 0, sizeof *stamp);
    return text;
}

static void resolve_files_refresh_hosts(struct resolve_files *f) {
    free(f->hosts);
    f->hosts =
        resolve_files_read(f->hosts_path, RESOLVE_FILES_HOSTS_MAX, &f->hosts_len, &f->hosts_stamp);
    /* Half a line could name another host. */
    while (f->hosts_len == RESOLVE_FILES_HOSTS_MAX && f->hosts[f->hosts_len - 1] != '\n')
        f->hosts_len--;
}

static void resolve_files_refresh_conf(struct resolve_files *f) {
    size_t n;
    char host[HOST_NAME_MAX + 1] = "";
    _cleanup_free_ char *text =
        resolve_files_read(f->conf_path, RESOLVE_FILES_CONF_MAX, &n, &f->conf_stamp);
    if (gethostname(host, sizeof host - 1) < 0)
        host[0] = '\0';
    dns_conf_parse((struct str){text, n}, str_of(host), &f->conf);
}

void resolve_files_refresh(struct resolve_files *f) {
    if (!f->known || resolve_files_changed(f->hosts_path, &f->hosts_stamp))
        resolve_files_refresh_hosts(f);
    if (!f->known || resolve_files_changed(f->conf_path, &f->conf_stamp))
        resolve_files_refresh_conf(f);
    f->known = true;
}
