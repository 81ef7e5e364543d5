#pragma once
/* Replaces whole files atomically. */

#include "fs/fs_file.h"
#include "fs/fs_place.h"

/*
 * fs/writeFile with `atomic`: a new file replaces the old one once all of it is on disk, so that
 * readers, also after a crash, find one or the other. Only a crash leaves the temporary file
 * `.NAME.XXXXXXXX.tmp` behind. Before it gets the name, the new file gets the old one's mode,
 * owner, access list and extended attributes (fs_attrs.h); it is never more accessible than the old
 * one. An attribute that cannot be kept is an error. Other names of the old file (hard links) keep
 * the old contents. A link that is followed stays; one that points nowhere is ENOENT. The old file
 * must be writable. EBUSY: its attributes keep changing.
 *
 * `at`: NULL; or the place to write at, whose name is not followed: w->path is for texts then. 0 or
 * -errno with e set.
 */
MUST_CHECK int fs_atomic_write(const struct fs_write *w, const struct fs_place *at, struct err *e);

/* fs_atomic_write() in steps, for data that comes bit by bit: begin, write to fd, then end it. */
struct fs_atomic;

/*
 * Makes the temporary file; ignores w->data. 0 with *out, which the caller ends with one of the
 * next two functions, and *fd, which *out owns; or -errno with e set.
 */
MUST_CHECK int fs_atomic_begin(const struct fs_write *w, const struct fs_place *at,
                               struct fs_atomic **out, int *fd, struct err *e);

/* Replaces the old file. 0; 1: there was none; or -errno with e set. Frees a. */
MUST_CHECK int fs_atomic_commit(struct fs_atomic *a, struct err *e);

/* Removes the temporary file. Frees a. */
void fs_atomic_abort(struct fs_atomic *a);
