#pragma once
/*
 * Finds and reads what a directory offers an agent: a plugin's manifest and configuration, skills,
 * and the manifests that name the skills. Rules and limits: PROTOCOL.md, "Capabilities".
 *
 * Everything blocks. Files come from strangers, who may change them meanwhile: each is opened once,
 * checked when it is open, and read up to its limit.
 */

#include "base/arena.h"
#include "base/err.h"
#include "fs/fs_file.h"
#include "fs/fs_meta.h"
#include "fs/fs_walk.h"

#define DISCOVER_DEPTH 6
#define DISCOVER_DIRECTORIES 2000
#define DISCOVER_ENTRIES 20000
#define DISCOVER_FILE_MAX (1u << 20)    /* bytes of a file */
#define DISCOVER_BUNDLE_MAX (16u << 20) /* bytes of the files of a root */
/* Bytes of one root: its files, and paths and warnings of what a walk finds (FS_WALK_BUDGET). */
#define DISCOVER_ARENA_MAX (DISCOVER_BUNDLE_MAX + (48u << 20))

/*
 * The calls by which a root is read: directly, or in a sandbox. Each returns 0, 1 (the whole
 * discovery has to be made again, when a helper runs), or -errno with e set.
 */
struct discover_source {
    void *arg;
    int (*meta)(void *arg, const char *path, struct fs_meta *m, struct err *e);
    int (*walk)(void *arg, const struct fs_walk *w, const struct fs_sink *sink, struct err *e);
    int (*open)(void *arg, const char *path, struct fs_file *f, struct err *e);
    const atomic_bool *stop; /* nobody is interested any more */
};

/* A file that was read. */
struct discover_file {
    struct str uri; /* p NULL: there is no such file */
    struct str text;
};

struct discover_skill {
    struct discover_file instructions, metadata;
};

/* A path, and its URI as the client has written it or would. */
struct discover_path {
    struct str uri;
    struct str native; /* NUL-terminated */
};

/* What was found. Everything lies in the arena. */
struct discovery {
    struct arena arena;
    struct str error; /* p NULL: the root could be read */
    struct discover_file manifest, mcp, apps;
    struct discover_skill *skills;
    struct discover_file *namespaces;
    struct str *warnings;
    size_t skill_count, namespace_count, warning_count;
    size_t skill_cap, namespace_cap, warning_cap;
    size_t bytes; /* of all files */
};

/*
 * Reads a root into *d, which is zero or was reset. 0, also if the root cannot be read; 1: to be
 * made again; -errno: out of memory, or nobody is interested.
 */
MUST_CHECK int discover_root(const struct discover_source *s, const struct discover_path *root,
                             struct discovery *d);

/* Forgets what was found. */
void discover_reset(struct discovery *d);
void discover_fini(struct discovery *d);

/*
 * Reads a file of at most `max` bytes into the arena. 0; 1; -ENOENT: there is none, or it is no
 * regular file; other -errno with e set.
 */
MUST_CHECK int discover_read(const struct discover_source *s, struct arena *a, const char *path,
                             size_t max, struct str *text, struct err *e);

/* The path below another; `relative` has no dot segments. p NULL: no memory, or too long. */
struct discover_path discover_join(struct arena *a, const struct discover_path *base,
                                   struct str relative);

/* The directory of a path. False at the root. */
bool discover_parent(struct discover_path *p);

/* A random seed for the hash of a JSON document that strangers wrote. */
uint64_t discover_seed(void);

/* The last component of a native path. */
struct str discover_name(struct str native);
