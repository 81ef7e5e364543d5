#pragma once
/* The .git file of a linked worktree or a submodule names the directory that git uses. */

#include "sandbox/policy/locate.h"

#define GITFILE_MAX 4096 /* bytes read of it */
#define GITFILE_PATH_MAX (2 * LOCATE_PATH_MAX)

/* The path that the .git file `file` in directory `root` names, not looked up. 0; -ENOENT if it
 * names none or cannot be read, in which case git cannot read it either. */
MUST_CHECK int gitfile_read(const char *root, const char *file, char path[GITFILE_PATH_MAX]);
