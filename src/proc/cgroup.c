#include "proc/cgroup.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CGROUP_TRIES 8

static const struct {
    const char *name;
    enum cgroup_controller bit;
} cgroup_known[] = {{"memory", CGROUP_MEMORY}, {"pids", CGROUP_PIDS}, {"cpu", CGROUP_CPU}};

static int cgroup_write(const char *dir, const char *file, const char *text) {
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, file) < 0)
        return -ENOMEM;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* The first line of a file without its newline; owned, or NULL. */
static char *cgroup_read_line(const char *path, const char *prefix) {
    FILE *f = fopen(path, "re");
    char *line = NULL, *found = NULL;
    size_t cap = 0;
    while (f != NULL && found == NULL && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, prefix, strlen(prefix)) == 0)
            found = strdup(line + strlen(prefix));
    }
    free(line);
    if (f != NULL)
        fclose(f);
    return found;
}

/* Whether a blank-separated list has the word. */
static bool cgroup_lists(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n) {
        bool starts = p == list || p[-1] == ' ';
        if (starts && (p[n] == ' ' || p[n] == '\0'))
            return true;
    }
    return false;
}

/* Moves the processes of `base` to `leaf`. How many there were, or -errno. */
static int cgroup_move_all(const char *base, const char *leaf) {
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/cgroup.procs", base) < 0)
        return -ENOMEM;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return -errno;
    _cleanup_free_ char *line = NULL;
    size_t cap = 0;
    int moved = 0, r = 0;
    for (; r == 0 && getline(&line, &cap, f) > 0; moved++) {
        line[strcspn(line, "\n")] = '\0';
        r = cgroup_write(leaf, "cgroup.procs", line);
        if (r == -ESRCH)
            r = 0; /* it ended meanwhile */
    }
    fclose(f);
    return r < 0 ? r : moved;
}

/* Empties base into a leaf below it, so that base may have controllers for its children. */
static int cgroup_step_down(const char *base) {
    _cleanup_free_ char *leaf = NULL;
    if (asprintf(&leaf, "%s/exec-server", base) < 0)
        return -ENOMEM;
    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return -errno;
    int r = 1;
    for (int tries = 0; r > 0 && tries < CGROUP_TRIES; tries++)
        r = cgroup_move_all(base, leaf); /* again: some forked meanwhile */
    return MIN(r, 0);
}

static unsigned cgroup_enable(const char *base, const char *available) {
    unsigned enabled = 0;
    for (size_t i = 0; i < ARRAY_LEN(cgroup_known); i++) {
        char text[16];
        snprintf(text, sizeof text, "+%s", cgroup_known[i].name);
        if (cgroup_lists(available, cgroup_known[i].name) &&
            cgroup_write(base, "cgroup.subtree_control", text) == 0)
            enabled |= cgroup_known[i].bit;
    }
    return enabled;
}

void cgroup_probe(struct cgroup_host *h, const char *mount, const char *self) {
    if (h->probed)
        return;
    h->probed = true;
    _cleanup_free_ char *own = cgroup_read_line(self, "0::");
    _cleanup_free_ char *base = NULL, *list = NULL, *available = NULL;
    if (own == NULL || asprintf(&base, "%s%s", mount, strcmp(own, "/") ? own : "") < 0 ||
        asprintf(&list, "%s/cgroup.controllers", base) < 0)
        return;
    available = cgroup_read_line(list, "");
    if (available == NULL || available[0] == '\0' || access(base, W_OK) < 0)
        return;
    int r = cgroup_step_down(base);
    if (r < 0) {
        log_info("no cgroups for limits: cannot use %s (errno %d)", base, -r);
        return;
    }
    h->controllers = cgroup_enable(base, available);
    if (h->controllers != 0)
        h->base = steal_ptr(&base);
}

void cgroup_host_fini(struct cgroup_host *h) {
    free(h->base);
    h->base = NULL;
}

int cgroup_make(struct cgroup_host *h, struct cgroup *g) {
    _cleanup_free_ char *dir = NULL;
    if (asprintf(&dir, "%s/command-%d-%" PRIu64, h->base, (int)getpid(), h->next++) < 0)
        return -ENOMEM;
    if (mkdir(dir, 0755) < 0)
        return -errno;
    g->dir = steal_ptr(&dir);
    return 0;
}

int cgroup_set(const struct cgroup *g, const char *file, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return cgroup_write(g->dir, file, text);
}

int cgroup_open_procs(const struct cgroup *g) {
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/cgroup.procs", g->dir) < 0)
        return -ENOMEM;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void cgroup_remove(struct cgroup *g) {
    if (g->dir != NULL && rmdir(g->dir) < 0)
        log_warn("cannot remove cgroup %s (errno %d)", g->dir, errno);
    free(g->dir);
    g->dir = NULL;
}
