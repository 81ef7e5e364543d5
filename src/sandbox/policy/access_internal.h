#pragma once
/* Shared by access.c, access_may.c and access_globs.c. */

#include "sandbox/policy/access.h"

/* Compiles the patterns and finds the directory of each group; frees them. */
MUST_CHECK int access_globs(struct access *x, const struct plan *p, struct fault *f);
void access_globs_fini(struct access *x);

/* Whether a link with a denied name leads to `path` or to a directory above it. Looks for such
 * links, but not at every call (access_globs.c). */
bool access_globs_is_target(struct access *x, const char *path);

/* Whether a directory that is to be renamed or removed contains a match. */
bool access_globs_hold_match(const struct access *x, const char *dir);
