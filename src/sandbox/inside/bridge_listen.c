#include "sandbox/inside/bridge.h"

#include "base/fdpass.h"
#include "sandbox/inside/bridge_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define LISTEN_QUEUE 64

socklen_t bridge_listen_address(bool v6, uint16_t port, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (v6) {
        struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
        *a = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        return sizeof *a;
    }
    struct sockaddr_in *a = (struct sockaddr_in *)out;
    *a = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return sizeof *a;
}

/* A new namespace has a loopback device, but it is down. */
static int listen_loopback_up(void) {
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r) < 0 ? -errno : 0;
}

static int listen_open(bool v6, uint16_t port) {
    struct sockaddr_storage a;
    socklen_t n = bridge_listen_address(v6, port, &a);
    _cleanup_close_ int fd =
        socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, LISTEN_QUEUE) < 0)
        return -errno;
    return steal_fd(&fd);
}

int bridge_listen(const struct plan *p, int sock, struct fault *f) {
    int r = listen_loopback_up();
    if (r < 0)
        return fault_os(f, FAULT_NETWORK, -r, "loopback");
    for (size_t i = 0; i < 2 * p->port_count; i++) {
        uint16_t port = p->ports[i / 2];
        bool v6 = i % 2 != 0;
        struct str bytes = {(const char *)&port, sizeof port};
        _cleanup_close_ int fd = listen_open(v6, port);
        if (fd == -EADDRINUSE || (v6 && fd < 0))
            continue; /* a port named twice; no IPv6 on this host */
        r = fd < 0 ? fd : fdpass_send(sock, bytes, STR_LIT(""), fd);
        if (r < 0)
            return fault_os(f, FAULT_NETWORK, -r, "port %u", (unsigned)port);
    }
    return 0;
}
