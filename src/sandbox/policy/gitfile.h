#pragma once
/* A .git file of a linked worktree or a submodule: it names the directory that git uses. */

#include "sandbox/policy/locate.h"

#define GITFILE_MAX 4096 /* bytes of it that are read */
#define GITFILE_PATH_MAX (2 * LOCATE_PATH_MAX)

/* The path that the .git file `file` in the directory `root` names, not looked up. 0; -ENOENT when
 * it names none, or cannot be read, which git could not either. */
MUST_CHECK int gitfile_read(const char *root, const char *file, char path[GITFILE_PATH_MAX]);
