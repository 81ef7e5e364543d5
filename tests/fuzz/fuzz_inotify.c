/*
 * The two decoders of inotify events. The input is a sequence of steps: a byte, then for an even
 * one as many sixteenths of the rest as events, and for an odd one a scan that finds what the byte
 * says. Whatever comes, memory stays bounded, and in the end nothing is left.
 */
#include "files/fs_json.h"
#include "fs/fs_missing.h"
#include "fs/fs_watch.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define WATCHES 3
#define WD_MAX 16 /* numbers are few, so that events find their directories */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fs_watch_set set;
static struct fs_watch watches[WATCHES];
static int next_wd;

/* What a thread would have done: each directory is watched, may be gone, may have another in it. */
static void pretend(struct fs_watch_scan *s, uint8_t how) {
    static struct fs_watch_found found[1024];
    static char names[1 << 16];
    size_t n = s->dirs, len = s->names.len;
    REQUIRE(n + 1 <= sizeof found / sizeof *found && len + 8 <= sizeof names);
    for (size_t i = 0; i < n; i++) {
        found[i] = s->dir[i];
        found[i].wd = (how & 2) != 0 && i % 3 == 1 ? -1 : ++next_wd % WD_MAX;
    }
    if (len > 0)
        memcpy(names, s->names.p, len);
    if (n > 0 && s->recursive && s->room > 0 && (how & 4) != 0 && found[0].wd >= 0) {
        found[n] = (struct fs_watch_found){.parent = 0, .name = len, .wd = ++next_wd % WD_MAX};
        names[len++] = (char)('a' + (how >> 5));
        names[len++] = '\0';
        n++;
    }
    static struct fs_watch_entry entry;
    entry = (struct fs_watch_entry){.dir = 0, .name = len - 2};
    struct fs_watch_scan made = *s;
    made.dir = found;
    made.dirs = n;
    made.names.p = names;
    made.entry = &entry;
    made.entries = s->fresh && n > 0 && found[0].wd >= 0 && (how & 8) != 0 && len > 1;
    made.missed = (how & 16) != 0;
    made.drops = 0;
    *s = made;
}

static void scan(uint8_t how) {
    struct fs_watch_scan s, kept;
    struct fs_watch *of;
    fs_watch_scan_init(&s, -1);
    if (fs_watch_next(&set, &s, &of) == 1) {
        kept = s;
        REQUIRE(of == NULL ? s.dirs == 0 : s.dirs > 0);
        pretend(&s, how);
        fs_watch_adopt(&set, of, &s);
        s = kept;
    }
    fs_watch_scan_fini(&s);
}

static void begin(void) {
    static const char *const roots[WATCHES] = {"/w", "/w/a", "/w/file"};
    fs_watch_set_init(&set);
    next_wd = 0;
    for (size_t i = 0; i < WATCHES; i++) {
        REQUIRE(fs_watch_init(&watches[i], &set, roots[i], i < 2, i == 0) == 0);
        fs_watch_lose(&watches[i]);
        scan(4);
    }
}

static void check(void) {
    _cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
    REQUIRE(set.dirs <= FS_WATCH_DIRS_MAX + WATCHES && set.bytes <= FS_WATCH_BYTES_MAX);
    for (size_t i = 0; i < WATCHES; i++) {
        REQUIRE(watches[i].changed.count <= FS_WATCH_PATHS_MAX);
        REQUIRE(!watches[i].overflow || list_empty(&watches[i].changes));
        REQUIRE(fs_json_changes(&b, STR_LIT("w"), &watches[i]) == 0);
    }
}

static void watch(const uint8_t *data, size_t size) {
    begin();
    while (size > 0) {
        uint8_t how = *data++;
        size--;
        if ((how & 1) != 0) {
            scan(how);
            continue;
        }
        size_t n = size * ((how >> 1) % 16 + 1) / 16;
        fs_watch_feed(&set, data, n);
        data += n;
        size -= n;
    }
    check();
    for (size_t i = 0; i < WATCHES; i++)
        fs_watch_fini(&watches[i]);
    REQUIRE(set.dirs == 0 && set.bytes == 0 && list_empty(&set.fresh));
    REQUIRE(set.by_name.count == 0);
    fs_watch_set_fini(&set);
}

static void missing(const uint8_t *data, size_t size) {
    static char first[] = "/w/a/b/c", second[] = "/w/d", third[] = "/w/a/file";
    struct fs_missing m = FS_MISSING_INIT;
    m.path[0] = first;
    m.path[1] = second;
    m.path[2] = third;
    m.count = 3;
    m.present = true;
    m.dirs = 4;
    m.dir[0] = (struct fs_missing_dir){.wd = 1, .of = 0, .n = 0};
    m.dir[1] = (struct fs_missing_dir){.wd = 2, .of = 1, .n = 2};
    m.dir[2] = (struct fs_missing_dir){.wd = 3, .of = 2, .n = 4};
    m.dir[3] = (struct fs_missing_dir){.wd = -1, .of = 0, .n = 6};
    (void)fs_missing_fires(&m, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    missing(data, size);
    watch(data, size);
    return 0;
}
