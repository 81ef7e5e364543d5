#pragma once
/*
 * Where a path leads on disk, and over which symbolic links. The walk goes component by component
 * over descriptors; nothing is opened but as O_PATH.
 */

#include "base/arena.h"

#include <stdbool.h>
#include <sys/stat.h>

#define LOCATE_LINKS_MAX 40
#define LOCATE_PATH_MAX 4096

struct locate_link {
    const char *place; /* the link itself: a path without links */
    const char *text;  /* what it says */
};

enum locate_state {
    LOCATE_FOUND,
    LOCATE_MISSING, /* a component is not there, or is no directory */
    LOCATE_BLOCKED, /* a directory on the way may not be searched */
};

struct locate_result {
    enum locate_state state;
    const char *path; /* without links and dot segments */
    size_t existing;  /* bytes of path that exist; all of it when found */
    bool lost;        /* ".." follows what is missing: it leads nowhere, and path ends before it */
    struct stat st;   /* of the last component that exists */
    struct locate_link links[LOCATE_LINKS_MAX];
    size_t link_count;
};

/*
 * Resolves the absolute `path`. Strings come from `a`. 0 for each state; -ELOOP,
 * -ENAMETOOLONG, -ENOMEM, or what else open() may say.
 */
MUST_CHECK int locate_path(const char *path, struct arena *a, struct locate_result *out);

/* The length of the first component of `path` that does not exist. */
size_t locate_first_missing(const struct locate_result *r);

/* Components of an absolute, normalised path; 0 for "/". */
size_t locate_depth(const char *path);

/* Whether `path` is `dir` or lies below it; both absolute and normalised. */
bool locate_inside(const char *path, const char *dir);
