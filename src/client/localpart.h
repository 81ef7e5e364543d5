#pragma once
/*
 * The local part file of a download. The part `.NAME.xs-part` belongs to the copy that holds its
 * lock; a second copy to the same name takes a part with a token, which it cannot go on with later.
 * Nothing but localpart_finish() touches NAME.
 */

#include "client/localtree.h"
#include "client/partnote.h"

#define LOCALPART_STALE_S (60 * 60)    /* seconds without a write; then a part may have no owner */
#define LOCALPART_SWEEP_MIN (4u << 20) /* bytes of a file: less is not worth the look */

struct localpart {
    int dir;                          /* the directory; owned */
    int fd;                           /* the part, for reading and writing; owned; -1: none */
    bool noted;                       /* it has the name without a token, and may have a note */
    bool in_place;                    /* it is NAME itself */
    char leaf[PARTNOTE_NAME_MAX + 1]; /* NAME */
    char name[PARTNOTE_NAME_MAX + 1]; /* of the part */
};

#define LOCALPART_NONE ((struct localpart){.dir = -1, .fd = -1})

/*
 * Opens the part of `leaf` in `dir` (which is not taken over). With `want`, the part of an earlier
 * copy of that source stays, and *kept is its size; otherwise *kept is 0 and the part is empty.
 * `want` NULL: no note, and a part with a token. A new part has `mode` less the mask of the
 * process; its owner can read and write it. -EISDIR if `leaf` is a directory, -ENXIO if it is
 * another special file. Without `atomic` the part is NAME itself, emptied.
 */
MUST_CHECK int localpart_open(struct localpart *p, int dir, const char *leaf, mode_t mode,
                              const struct partnote *want, bool atomic, uint64_t *kept);

/* Writes the note, so that a later copy can go on. Without `noted` it does nothing. */
MUST_CHECK int localpart_note(struct localpart *p, const struct partnote *note);

/* Writes all bytes, or fails. */
MUST_CHECK int localpart_write(struct localpart *p, uint64_t offset, const void *data, size_t n);

/* Reads n bytes, which must be there. */
MUST_CHECK int localpart_read(struct localpart *p, uint64_t offset, void *data, size_t n);

/*
 * Gives the part its size and traits, brings it to disk if `sync`, renames it to NAME, removes
 * the note and, behind a large file, parts with tokens that dead copies to NAME have left, and
 * closes it. After an error the part is still open.
 */
MUST_CHECK int localpart_finish(struct localpart *p, uint64_t size,
                                const struct localtree_traits *traits, bool sync);

/* Closes it. A part that is `noted` stays for a later copy if `keep`. */
void localpart_close(struct localpart *p, bool keep);
