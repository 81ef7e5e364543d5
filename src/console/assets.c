#include "console/assets.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASSETS_MANIFEST_MAX 16384 /* bytes */

/* The program that has a page defines it again. */
__attribute__((weak)) const struct asset *assets_builtin(size_t *count) {
    *count = 0;
    return NULL;
}

bool assets_are_builtin(void) {
    size_t count;
    (void)assets_builtin(&count);
    return count > 0;
}

static void assets_tag(struct assets_file *f) {
    uint8_t digest[32];
    crypto_hash_sha256(digest, f->asset.data, f->asset.n);
    sodium_bin2hex(f->tag, sizeof f->tag, digest, ASSETS_TAG_LEN / 2);
}

static int assets_take_builtin(struct assets *a, struct err *e) {
    const struct asset *all = assets_builtin(&a->count);
    if (a->count == 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "--console: this program was built without the page; take "
                       "exec-server-console, or give --console-page DIR");
    a->files = calloc(a->count, sizeof *a->files);
    if (a->files == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    for (size_t i = 0; i < a->count; i++) {
        a->files[i].asset = all[i];
        assets_tag(&a->files[i]);
    }
    return 0;
}

/* -- from a directory -- */

/* Reads a whole file of at most `max` bytes, with a NUL behind. 0, or -errno with e set. */
static int assets_read(int dir, const char *name, size_t max, uint8_t **out, size_t *n,
                       struct err *e) {
    struct stat st;
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, ERR_INTERNAL, "--console-page: cannot read `%s`: %s", name,
                       err_os_text(errno));
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
        return err_set(e, ERR_INTERNAL, "--console-page: `%s` is no file of at most %zu bytes",
                       name, max);
    _cleanup_free_ uint8_t *p = malloc((size_t)st.st_size + 1);
    if (p == NULL || read(fd, p, (size_t)st.st_size) != st.st_size)
        return err_set(e, ERR_INTERNAL, "--console-page: cannot read `%s`", name);
    *n = (size_t)st.st_size;
    p[*n] = 0;
    *out = steal_ptr(&p);
    return 0;
}

/* "PATH TYPE FILE", the type may have blanks. Cuts the line up; false if it is none. */
static bool assets_split(char *line, const char **path, const char **type, const char **file) {
    char *first = strchr(line, ' '), *last = strrchr(line, ' ');
    if (first == NULL || first == last)
        return false;
    *first = *last = '\0';
    *path = line;
    *type = first + 1;
    *file = last + 1;
    return line[0] == '/' && (*type)[0] != '\0' && (*file)[0] != '\0' &&
           strchr(*file, '/') == NULL && strpbrk(*type, "\r\n") == NULL;
}

static int assets_add(struct assets *a, int dir, char *line, size_t *left, struct err *e) {
    const char *path, *type, *file;
    size_t n;
    if (a->count == ASSETS_MAX || !assets_split(line, &path, &type, &file))
        return err_set(e, ERR_INTERNAL, "--console-page: `%s` cannot be used", ASSETS_MANIFEST);
    int r = assets_read(dir, file, *left, &a->data[a->count], &n, e);
    if (r < 0)
        return r;
    *left -= n;
    struct assets_file *f = &a->files[a->count];
    f->asset = (struct asset){path, type, a->data[a->count], n};
    assets_tag(f);
    a->count++;
    return 0;
}

static int assets_take_dir(struct assets *a, const char *path, struct err *e) {
    size_t n, left = ASSETS_BYTES_MAX;
    uint8_t *text;
    _cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, ERR_INTERNAL, "--console-page: cannot open `%s`: %s", path,
                       err_os_text(errno));
    int r = assets_read(dir, ASSETS_MANIFEST, ASSETS_MANIFEST_MAX, &text, &n, e);
    if (r < 0)
        return r;
    a->text = (char *)text;
    a->files = calloc(ASSETS_MAX, sizeof *a->files);
    a->data = calloc(ASSETS_MAX, sizeof *a->data);
    if (a->files == NULL || a->data == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    char *rest = a->text, *line;
    while (r == 0 && (line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0')
            r = assets_add(a, dir, line, &left, e);
    }
    return r;
}

int assets_load(struct assets *a, const char *dir, struct err *e) {
    *a = (struct assets){.files = NULL};
    int r = dir != NULL ? assets_take_dir(a, dir, e) : assets_take_builtin(a, e);
    if (r == 0 && assets_find(a, STR_LIT("/")) == NULL)
        r = err_set(e, ERR_INTERNAL, "--console-page: there is no file for `/`");
    if (r < 0)
        assets_fini(a);
    return r;
}

void assets_fini(struct assets *a) {
    for (size_t i = 0; a->data != NULL && i < a->count; i++)
        free(a->data[i]);
    free(a->data);
    free(a->files);
    free(a->text);
    *a = (struct assets){.files = NULL};
}

const struct assets_file *assets_find(const struct assets *a, struct str path) {
    for (size_t i = 0; i < a->count; i++) {
        if (str_eqz(path, a->files[i].asset.path))
            return &a->files[i];
    }
    return NULL;
}
