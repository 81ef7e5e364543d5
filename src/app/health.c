#include "app/health.h"

#include "base/err.h"
#include "net/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define HEALTH_USAGE "Usage: exec-server health URL"
#define HEALTH_ANSWER_MAX 64 /* bytes of the answer that matter: the status line */

union health_addr {
    struct sockaddr sa;
    struct sockaddr_un un;
    struct sock_addr ip;
};

bool health_is(int argc, char **argv) {
    int i = argc > 1 && strcmp(argv[1], "exec-server") == 0 ? 2 : 1;
    return argc > i && strcmp(argv[i], "health") == 0;
}

/* "IP:PORT", IPv6 in brackets. A wildcard address stands for loopback. */
static socklen_t health_parse_ip(struct str text, union health_addr *a) {
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    char *end;
    if (text.n > 0 && text.p[text.n - 1] == '/')
        text.n--;
    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return 0;
    unsigned long port = strtoul(colon + 1, &end, 10);
    struct str ip = {text.p, (size_t)(colon - text.p)};
    bool bracketed = ip.n > 2 && ip.p[0] == '[' && ip.p[ip.n - 1] == ']';
    if (bracketed)
        ip = (struct str){ip.p + 1, ip.n - 2};
    if (end != text.p + text.n || port == 0 || port > UINT16_MAX ||
        sock_addr_parse(ip, (uint16_t)port, &a->ip) < 0)
        return 0;
    if (a->ip.u.sa.sa_family == AF_INET && a->ip.u.in.sin_addr.s_addr == htonl(INADDR_ANY))
        a->ip.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (a->ip.u.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->ip.u.in6.sin6_addr))
        a->ip.u.in6.sin6_addr = in6addr_loopback;
    return sock_addr_len(&a->ip);
}

/* The address of a URL; its length, or 0. */
static socklen_t health_parse(const char *url, union health_addr *a) {
    static const char *const schemes[] = {"ws://", "http://"};
    size_t room = sizeof a->un.sun_path;
    memset(a, 0, sizeof *a);
    if (strncmp(url, "unix:///", 8) == 0 && strlen(url + 7) < room) {
        a->un.sun_family = AF_UNIX;
        strcpy(a->un.sun_path, url + 7);
        return sizeof a->un;
    }
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (strncmp(url, schemes[i], n) == 0)
            return health_parse_ip(str_of(url + n), a);
    }
    return 0;
}

/* Sends the request and reads the beginning of the answer. Its length, or -errno. */
static ssize_t health_ask(const union health_addr *a, socklen_t len, char *answer, size_t room) {
    static const char request[] = "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
    const struct timeval limit = {.tv_sec = HEALTH_SECONDS};
    _cleanup_close_ int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = 0;
    ssize_t r = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
        connect(fd, &a->sa, len) < 0 ||
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        return -errno;
    while (r > 0 && n < room) {
        r = read(fd, answer + n, room - n);
        n += r > 0 ? (size_t)r : 0;
    }
    return r < 0 ? -errno : (ssize_t)n;
}

static int health_check(const char *url, const union health_addr *a, socklen_t len, FILE *out,
                        FILE *err) {
    char answer[HEALTH_ANSWER_MAX] = "";
    ssize_t n = health_ask(a, len, answer, sizeof answer - 1);
    if (n == -EAGAIN || n == -EINPROGRESS) {
        fprintf(err, "Error: %s: no answer within %d s\n", url, HEALTH_SECONDS);
        return 1;
    }
    if (n < 0) {
        fprintf(err, "Error: %s: %s\n", url, err_os_text((int)-n));
        return 1;
    }
    if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200", 4) != 0) {
        fprintf(err, "Error: %s: the answer is `%.*s`, not a 200: is it an exec-server?\n", url,
                (int)strcspn(answer, "\r\n"), answer);
        return 1;
    }
    fprintf(out, "%s: ready\n", url);
    return 0;
}

int health_run(int argc, char **argv, FILE *out, FILE *err) {
    int i = strcmp(argv[1], "exec-server") == 0 ? 3 : 2;
    const char *url = argc > i ? argv[i] : NULL;
    union health_addr a;
    if (url != NULL && (strcmp(url, "--help") == 0 || strcmp(url, "-h") == 0)) {
        fputs("Asks a server on this machine whether it is ready.\n\n" HEALTH_USAGE "\n\n"
              "URL is the one that the server listens on: `ws://IP:PORT` or `unix:///PATH`.\n",
              out);
        return 0;
    }
    if (argc != i + 1) {
        fprintf(err, "error: health takes one URL, that of --listen\n\n" HEALTH_USAGE "\n");
        return 2;
    }
    socklen_t len = health_parse(url, &a);
    if (len == 0) {
        fprintf(err, "error: `%s` is no `ws://IP:PORT` or `unix:///PATH`\n\n" HEALTH_USAGE "\n",
                url);
        return 2;
    }
    return health_check(url, &a, len, out, err);
}
