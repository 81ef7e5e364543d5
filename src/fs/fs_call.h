#pragma once
/*
 * One call of the file system as a value: it crosses to a process that makes it (a helper in a
 * sandbox), and its answer comes back. The other side is a process of the same build.
 *
 * A gate decides what that process may do beyond what the kernel allows it. A path is looked up
 * once: the gate opens the directory that the call acts in and decides on what it has opened, and
 * the call acts relative to that descriptor without following a link.
 */

#include "fs/fs_place.h"

#define FS_CALL_BYTES_MAX 65536         /* of an encoded call */
#define FS_CALL_INLINE_MAX (120u << 10) /* of a result in an answer's own packet; else in a memfd */

enum fs_call_op {
    FS_CALL_READ,      /* opens a file to read */
    FS_CALL_REPLACE,   /* opens a file to replace what is in it, or makes it: a handle. The file
                          is truncated only after the handle has reached the server */
    FS_CALL_UPDATE,    /* opens a file to write, or makes it: a handle. Nothing is truncated */
    FS_CALL_WRITE,     /* as FS_CALL_REPLACE, to be written whole: devices too */
    FS_CALL_WRITE_NEW, /* fs/writeFile, atomic, with data */
    FS_CALL_MKDIR,
    FS_CALL_METADATA,
    FS_CALL_CANONICALIZE,
    FS_CALL_LIST,
    FS_CALL_WALK,
    FS_CALL_REMOVE,
    FS_CALL_COPY,
    FS_CALL_RENAME,
    FS_CALL_CHMOD,
    FS_CALL_TIMES,
    FS_CALL_READ_LINK,
    FS_CALL_SYMLINK,
};
#define FS_CALL_OPS 17

/* Paths are absolute and normalised; NULL: none. */
struct fs_call {
    enum fs_call_op op;
    const char *path, *destination;
    const char *uri;    /* FS_CALL_WALK */
    const char *target; /* FS_CALL_SYMLINK: any bytes but NUL */
    bool follow, recursive, force, replace;
    bool follow_directory_links, prune_hidden, links; /* FS_CALL_WALK */
    uint64_t max_depth, max_directories, max_entries; /* FS_CALL_WALK */
    uint64_t mode;                                    /* FS_CALL_CHMOD */
    int64_t modified_ms;                              /* FS_CALL_TIMES */
};

/* Appends the encoded call. 0; -ENAMETOOLONG above the maximum; -ENOMEM. */
MUST_CHECK int fs_call_encode(const struct fs_call *c, struct buf *b);

/* Decodes; strings point into `bytes`. 0 or -EINVAL. */
MUST_CHECK int fs_call_decode(struct str bytes, struct fs_call *c);

struct fs_call_path {
    enum fs_need need;
    const char *path;
    bool follow;  /* links before the last component are followed */
    bool leaf;    /* the last component is followed, too */
    bool parents; /* missing ones will be made */
    bool tree;    /* the call acts on everything below, too */
};

struct fs_call_access {
    void *arg;
    /* Whether, and where it is to be done: fills the place. 0; or -errno, and nothing is open. */
    int (*pass)(void *arg, const struct fs_call_path *p, struct fs_place *out);
    /* As fs_place_check.ask, for a name that the call has come to by itself. */
    int (*check)(void *arg, enum fs_need need, const char *path, mode_t mode);
    /* Whether what is not found at `path` is merely not to be seen. */
    bool (*hidden)(void *arg, const char *path);
};

/*
 * The outcome: an opened file, or bytes. FS_CALL_METADATA: a struct fs_meta; FS_CALL_CANONICALIZE:
 * the path; FS_CALL_READ_LINK: the target; FS_CALL_LIST and FS_CALL_WALK: encoded items
 * (fs_item.h); else none.
 */
struct fs_call_result {
    struct buf bytes; /* owned */
    int fd;           /* owned; -1: none */
};
#define FS_CALL_RESULT_INIT ((struct fs_call_result){.bytes = BUF_INIT(FS_RESULT_MAX), .fd = -1})

/* Makes the call; `data` is for FS_CALL_WRITE_NEW. 0 or -errno with e set. */
MUST_CHECK int fs_call_run(const struct fs_call *c, struct str data, const struct fs_call_access *g,
                           struct fs_call_result *result, struct err *e);

/* -- answers -- */

enum fs_call_kind {
    FS_CALL_ERROR,
    FS_CALL_INLINE, /* the result is the rest of the packet */
    FS_CALL_MEMFD,  /* it is in the memfd that comes along */
    FS_CALL_FILE,   /* it is the file that comes along */
};

struct fs_call_head {
    uint32_t magic;
    uint32_t kind; /* enum fs_call_kind */
    int32_t code;  /* FS_CALL_ERROR: the error's, its text follows */
    int32_t error; /* FS_CALL_ERROR: errno */
};
#define FS_CALL_MAGIC 0x31434653u /* "SFC1" */

struct fs_call_answer {
    enum fs_call_kind kind;
    int code, error; /* FS_CALL_ERROR; error > 0 */
    struct str text; /* FS_CALL_ERROR: valid UTF-8; FS_CALL_INLINE: the bytes of the result */
};

/*
 * Decodes an answer. Do not trust it: the helper that gives it has looked at what others made.
 * `file`: whether a descriptor came along. Strings point into `packet`. 0 or -EINVAL.
 */
MUST_CHECK int fs_call_answer_decode(struct str packet, bool file, struct fs_call_answer *out);
