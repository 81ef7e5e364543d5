#pragma once
/*
 * Names on file systems that ignore case, where ".GIT" is ".git". The comparison is stricter than
 * any file system: it ignores ASCII case, trailing dots and blanks, and non-ASCII characters except
 * those that fold to a letter; and it takes "GIT~1" for a short form of ".git".
 */

#include "base/str.h"
#include "base/util.h"

#include <stdbool.h>

#define CASEFOLD_NAME_MAX 255 /* bytes of a name that count; longer names are cut */

/* Whether the directory at a path, without links, ignores case. In doubt: yes on FUSE, no
 * elsewhere. */
bool casefold_at(const char *path);

/* Whether `path` is `dir` (2), lies below it (1), or neither (0), with case ignored throughout.
 * Both are absolute and normalised. */
int casefold_inside(const char *path, const char *dir);

/* The name with the case of its ASCII letters exchanged. False: it has none, or is too long. */
bool casefold_swap(const char *name, char out[CASEFOLD_NAME_MAX + 1]);
