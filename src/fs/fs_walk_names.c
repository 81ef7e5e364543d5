#include "fs/fs_walk_names.h"

#include "base/utf8.h"

#include <endian.h>
#include <errno.h>

#define NAMES_MAX (64u << 10) /* names kept before the list is sorted and cut */
#define NAMES_SLACK 1024

void fs_walk_names_init(struct fs_walk_names *l) {
    *l = (struct fs_walk_names){
        .text = BUF_INIT(FS_WALK_NAMES_BYTES),
        .names = BUF_INIT(NAMES_MAX * sizeof(struct walk_name)),
    };
}

void fs_walk_names_fini(struct fs_walk_names *l) {
    buf_fini(&l->text);
    buf_fini(&l->names);
}

void fs_walk_names_begin(struct fs_walk_names *l, size_t keep) {
    l->text.len = l->names.len = 0;
    l->keep = keep;
    l->last = 0;
    l->cut = false;
}

size_t fs_walk_names_count(const struct fs_walk_names *l) {
    return l->names.len / sizeof(struct walk_name);
}

const struct walk_name *fs_walk_names_at(const struct fs_walk_names *l, size_t i) {
    return (const struct walk_name *)(const void *)l->names.p + i;
}

struct str fs_walk_names_str(const struct fs_walk_names *l, const struct walk_name *name) {
    return (struct str){l->text.p + name->off, name->len};
}

/* The first eight bytes as a number of the same order; the NUL behind a short name is its end. */
static uint64_t names_key(struct str s) {
    uint64_t key = 0;
    memcpy(&key, s.p, MIN(s.n, sizeof key));
    return be64toh(key);
}

static int names_compare(const void *a, const void *b, void *text) {
    const struct walk_name *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    const char *p = text;
    int r = memcmp(p + x->off, p + y->off, MIN(x->len, y->len));
    return r != 0 ? r : (x->len > y->len) - (x->len < y->len);
}

static void names_sort(struct fs_walk_names *l) {
    if (fs_walk_names_count(l) > 1)
        qsort_r(l->names.p, fs_walk_names_count(l), sizeof(struct walk_name), names_compare,
                l->text.p);
}

/* Compacts the texts of the names that are left. 0 or -ENOMEM. */
static int names_compact(struct fs_walk_names *l) {
    struct buf text = BUF_INIT(FS_WALK_NAMES_BYTES);
    size_t bytes = 0;
    for (size_t i = 0; i < fs_walk_names_count(l); i++)
        bytes += fs_walk_names_at(l, i)->len + 1u;
    int r = buf_reserve(&text, bytes);
    struct walk_name *names = (void *)l->names.p;
    for (size_t i = 0; r == 0 && i < fs_walk_names_count(l); i++) {
        size_t off = text.len;
        r = buf_put(&text, l->text.p + names[i].off, names[i].len + 1u);
        names[i].off = (uint32_t)off;
    }
    buf_fini(&l->text);
    l->text = text;
    return r;
}

/* Drops all but the first n, and every later name that sorts behind them. */
static void names_cut(struct fs_walk_names *l, size_t n) {
    if (fs_walk_names_count(l) > n) {
        l->names.len = n * sizeof(struct walk_name);
        l->last = n;
    }
}

/* Makes room when one of the buffers is full. */
static int names_shrink(struct fs_walk_names *l) {
    names_sort(l);
    names_cut(l, l->keep);
    int r = names_compact(l);
    while (r == 0 && l->text.len > FS_WALK_NAMES_BYTES / 4 * 3) {
        names_cut(l, fs_walk_names_count(l) / 2);
        l->cut = true;
        r = names_compact(l);
    }
    return r;
}

static bool names_beyond(const struct fs_walk_names *l, struct str name, uint64_t key) {
    if (l->last == 0)
        return false;
    const struct walk_name *last = fs_walk_names_at(l, l->last - 1);
    if (key != last->key)
        return key > last->key;
    struct str s = fs_walk_names_str(l, last);
    int r = memcmp(name.p, s.p, MIN(name.n, s.n));
    return r > 0 || (r == 0 && name.n > s.n);
}

static int names_put(struct fs_walk_names *l, struct str name, enum walk_kind kind) {
    uint64_t key = names_key(name);
    if (names_beyond(l, name, key))
        return 0;
    size_t limit = MIN(l->keep + l->keep / 4 + NAMES_SLACK, (size_t)NAMES_MAX);
    if (fs_walk_names_count(l) >= limit || FS_WALK_NAMES_BYTES - l->text.len < name.n + 1) {
        int r = names_shrink(l);
        if (r < 0)
            return r;
    }
    struct walk_name item = {key, (uint32_t)l->text.len, (uint16_t)name.n, (uint8_t)kind};
    int r = buf_put(&l->text, name.p, name.n);
    if (r == 0)
        r = buf_putc(&l->text, '\0');
    if (r == 0)
        r = buf_put(&l->names, &item, sizeof item);
    return r;
}

int fs_walk_names_add(struct fs_walk_names *l, struct str name, enum walk_kind kind) {
    if (l->exact || utf8_valid(name.p, name.n))
        return names_put(l, name, kind);
    _cleanup_buf_ struct buf lossy = BUF_INIT(3 * FS_NAME_MAX);
    int r = fs_put_lossy(&lossy, name);
    return r < 0 ? r : names_put(l, buf_str(&lossy), WALK_LOOK);
}

void fs_walk_names_sort(struct fs_walk_names *l) {
    names_sort(l);
    names_cut(l, l->keep);
}
