#pragma once
/*
 * Makes placeholder directories (base/placeholders.h): mount points for protected names that do not
 * exist. Runs in the launcher, with the rights the command will have.
 */

#include "base/placeholders.h"
#include "base/str.h"
#include "base/util.h"

#include <sys/stat.h>

/*
 * Makes, or adopts, the directory `name` in the directory `dir` (absolute, without links), and
 * takes a lock on it through a descriptor that stays open. `list` may be NULL: then nobody is told.
 * 1: it is there, and *st tells which it is (one that is empty and not marked is held, too, and
 * stays afterwards); 0: it may not be made, so the command cannot either, nor change that.
 * -EEXIST: there is something now that is not ours; -EAGAIN: somebody holds it for good;
 * -ENOBUFS: the list is full; else -errno.
 */
MUST_CHECK int placeholder_make(struct placeholders *list, const char *dir, const char *name,
                                struct stat *st);

/* Removes what the list names and nobody holds: the locks of this process must be closed. False:
 * some are held, and stay in the list. */
bool placeholder_sweep(struct placeholders *list);

/* The same for the last one of a sandbox, in a process that ends next: leaves what others hold to
 * them, and descriptors open. */
void placeholder_finish(struct placeholders *list);
