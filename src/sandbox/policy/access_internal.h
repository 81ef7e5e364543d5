#pragma once
/* Shared by access.c, access_may.c and access_globs.c. */

#include "sandbox/policy/access.h"

/* Compiles the patterns, and finds the directory that each group is below. */
MUST_CHECK int access_globs(struct access *x, const struct plan *p, struct fault *f);
void access_globs_fini(struct access *x);

/*
 * Whether a link with a denied name leads to `path`, or to a directory that it is in. Looks for
 * such links, but not at every call: see access_globs.c.
 */
bool access_globs_is_target(struct access *x, const char *path);

/* Whether there is a match below a directory, which would get another name, or go. */
bool access_globs_hold_match(const struct access *x, const char *dir);
