#include "sandbox/host/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAUNCHER_FD_MIN 16        /* clear of the launcher's descriptors */
#define LAUNCHER_MFD_EXEC 0x0010U /* MFD_EXEC, Linux 6.3 */
#define LAUNCHER_SEAL_EXEC 0x0020 /* F_SEAL_EXEC, Linux 6.3 */

/* No shell word, and nothing that a user would type by accident. */
char *const launcher_argv[] = {(char *)"exec-sandbox", (char *)"\001stage=launch", NULL};

bool launcher_is_stage(int argc, char **argv) {
    return argc == 2 && strcmp(argv[0], launcher_argv[0]) == 0 &&
           strcmp(argv[1], launcher_argv[1]) == 0;
}

/* A memfd that may be executed, also where the system asks for the flag. */
static int launcher_memfd(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | LAUNCHER_MFD_EXEC);
    return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

/* A copy that nobody can write to. */
static int launcher_copy_self(int fd) {
    struct stat st;
    _cleanup_close_ int copy = launcher_memfd("exec-sandbox");
    if (copy < 0 || fstat(fd, &st) < 0)
        return -errno;
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = sendfile(copy, fd, &at, (size_t)(st.st_size - at));
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    (void)fcntl(copy, F_ADD_SEALS, LAUNCHER_SEAL_EXEC); /* newer kernels seal the mode too */
    return fcntl(copy, F_ADD_SEALS, seals) < 0 ? -errno : steal_fd(&copy);
}

/* Whether one of our processes could change the file or its mode without capabilities. */
static bool launcher_is_exposed(int fd) {
    struct stat st;
    return fstat(fd, &st) < 0 || st.st_uid == geteuid() ||
           faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

int launcher_open_self(void) {
    _cleanup_close_ int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    bool copied = fd >= 0 && launcher_is_exposed(fd);
    if (copied) {
        util_close_fd(&fd);
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return -errno;
    _cleanup_close_ int copy = copied ? launcher_copy_self(fd) : -1;
    if (copied && copy < 0)
        return copy;
    int self = fcntl(copied ? copy : fd, F_DUPFD_CLOEXEC, LAUNCHER_FD_MIN);
    return self < 0 ? -errno : self;
}
