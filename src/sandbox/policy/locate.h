#pragma once
/* Where a path leads on disk, and across which symbolic links. Walks component by component and
 * opens everything as O_PATH only. */

#include "base/arena.h"

#include <stdbool.h>
#include <sys/stat.h>

#define LOCATE_LINKS_MAX 40
#define LOCATE_PATH_MAX 4096

struct locate_link {
    const char *place; /* the link's own path, without links */
    const char *text;  /* its target as written */
};

enum locate_state {
    LOCATE_FOUND,
    LOCATE_MISSING, /* a component does not exist, or is not a directory */
    LOCATE_BLOCKED, /* no permission to search a directory on the way */
};

struct locate_result {
    enum locate_state state;
    const char *path; /* without links and dot segments */
    size_t existing;  /* bytes of path that exist; all of it when found */
    bool lost; /* ".." follows a missing component: it leads nowhere, and path ends before it */
    struct stat st; /* of the last component that exists */
    struct locate_link links[LOCATE_LINKS_MAX];
    size_t link_count;
};

/* Resolves the absolute `path`. Strings come from `a`. 0 in every state; -ELOOP, -ENAMETOOLONG,
 * -ENOMEM, or another errno of open(). */
MUST_CHECK int locate_path(const char *path, struct arena *a, struct locate_result *out);

/* The length of `path` up to and with its first missing component. */
size_t locate_first_missing(const struct locate_result *r);

/* Components of an absolute, normalised path; 0 for "/". */
size_t locate_depth(const char *path);

/* Whether `path` is `dir` or lies below it; both absolute and normalised. */
bool locate_inside(const char *path, const char *dir);
