#include "app/sdnotify.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/un.h>

#define SDNOTIFY_FDS_MAX 1024 /* further descriptors are left alone */

/* A decimal number without sign or blanks, at most `max`; 0 for anything else. */
static uint64_t sdnotify_number(const char *text, uint64_t max) {
    uint64_t n = 0;
    if (text == NULL)
        return 0;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        n = n * 10 + (uint64_t)(*text - '0');
        if (n > max)
            return 0;
    }
    return n;
}

static void sdnotify_close_on_exec(int fd) {
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0)
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

unsigned sdnotify_take_fds(void) {
    static const char *const variables[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
                                            "LISTEN_PIDFDID"};
    uint64_t pid = sdnotify_number(getenv("LISTEN_PID"), INT32_MAX);
    uint64_t count = sdnotify_number(getenv("LISTEN_FDS"), SDNOTIFY_FDS_MAX);
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    if (pid != (uint64_t)getpid())
        return 0;
    for (unsigned i = 0; i < count; i++)
        sdnotify_close_on_exec(SDNOTIFY_FIRST_FD + (int)i);
    return (unsigned)count;
}

char *sdnotify_take_socket(void) {
    const char *name = getenv("NOTIFY_SOCKET");
    char *copy = name != NULL && *name != '\0' ? strdup(name) : NULL;
    unsetenv("NOTIFY_SOCKET");
    return copy;
}

static bool sdnotify_is(int fd, int option, int wanted) {
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

int sdnotify_socket(unsigned count, int *fd, struct sockaddr_storage *addr, socklen_t *len,
                    struct err *e) {
    const int first = SDNOTIFY_FIRST_FD;
    if (count == 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "--listen fd://: no socket was passed (LISTEN_FDS): start it from a systemd "
                       "socket unit");
    if (count > 1)
        return err_set(e, ERR_INVALID_PARAMS, "%u sockets were passed (LISTEN_FDS); expected one",
                       count);
    *len = sizeof *addr;
    if (!sdnotify_is(first, SO_TYPE, SOCK_STREAM) || !sdnotify_is(first, SO_ACCEPTCONN, 1) ||
        getsockname(first, (struct sockaddr *)addr, len) < 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "the descriptor passed (LISTEN_FDS) is not a listening stream socket");
    if (addr->ss_family != AF_INET && addr->ss_family != AF_INET6 && addr->ss_family != AF_UNIX)
        return err_set(e, ERR_INVALID_PARAMS,
                       "the socket passed (LISTEN_FDS) is neither TCP nor Unix");
    int flags = fcntl(first, F_GETFL);
    if (flags < 0 || fcntl(first, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_os(e, ERR_INTERNAL, errno);
    *fd = first;
    return 0;
}

static int sdnotify_try(const char *name, const char *state) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if (n >= sizeof un.sun_path || (name[0] != '/' && name[0] != '@'))
        return -EINVAL;
    memcpy(un.sun_path, name, n);
    if (name[0] == '@')
        un.sun_path[0] = '\0';
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* An abstract name ends where the length says. */
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] == '/'));
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&un, len) < 0)
        return -errno;
    return 0;
}

void sdnotify_send(const char *name, const char *state) {
    if (name == NULL)
        return;
    int r = sdnotify_try(name, state);
    if (r < 0)
        log_warn("cannot notify the service manager at %s: %s", name, err_os_text(-r));
}
