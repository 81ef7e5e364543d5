#pragma once
/* Replacing a file as a whole. */

#include "fs/fs_file.h"
#include "fs/fs_place.h"

/*
 * fs/writeFile with `atomic`: a new file takes the place of the old one once all of it is on disk,
 * so that a reader, or a crash, finds the one or the other. A crash may leave the temporary file
 * `.NAME.XXXXXXXX.tmp` beside it, nothing else does. The new file gets mode, owner, access list and
 * extended attributes of the old one (fs_attrs.h) before it gets the name, and is never more
 * accessible than the old one. What must be kept and cannot be is an error. Other names of the old
 * file (hard links) keep the old contents. A link that is followed stays; one that points nowhere
 * is ENOENT. The old file must be writable. EBUSY: its attributes keep changing.
 *
 * `at`: NULL; or the place to write at, whose name is not followed: w->path is for texts then.
 * 0 or -errno with e set.
 */
MUST_CHECK int fs_atomic_write(const struct fs_write *w, const struct fs_place *at, struct err *e);

/* fs_atomic_write() in steps, for data that comes bit by bit: begin, write to fd, then end it. */
struct fs_atomic;

/*
 * Makes the temporary file (w->data is not looked at). 0 with *out, to be ended by one of the other
 * two, and *fd, which is theirs; or -errno with e set.
 */
MUST_CHECK int fs_atomic_begin(const struct fs_write *w, const struct fs_place *at,
                               struct fs_atomic **out, int *fd, struct err *e);

/* Puts it in the place of the old one. 0, 1 when there was none before; or -errno with e set. */
MUST_CHECK int fs_atomic_commit(struct fs_atomic *a, struct err *e);

/* Removes it. */
void fs_atomic_abort(struct fs_atomic *a);
