#pragma once
/*
 * Watches under test: scans run at once, and what a watch tells is compared as text. The kernel has
 * queued the events when the call that caused them returns, so nothing has to be waited for.
 */

#include "files/fs_json.h"
#include "fs/fs_watch.h"

#include "fs_run.h"

#include <sys/inotify.h>

static struct fs_watch_set set;
static struct fs_watch watches[FS_WATCHES_MAX];
static int fd;

static inline void begin(void) {
    fs_watch_set_init(&set);
    fd = fs_watch_scan_instance();
    assert_true(fd >= 0);
}

/* Sets up a watch. 0; or -errno with e set. */
static inline int add(struct fs_watch *w, const char *path, bool recursive, struct err *e) {
    struct fs_watch_scan s;
    fs_watch_scan_init(&s, fd);
    assert_int_equal(fs_watch_put_drops(&set, &s), 0);
    s.recursive = recursive;
    s.room = FS_WATCH_DIRS_MAX - set.dirs - 1;
    int r = fs_watch_scan_open_root(&s, path, e);
    if (r == 0)
        assert_int_equal(fs_watch_init(w, &set, s.root, s.directory, recursive), 0);
    fs_watch_adopt(&set, r == 0 ? w : NULL, &s);
    fs_watch_scan_fini(&s);
    return r;
}

static inline void watch(struct fs_watch *w, const char *name, bool recursive) {
    struct err e = ERR_INIT;
    int r = add(w, name[0] == '/' ? name : at(name), recursive, &e);
    if (r < 0)
        fail_msg("watch %s: %s", name, err_msg(&e));
}

/* Does what waits to be done. Whether there was anything. */
static inline bool catch_up(void) {
    struct fs_watch *w;
    bool any = false;
    for (;;) {
        struct fs_watch_scan s;
        fs_watch_scan_init(&s, fd);
        int r = fs_watch_next(&set, &s, &w);
        assert_true(r >= 0);
        if (r == 0)
            return any;
        fs_watch_scan(&s);
        fs_watch_adopt(&set, w, &s);
        fs_watch_scan_fini(&s);
        any = true;
    }
}

/* Reads what the kernel has, once. Whether it had anything. */
static inline bool feed(void) {
    char buf[16384];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n <= 0) {
        assert_int_equal(errno, EAGAIN);
        return false;
    }
    fs_watch_feed(&set, buf, (size_t)n);
    return true;
}

static inline void settle(void) {
    while (feed() || catch_up())
        ;
}

static inline void end(void) {
    for (struct list *n; (n = list_first(&set.watches)) != NULL;)
        fs_watch_fini(list_entry(n, struct fs_watch, node));
    assert_int_equal(set.dirs, 0);
    assert_int_equal(set.bytes, 0);
    assert_true(list_empty(&set.fresh));
    fs_watch_set_fini(&set);
    close(fd);
}

/* -- what it tells: paths below the scratch directory, "." for itself, sorted -- */

static inline int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline const char *told(struct fs_watch *w) {
    static char text[65536];
    char *paths[FS_WATCH_PATHS_MAX];
    size_t n = 0, len = strlen(scratch);
    list_for_each(it, &w->changes) {
        const struct fs_watch_change *c = list_entry(it, struct fs_watch_change, order);
        assert_in_range(n, 0, FS_WATCH_PATHS_MAX - 1);
        assert_memory_equal(c->path, scratch, len);
        struct str rest = {c->path + len, c->node.key.n - len};
        paths[n++] = rest.n == 0 ? strdup(".") : str_dup((struct str){rest.p + 1, rest.n - 1});
    }
    qsort(paths, n, sizeof *paths, by_name);
    char *p = text + sprintf(text, "%s", w->overflow ? "overflow" : "");
    for (size_t i = 0; i < n; i++) {
        p += snprintf(p, (size_t)(text + sizeof text - p), "%s%s", p > text ? " " : "", paths[i]);
        free(paths[i]);
    }
    fs_watch_told(w);
    assert_false(fs_watch_pending(w));
    return text;
}

/* Everything that happened until now, told once, is this. */
#define EXPECT(w, what)                                                                            \
    do {                                                                                           \
        settle();                                                                                  \
        assert_string_equal(told(w), what);                                                        \
    } while (0)

/* An event that the kernel did not send. */
static inline void put_event(int wd, uint32_t mask, const char *name) {
    char buf[64];
    struct inotify_event ev = {.wd = wd, .mask = mask, .len = name != NULL ? 16 : 0};
    memcpy(buf, &ev, sizeof ev);
    if (name != NULL)
        strncpy(buf + sizeof ev, name, 16);
    fs_watch_feed(&set, buf, sizeof ev + ev.len);
}
