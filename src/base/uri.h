#pragma once
/*
 * Path URIs: `file:` URIs and native absolute paths in, native paths out, and back.
 * Rules: PROTOCOL.md, "Paths".
 */

#include "base/buf.h"
#include "base/err.h"

#define URI_PATH_MAX 65536 /* bytes of a native path we decode */

/*
 * Turns `in` into a native path. A string that begins with '/' is one already (normalised
 * lexically; NUL is refused); all others are parsed as URIs. On success *path is an owned
 * NUL-terminated absolute path without dot segments, double or trailing slashes.
 * Errors: -EINVAL with ERR_INVALID_PARAMS if it does not decode. -EXDEV with ERR_INVALID_REQUEST
 * for a well-formed URI that names no path of this host (foreign authority, drive letter, misused
 * opaque form). The text of -EXDEV is "'URI' is invalid on 'linux'"; its err_subject() is the URI,
 * so that a caller may word it differently.
 */
MUST_CHECK int uri_to_path(struct str in, char **path, struct err *e);

/* Appends `in` without the controls and blanks around it, and without TAB, LF and CR anywhere. 0 or
 * as buf_reserve(). */
MUST_CHECK int uri_strip(struct str in, struct buf *out);

/* Appends the URI of `in`, which uri_to_path() has accepted: as it was written, except where
 * writers differ (dot segments, scheme, host). 0 or as buf_reserve(). */
MUST_CHECK int uri_canonical(struct str in, struct buf *b);

/* Appends the URI of an absolute native path. 0 or as buf_reserve(). */
MUST_CHECK int uri_from_path(struct buf *b, struct str path);
