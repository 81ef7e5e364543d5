#pragma once
/*
 * The names of one directory in the order of a walk: by their bytes as UTF-8, bad ones replaced by
 * U+FFFD. The list keeps only the first names in that order, as many as the walk may still look at,
 * so that memory does not depend on the directory.
 *
 * Maxima: a quarter more names than asked for, and FS_WALK_NAMES_BYTES for them (twice that while
 * they are compacted). That holds the 50,001 valid names of 255 bytes that the largest walk can
 * want. Names full of bad bytes grow when these are replaced: the list may keep fewer of them, and
 * sets `cut`.
 */

#include "fs/fs_list.h"

#define FS_WALK_NAMES_BYTES (20u << 20)

/* What a walk makes of a name. */
enum walk_kind {
    WALK_FILE,
    WALK_DIR,
    WALK_DIR_LINK, /* a link to a directory */
    WALK_LINK,     /* a link that is listed as such */
    WALK_OTHER,    /* counted, not listed: other links, FIFOs, sockets, devices */
    WALK_LOOK,     /* unknown, or the name is not the stored one: stat() tells */
};

struct walk_name {
    uint64_t key; /* its first bytes, to compare */
    uint32_t off; /* in `text` */
    uint16_t len;
    uint8_t kind; /* enum walk_kind */
};

struct fs_walk_names {
    struct buf text;  /* NUL-terminated names */
    struct buf names; /* struct walk_name */
    size_t keep;      /* names that may be wanted */
    size_t last;      /* if > 0, nothing behind the name with this index, less one, is wanted */
    bool cut;         /* fewer than `keep` are kept */
    bool exact;       /* names are kept, and compared, as they are */
};

void fs_walk_names_init(struct fs_walk_names *l);
void fs_walk_names_fini(struct fs_walk_names *l);

/* Empties the list, for another directory of which the first `keep` names are wanted. */
void fs_walk_names_begin(struct fs_walk_names *l, size_t keep);

/* 0 or -ENOMEM. */
MUST_CHECK int fs_walk_names_add(struct fs_walk_names *l, struct str name, enum walk_kind kind);

/* Puts them in order and drops what is beyond `keep`. */
void fs_walk_names_sort(struct fs_walk_names *l);

size_t fs_walk_names_count(const struct fs_walk_names *l);
const struct walk_name *fs_walk_names_at(const struct fs_walk_names *l, size_t i);
struct str fs_walk_names_str(const struct fs_walk_names *l, const struct walk_name *name);
