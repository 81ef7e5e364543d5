#include "base/pathexec.h"

#include "base/rawsys.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/syscall.h>

bool pathexec_next(const char **search, const char *name, char dst[PATHEXEC_MAX]) {
    size_t n = 0;
    const char *p = *search;
    for (; *p != '\0' && *p != ':'; p++) {
        if (n < PATH_MAX)
            dst[n++] = *p;
    }
    *search = *p == ':' ? p + 1 : NULL;
    bool fits = n < PATH_MAX;
    if (n > 0)
        dst[n++] = '/';
    for (; *name != '\0' && n < PATHEXEC_MAX - 1; name++)
        dst[n++] = *name;
    dst[n] = '\0';
    return fits && *name == '\0';
}

int pathexec(const char *program, const char *search, char *const *argv, char *const *envp,
             uint64_t mark, char scratch[PATHEXEC_MAX]) {
    if (search == NULL)
        return (int)sys4(SYS_execve, (long)program, (long)argv, (long)envp, (long)mark);
    size_t n = 0;
    while (n <= NAME_MAX && program[n] != '\0')
        n++;
    if (n > NAME_MAX)
        return -ENAMETOOLONG;
    int last = -ENOENT;
    bool denied = false;
    while (search != NULL) {
        if (!pathexec_next(&search, program, scratch))
            continue;
        last = (int)sys4(SYS_execve, (long)scratch, (long)argv, (long)envp, (long)mark);
        if (last == -EACCES)
            denied = true;
        else if (last != -ENOENT && last != -ENOTDIR)
            return last;
    }
    return denied ? -EACCES : last;
}
