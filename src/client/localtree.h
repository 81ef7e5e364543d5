#pragma once
/*
 * Writes below one local directory and nowhere else. Names come from a server that may be hostile:
 * they are relative, and no link is followed on the way to the last component, whoever made it.
 * The last component is never followed either.
 */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct localtree;

/* Takes over `root`, a descriptor of a directory. NULL without memory (root is closed). */
struct localtree *localtree_new(int root);
void localtree_free(struct localtree *t);
int localtree_root(const struct localtree *t);

/*
 * The directory of `name` ("a/b/c") and its last component. *fd is borrowed until the next call;
 * *leaf points into name. "" or a part that is empty, "." or "..": -EINVAL. A link or another
 * file in the way: -ENOTDIR or -ELOOP.
 */
MUST_CHECK int localtree_parent(struct localtree *t, const char *name, int *fd, const char **leaf);

/* Makes a directory that only its owner can use. 1 if it was there, 0 if not; -EEXIST if
 * something else has the name. */
MUST_CHECK int localtree_mkdir(struct localtree *t, const char *name);

/* Makes a link in place of any link or file there. A directory stays: -EISDIR. */
MUST_CHECK int localtree_symlink(struct localtree *t, const char *name, const char *target);

/* What a directory, file or link gets at the end. */
struct localtree_traits {
    bool has_mode, has_time;
    mode_t mode;         /* 07777 */
    int64_t modified_ns; /* since 1970 */
};

/* Sets them on a descriptor; the access time stays. */
MUST_CHECK int localtree_set(int fd, const struct localtree_traits *traits);
/* ... on the directory `name`, "" being the root. */
MUST_CHECK int localtree_set_directory(struct localtree *t, const char *name,
                                       const struct localtree_traits *traits);
/* ... on a link: its time only. */
MUST_CHECK int localtree_set_link(struct localtree *t, const char *name,
                                  const struct localtree_traits *traits);

/* ns since 1970 as a time, and back. Times before 1970 have negative seconds. */
struct timespec localtree_time(int64_t ns);
int64_t localtree_ns(struct timespec t);

/* The file mode creation mask of this process, without changing it. */
mode_t localtree_umask(void);
