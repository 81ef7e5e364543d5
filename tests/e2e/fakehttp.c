/*
 * An HTTP program that was taken over: sends the bytes of the files beside it, NAME.hello at once
 * and NAME.frames after the first bytes of the server. Then it waits until the server hangs up.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET 3

static char buffer[1 << 16];

static void send_file(const char *self, const char *suffix) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s.%s", self, suffix);
    int fd = open(path, O_RDONLY);
    for (ssize_t n; fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0;)
        (void)!send(SOCKET, buffer, (size_t)n, MSG_NOSIGNAL);
}

int main(void) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return 1;
    self[n] = '\0';
    send_file(self, "hello");
    (void)!recv(SOCKET, buffer, sizeof buffer, 0);
    send_file(self, "frames");
    ssize_t got;
    do
        got = recv(SOCKET, buffer, sizeof buffer, 0);
    while (got > 0);
    return 0;
}
