#include "client/localwalk.h"

#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define NAME_MAX_TOTAL (1 << 20) /* bytes of a relative name */

struct level {
    DIR *dir;
    dev_t dev;
    ino_t ino;
    size_t name; /* length of the name of the directory */
    struct stat st;
    bool is_link, failed;
};

struct localwalk {
    struct level levels[LOCALWALK_DEPTH_MAX];
    size_t depth;
    bool follow;
    bool begun, ended;
    bool pending, pending_link; /* the last entry is a directory to enter; through a link */
    struct buf name;            /* of the entry, with its NUL */
};

struct localwalk *localwalk_new(int root, bool follow) {
    struct localwalk *w = calloc(1, sizeof(*w));
    DIR *dir = w == NULL ? NULL : fdopendir(root);
    if (dir == NULL || fstat(dirfd(dir), &w->levels[0].st) < 0) {
        if (dir != NULL)
            closedir(dir);
        else
            close(root);
        free(w);
        return NULL;
    }
    w->levels[0].dir = dir;
    w->levels[0].dev = w->levels[0].st.st_dev;
    w->levels[0].ino = w->levels[0].st.st_ino;
    w->depth = 1;
    w->follow = follow;
    w->name = BUF_INIT(NAME_MAX_TOTAL);
    return w;
}

void localwalk_free(struct localwalk *w) {
    if (w == NULL)
        return;
    while (w->depth > 0)
        closedir(w->levels[--w->depth].dir);
    buf_fini(&w->name);
    free(w);
}

static int name_set(struct localwalk *w, size_t keep, const char *leaf) {
    w->name.len = keep;
    int r = keep > 0 && leaf[0] != '\0' ? buf_putc(&w->name, '/') : 0;
    if (r == 0)
        r = buf_put(&w->name, leaf, strlen(leaf) + 1);
    return r < 0 ? -ENOMEM : 0;
}

static const char *leaf_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

static bool holds_itself(const struct localwalk *w, const struct stat *st) {
    for (size_t i = 0; i < w->depth; i++) {
        if (w->levels[i].dev == st->st_dev && w->levels[i].ino == st->st_ino)
            return true;
    }
    return false;
}

/* Enters the directory that was the last entry. 0, or the errno of a fault. */
static int enter(struct localwalk *w) {
    struct level *parent = &w->levels[w->depth - 1], *l = &w->levels[w->depth];
    bool is_link = w->pending_link;
    const char *leaf = leaf_of(w->name.p);
    w->pending = false;
    if (w->depth == LOCALWALK_DEPTH_MAX)
        return EMFILE;
    int fd = openat(dirfd(parent->dir), leaf,
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (is_link ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return errno;
    if (fstat(fd, &l->st) < 0 || holds_itself(w, &l->st)) {
        close(fd);
        return ELOOP;
    }
    l->dir = fdopendir(fd);
    if (l->dir == NULL) {
        close(fd);
        return ENOMEM;
    }
    l->dev = l->st.st_dev;
    l->ino = l->st.st_ino;
    l->name = strlen(w->name.p);
    l->is_link = is_link;
    w->depth++;
    return 0;
}

static void fill(const struct localwalk *w, struct localwalk_item *item) {
    item->name = w->name.p;
    item->leaf = item->name[0] == '\0' ? "." : leaf_of(item->name);
    item->dir = dirfd(w->levels[w->depth - 1].dir);
}

/* The entry whose name is set: stat and what follows from it. */
static void look(struct localwalk *w, struct localwalk_item *item) {
    fill(w, item);
    item->what = LOCALWALK_ENTRY;
    if (fstatat(item->dir, item->leaf, &item->st, AT_SYMLINK_NOFOLLOW) < 0) {
        item->what = LOCALWALK_FAULT;
        item->error = errno;
        return;
    }
    item->is_link = S_ISLNK(item->st.st_mode);
    struct stat target;
    if (item->is_link && w->follow) {
        if (fstatat(item->dir, item->leaf, &target, 0) < 0) {
            item->what = LOCALWALK_FAULT;
            item->error = errno;
            return;
        }
        item->st = target;
    }
    if (S_ISDIR(item->st.st_mode)) {
        w->pending = true;
        w->pending_link = item->is_link;
    }
}

/* The end of the innermost directory; the root stays open until the walk is freed. */
static int leave(struct localwalk *w, struct localwalk_item *item) {
    struct level *l = &w->levels[w->depth - 1];
    w->name.len = l->name;
    if (buf_putc(&w->name, '\0') < 0)
        return -ENOMEM;
    item->what = LOCALWALK_LEAVE;
    item->st = l->st;
    item->is_link = l->is_link;
    if (w->depth == 1) {
        w->ended = true;
    } else {
        closedir(l->dir);
        w->depth--;
    }
    fill(w, item);
    return 0;
}

static void fault(const struct localwalk *w, struct localwalk_item *item, int error) {
    fill(w, item);
    item->what = LOCALWALK_FAULT;
    item->error = error;
}

static int begin(struct localwalk *w, struct localwalk_item *item) {
    w->begun = true;
    if (name_set(w, 0, "") < 0)
        return -ENOMEM;
    fill(w, item);
    item->what = LOCALWALK_ENTRY;
    item->st = w->levels[0].st;
    return 0;
}

/* The next entry of the innermost directory. */
static int read_on(struct localwalk *w, struct localwalk_item *item) {
    struct level *l = &w->levels[w->depth - 1];
    const struct dirent *d;
    do {
        errno = 0;
        d = l->failed ? NULL : readdir(l->dir);
    } while (d != NULL && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0));
    if (d == NULL && errno != 0) {
        l->failed = true;
        w->name.len = l->name;
        if (buf_putc(&w->name, '\0') < 0)
            return -ENOMEM;
        fault(w, item, EIO);
        return 0;
    }
    if (d == NULL)
        return leave(w, item);
    if (name_set(w, l->name, d->d_name) < 0)
        return -ENOMEM;
    look(w, item);
    return 0;
}

int localwalk_next(struct localwalk *w, struct localwalk_item *item) {
    *item = (struct localwalk_item){.what = LOCALWALK_END, .dir = -1};
    if (!w->begun)
        return begin(w, item);
    if (w->ended)
        return 0;
    int error = w->pending ? enter(w) : 0;
    if (error != 0) {
        fault(w, item, error);
        return 0;
    }
    return read_on(w, item);
}
