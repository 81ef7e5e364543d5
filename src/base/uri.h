#pragma once
/*
 * Path URIs: `file:` URIs and native absolute paths in, native paths out, and back.
 * Rules: PROTOCOL.md, "Paths".
 */

#include "base/buf.h"
#include "base/err.h"

#define URI_PATH_MAX 65536 /* bytes of a native path we decode */

/*
 * Native path of `in`: a string that starts with '/' is a native path (normalised lexically, NUL
 * refused), everything else goes through the URI steps. On success *path is an owned
 * NUL-terminated absolute path without dot segments, double or trailing slashes.
 * Errors: -EINVAL with ERR_INVALID_PARAMS for what does not decode; for a well-formed URI that
 * names no path of this host (foreign authority, drive letter, misused opaque form) -EXDEV with
 * ERR_INVALID_REQUEST and "'URI' is invalid on 'linux'", whose err_subject() is the URI, so that a
 * caller may word it differently.
 */
MUST_CHECK int uri_to_path(struct str in, char **path, struct err *e);

/*
 * Appends the URI that `in`, of which uri_to_path() has made a path, stands for: as it was written
 * but for what no two writers agree on (dot segments, scheme, host). 0 or as buf_reserve().
 */
MUST_CHECK int uri_canonical(struct str in, struct buf *b);

/* Appends the URI of an absolute native path. 0 or as buf_reserve(). */
MUST_CHECK int uri_from_path(struct buf *b, struct str path);
