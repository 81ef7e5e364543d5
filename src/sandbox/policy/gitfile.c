#include "sandbox/policy/gitfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int gitfile_read(const char *root, const char *file, char path[GITFILE_PATH_MAX]) {
    char text[GITFILE_MAX];
    _cleanup_close_ int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return -ENOENT;
    text[n] = '\0';
    if (strncmp(text, "gitdir:", 7) != 0)
        return -ENOENT;
    struct str to = str_trim(str_of(text + 7));
    to.n = strcspn(to.p, "\r\n") < to.n ? strcspn(to.p, "\r\n") : to.n;
    if (to.n == 0)
        return -ENOENT;
    bool absolute = to.p[0] == '/';
    snprintf(path, GITFILE_PATH_MAX, "%s%s%.*s", absolute ? "" : root, absolute ? "" : "/",
             (int)to.n, to.p);
    return 0;
}
