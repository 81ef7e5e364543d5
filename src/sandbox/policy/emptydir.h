#pragma once
/*
 * Whether a directory is empty. A placeholder directory (base/placeholders.h) is: anybody can set
 * the time that marks one, so the mark alone proves nothing.
 */

#include "base/str.h"

/* False also for a directory that cannot be listed. */
bool emptydir_fd(int fd);

/* By an absolute path without links. True also if the path has just gone: rmdir() removes only
 * empty directories, and a new one may get the old inode number. */
bool emptydir_path(struct str path);
