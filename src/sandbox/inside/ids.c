#include "sandbox/inside/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int ids_write(const char *path, const char *text) {
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    return n < 0 ? -errno : 0;
}

int ids_map(uid_t uid, gid_t gid, const char **what) {
    char text[64];
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    *what = "uid_map";
    int r = ids_write("/proc/self/uid_map", text);
    if (r < 0)
        return r;
    *what = "setgroups";
    r = ids_write("/proc/self/setgroups", "deny");
    if (r < 0 && r != -ENOENT)
        return r;
    *what = "gid_map";
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    return ids_write("/proc/self/gid_map", text);
}
