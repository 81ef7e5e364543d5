#pragma once
/* Makes placeholder directories (base/placeholders.h): mount points for protected names that do not
 * exist. The launcher does so, with the command's own rights. */

#include "base/placeholders.h"
#include "base/str.h"
#include "base/util.h"

#include <sys/stat.h>

/*
 * Makes or adopts the directory `name` in the directory `dir` (absolute, without links) and locks
 * it through a descriptor that stays open. `list` NULL: notes it nowhere.
 * - 1: the directory is there, and *st describes it. An empty one without the mark is locked too,
 *   but stays afterwards.
 * - 0: it must not be made, so the command cannot make it either.
 * - -EEXIST: something else is there now; -EAGAIN: somebody holds it for good; -ENOBUFS: the list
 *   is full; else -errno.
 */
MUST_CHECK int placeholder_make(struct placeholders *list, const char *dir, const char *name,
                                struct stat *st);

/* Removes the listed directories that nobody holds; this process must have closed its locks. False:
 * some are held, and stay in the list. */
bool placeholder_sweep(struct placeholders *list);

/* Like placeholder_sweep(), for a sandbox's last process just before it ends: leaves held ones to
 * their holders, and descriptors open. */
void placeholder_finish(struct placeholders *list);
