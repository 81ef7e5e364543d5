#pragma once
/*
 * Looks a program up in a search path such as PATH, as execvpe() would.
 *
 * Only raw system calls, no allocation and no library: a supervisor may call it.
 */

#include <stdbool.h>
#include <stdint.h>

#define PATHEXEC_MAX 4352 /* bytes of a candidate: PATH_MAX and a NAME_MAX component */

/*
 * Takes the next directory off *search, which is NULL behind the last, and writes its path of
 * `name` to dst. An empty directory is the current one. False: the directory has PATH_MAX
 * characters or more, or the path does not fit.
 */
bool pathexec_next(const char **search, const char *name, char dst[PATHEXEC_MAX]);

/*
 * Executes the program, with `search` NULL as it is. Passes over what cannot be run. Returns only a
 * -errno: of the last candidate, but -EACCES outlives -ENOENT and -ENOTDIR; -ENAMETOOLONG if no
 * directory can have the name. `scratch` is for paths. `mark` is a fourth argument of the call,
 * which the kernel ignores (execfilter.h).
 */
int pathexec(const char *program, const char *search, char *const *argv, char *const *envp,
             uint64_t mark, char scratch[PATHEXEC_MAX]);
