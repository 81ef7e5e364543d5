#include "net/resolve_query.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

static void resolve_query_on_io(struct loop_io *io, uint32_t events);
static void resolve_query_on_timer(struct loop_timer *t);

void resolve_query_init(struct resolve_query *q, struct loop *loop, const struct dns_conf *conf,
                        struct loop_task *wake) {
    *q = (struct resolve_query){.loop = loop, .conf = conf, .wake = wake};
    q->io = (struct loop_io){.fd = -1, .fn = resolve_query_on_io};
    q->timer.fn = resolve_query_on_timer;
}

void resolve_query_stop(struct resolve_query *q) {
    loop_timer_del(q->loop, &q->timer);
    loop_io_del(q->loop, &q->io);
    util_close_fd(&q->io.fd);
    free(q->in);
    q->in = NULL;
    q->in_len = q->in_at = q->out_at = 0;
}

static const struct sock_addr *resolve_query_addr(const struct resolve_query *q) {
    return &q->conf->server[(q->first + MAX(q->tries, 1U) - 1) % q->conf->servers];
}

void resolve_query_server(const struct resolve_query *q, char dst[SOCK_PEER_MAX]) {
    sock_peer_name(&resolve_query_addr(q)->u.sa, dst);
}

/* Notes the outcome of a try: the server's name, then the text. */
static void PRINTF_LIKE(3, 4)
    resolve_query_note(struct resolve_query *q, enum resolve_status status, const char *fmt, ...) {
    char server[SOCK_PEER_MAX], text[RESOLVE_QUERY_WHY - SOCK_PEER_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    resolve_query_server(q, server);
    snprintf(q->why, sizeof q->why, "%s %s", server, text);
    q->status = status;
}

/* Notes a failed system call. -num. */
static int resolve_query_note_os(struct resolve_query *q, int num) {
    bool ours = num == EMFILE || num == ENFILE || num == ENOMEM || num == ENOBUFS;
    resolve_query_note(q, ours ? RESOLVE_NO_RESOURCES : RESOLVE_SERVER_FAILED,
                       "cannot be asked: %s (os error %d)", err_os_text(num), num);
    return -num;
}

static void resolve_query_finish(struct resolve_query *q) {
    resolve_query_stop(q);
    q->finished = true;
    loop_defer(q->loop, q->wake);
}

/* -- a try -- */

/* A new id, and new upper and lower case. 0 or -errno. */
static int resolve_query_randomise(struct resolve_query *q) {
    uint8_t random[2 + DNS_WIRE_NAME_MAX / 8 + 1];
    ssize_t n = getrandom(random, sizeof random, 0);
    if (n != (ssize_t)sizeof random)
        return n < 0 ? -errno : -EIO;
    q->ask.id = (uint16_t)(random[0] << 8 | random[1]);
    if (q->ask.exact)
        dns_wire_name_mix(&q->ask.name, random + 2);
    return 0;
}

/* Opens a socket to the server and watches it. 0 or -errno. */
static int resolve_query_connect(struct resolve_query *q) {
    const struct sock_addr *to = resolve_query_addr(q);
    int type = (q->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
    q->io.fd = socket(to->u.sa.sa_family, type, 0);
    if (q->io.fd < 0)
        return -errno;
    if (connect(q->io.fd, &to->u.sa, sock_addr_len(to)) < 0 && errno != EINPROGRESS)
        return -errno;
    if (!q->tcp && send(q->io.fd, q->out + 2, q->out_len - 2, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        return -errno;
    int r = loop_io_add(q->loop, &q->io, q->tcp ? EPOLLOUT : EPOLLIN);
    return r < 0 ? r : loop_timer_set(q->loop, &q->timer, q->conf->timeout * LOOP_SEC);
}

/* Puts the question to the current server. 0, or -errno and the try is over. */
static int resolve_query_ask(struct resolve_query *q, bool tcp) {
    resolve_query_stop(q);
    q->tcp = tcp;
    q->strays = 0;
    int r = resolve_query_randomise(q);
    size_t n = dns_wire_query(&q->ask, q->out + 2);
    q->out[0] = (uint8_t)(n >> 8);
    q->out[1] = (uint8_t)n;
    q->out_len = n + 2;
    if (r == 0)
        r = resolve_query_connect(q);
    return r < 0 ? resolve_query_note_os(q, -r) : 0;
}

/* Asks the next server, or ends with what the last one said. */
static void resolve_query_next(struct resolve_query *q) {
    while (q->tries < q->conf->attempts * q->conf->servers) {
        q->tries++;
        if (resolve_query_ask(q, q->conf->use_vc) == 0)
            return;
    }
    resolve_query_finish(q);
}

void resolve_query_start(struct resolve_query *q, const struct dns_wire_name *name,
                         enum dns_wire_type type, size_t first, bool mix_case) {
    q->ask = (struct dns_wire_query){
        .type = type, .exact = mix_case, .alias = q->alias, .user = q->user, .name = *name};
    q->first = first;
    q->tries = 0;
    q->finished = false;
    q->answer.n = 0;
    resolve_query_next(q);
}

static void resolve_query_on_timer(struct loop_timer *t) {
    struct resolve_query *q = container_of(t, struct resolve_query, timer);
    resolve_query_note(q, RESOLVE_TIMED_OUT, "did not answer within %u s", q->conf->timeout);
    resolve_query_next(q);
}

/* -- answers -- */

/* Acts on an answer that is not a stray. */
static void resolve_query_answered(struct resolve_query *q, enum dns_wire_verdict verdict) {
    switch (verdict) {
    case DNS_WIRE_STRAY:
    case DNS_WIRE_MALFORMED:
        resolve_query_note(q, RESOLVE_MALFORMED, "sent a malformed answer");
        resolve_query_next(q);
        return;
    case DNS_WIRE_TRUNCATED:
        if (q->tcp)
            resolve_query_note(q, RESOLVE_MALFORMED, "sent a truncated answer by TCP");
        if (q->tcp || resolve_query_ask(q, true) < 0)
            resolve_query_next(q);
        return;
    case DNS_WIRE_REFUSED:
        resolve_query_note(q, RESOLVE_SERVER_FAILED, "answered %s",
                           dns_wire_rcode_text(q->answer.rcode));
        resolve_query_next(q);
        return;
    case DNS_WIRE_NO_NAME: resolve_query_note(q, RESOLVE_NOT_FOUND, "knows no such name"); break;
    case DNS_WIRE_DENIED:
        resolve_query_note(q, RESOLVE_DENIED, "gave an alias that is denied");
        break;
    case DNS_WIRE_ADDRESSES:
        q->status = RESOLVE_OK;
        if (q->answer.n == 0)
            resolve_query_note(q, RESOLVE_NO_ADDRESS, "knows the name, but no address");
        break;
    }
    resolve_query_finish(q);
}

static void resolve_query_failed(struct resolve_query *q, int num) {
    resolve_query_note_os(q, num);
    resolve_query_next(q);
}

/* Reads a datagram. Whether it may go on with another. */
static bool resolve_query_read_udp(struct resolve_query *q) {
    uint8_t msg[RESOLVE_QUERY_UDP];
    ssize_t n = recv(q->io.fd, msg, sizeof msg, MSG_TRUNC);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            resolve_query_failed(q, errno);
        return false;
    }
    bool cut = (size_t)n > sizeof msg;
    enum dns_wire_verdict verdict =
        dns_wire_read(&q->ask, msg, cut ? sizeof msg : (size_t)n, &q->answer);
    if (verdict == DNS_WIRE_STRAY && ++q->strays < RESOLVE_QUERY_STRAYS)
        return true;
    /* So many strays are an attempt to guess the id; a connection cannot be guessed. */
    resolve_query_answered(q, cut || verdict == DNS_WIRE_STRAY ? DNS_WIRE_TRUNCATED : verdict);
    return false;
}

static void resolve_query_write_tcp(struct resolve_query *q) {
    int num = 0;
    socklen_t len = sizeof num;
    if (getsockopt(q->io.fd, SOL_SOCKET, SO_ERROR, &num, &len) < 0)
        num = errno;
    if (num != 0) {
        resolve_query_failed(q, num);
        return;
    }
    ssize_t n = send(q->io.fd, q->out + q->out_at, q->out_len - q->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        resolve_query_failed(q, errno);
        return;
    }
    q->out_at += n > 0 ? (size_t)n : 0;
    if (q->out_at == q->out_len)
        loop_io_want(q->loop, &q->io, EPOLLIN);
}

/* Reads what there is. 1: more may be there; 0: wait; -errno. */
static int resolve_query_read_part(struct resolve_query *q) {
    bool head = q->in == NULL;
    uint8_t *dst = head ? q->head + q->in_at : q->in + q->in_at;
    size_t want = (head ? sizeof q->head : q->in_len) - q->in_at;
    ssize_t n = recv(q->io.fd, dst, want, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    q->in_at += (size_t)n;
    if (!head || q->in_at < sizeof q->head)
        return 1;
    q->in_len = (size_t)q->head[0] << 8 | q->head[1];
    q->in_at = 0;
    q->in = malloc(MAX(q->in_len, 1U));
    return q->in ? 1 : -ENOMEM;
}

static void resolve_query_read_tcp(struct resolve_query *q) {
    int r = 1;
    while (r > 0 && (q->in == NULL || q->in_at < q->in_len))
        r = resolve_query_read_part(q);
    if (r < 0)
        resolve_query_failed(q, -r);
    else if (q->in != NULL && q->in_at == q->in_len)
        resolve_query_answered(q, dns_wire_read(&q->ask, q->in, q->in_len, &q->answer));
}

static void resolve_query_on_io(struct loop_io *io, uint32_t events) {
    struct resolve_query *q = container_of(io, struct resolve_query, io);
    (void)events;
    if (q->tcp && q->out_at < q->out_len) {
        resolve_query_write_tcp(q);
    } else if (q->tcp) {
        resolve_query_read_tcp(q);
    } else {
        for (int i = 0; i < RESOLVE_QUERY_BURST && resolve_query_read_udp(q);)
            i++;
    }
}
