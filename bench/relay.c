// A line between a client and a server: it delays every byte and passes only so many in a second.
#include "measure.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RELAYS 16                // connections at a time
#define PIECE 65536              // bytes read at a time
#define IN_FLIGHT (16 << 20)     // bytes on their way in one direction, above rate times delay
#define PIECES (IN_FLIGHT / 512) // and pieces

struct piece {
    uint64_t due; // when its last byte has arrived
    size_t n;
};

// One direction of one connection: a ring of bytes, and one of the pieces they came in.
struct way {
    int from, to;
    char *bytes;
    struct piece *pieces;
    size_t at, used;       // of bytes
    size_t first, waiting; // of pieces
    uint64_t free_at;      // when the line has passed what it has
    int ended, closed;
};

static struct way *ways[2 * RELAYS];

static void *allocate(size_t n) {
    void *p = malloc(n);
    if (p == NULL)
        fail("out of memory");
    return p;
}

static struct way *way_new(int from, int to) {
    struct way *w = allocate(sizeof *w);
    *w = (struct way){.from = from, .to = to};
    w->bytes = allocate(IN_FLIGHT);
    w->pieces = allocate(PIECES * sizeof *w->pieces);
    return w;
}

static void way_free(struct way *w) {
    free(w->bytes);
    free(w->pieces);
    free(w);
}

static int has_room(const struct way *w) {
    return !w->ended && w->used < IN_FLIGHT && w->waiting < PIECES;
}

static void take(struct way *w, const struct measure_options *o) {
    size_t end = (w->at + w->used) % IN_FLIGHT, room = IN_FLIGHT - w->used, n = PIECE;
    uint64_t now = now_ns();

    n = n < room ? n : room;
    n = n < IN_FLIGHT - end ? n : IN_FLIGHT - end;
    ssize_t r = recv(w->from, w->bytes + end, n, MSG_DONTWAIT);
    if (r < 0 && errno == EAGAIN)
        return;
    if (r <= 0) {
        w->ended = 1;
        return;
    }
    w->free_at = (w->free_at > now ? w->free_at : now) + (uint64_t)r * 1000000000 / o->bytes;
    w->pieces[(w->first + w->waiting++) % PIECES] =
        (struct piece){w->free_at + o->millis * 1000000, (size_t)r};
    w->used += (size_t)r;
}

// Hands on what is due; the time of the next piece, 0: none, or the receiver is slow.
static uint64_t give(struct way *w) {
    while (w->waiting > 0) {
        struct piece *p = &w->pieces[w->first];
        if (p->due > now_ns())
            return p->due;
        size_t n = p->n < IN_FLIGHT - w->at ? p->n : IN_FLIGHT - w->at;
        ssize_t r = send(w->to, w->bytes + w->at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r < 0 && errno == EAGAIN)
            return 0;
        if (r < 0) {
            w->closed = w->ended = 1;
            w->waiting = w->used = 0;
            return 0;
        }
        w->at = (w->at + (size_t)r) % IN_FLIGHT;
        w->used -= (size_t)r;
        p->n -= (size_t)r;
        if (p->n == 0) {
            w->first = (w->first + 1) % PIECES;
            w->waiting--;
        }
    }
    if (w->ended && !w->closed) {
        shutdown(w->to, SHUT_WR);
        w->closed = 1;
    }
    return 0;
}

static int tcp(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        fail("socket: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void join(int listener, const struct measure_options *o) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(o->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int near = accept4(listener, NULL, NULL, SOCK_CLOEXEC), far = tcp(), one = 1;
    if (near < 0 || connect(far, (struct sockaddr *)&to, sizeof to) < 0)
        fail("the relay cannot connect: %s", strerror(errno));
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (size_t i = 0; i < 2 * RELAYS; i += 2) {
        if (ways[i] == NULL) {
            ways[i] = way_new(near, far);
            ways[i + 1] = way_new(far, near);
            return;
        }
    }
    close(near);
    close(far);
}

static void part(size_t i) {
    if (ways[i] == NULL || !ways[i]->closed || !ways[i + 1]->closed)
        return;
    close(ways[i]->from);
    close(ways[i]->to);
    way_free(ways[i]);
    way_free(ways[i + 1]);
    ways[i] = ways[i + 1] = NULL;
}

static int listen_here(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = tcp();

    if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, RELAYS) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        fail("the relay cannot listen: %s", strerror(errno));
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

// Sleeps until there is something to do: `next` is the time of the first piece, 0: none.
static void wait_for(struct pollfd *p, nfds_t n, uint64_t next) {
    struct timespec t = {0};
    uint64_t now = now_ns(), left = next > now ? next - now : 0;

    t.tv_sec = (time_t)(left / 1000000000);
    t.tv_nsec = (long)(left % 1000000000);
    if (ppoll(p, n, next != 0 ? &t : NULL, NULL) < 0 && errno != EINTR)
        fail("ppoll: %s", strerror(errno));
}

void measure_relay(const struct measure_options *o) {
    struct pollfd p[1 + 4 * RELAYS];
    int listener = listen_here();

    alarm(0);
    for (;;) {
        nfds_t n = 1;
        uint64_t next = 0;
        p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (size_t i = 0; i < 2 * RELAYS; i++) {
            struct way *w = ways[i];
            if (w == NULL)
                continue;
            while (has_room(w)) {
                size_t before = w->used;
                take(w, o);
                if (w->used == before)
                    break;
            }
            uint64_t due = give(w);
            next = due != 0 && (next == 0 || due < next) ? due : next;
            if (has_room(w))
                p[n++] = (struct pollfd){.fd = w->from, .events = POLLIN};
            if (due == 0 && w->waiting > 0)
                p[n++] = (struct pollfd){.fd = w->to, .events = POLLOUT};
        }
        for (size_t i = 0; i < 2 * RELAYS; i += 2)
            part(i);
        wait_for(p, n, next);
        if (p[0].revents & POLLIN)
            join(listener, o);
    }
}
