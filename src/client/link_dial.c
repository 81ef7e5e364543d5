#include "client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LINK_DIAL_TOKEN_MAX 16384 /* bytes of a token */
#define LINK_DIAL_ARGS 16         /* words before and behind those of the caller */

/* -- tokens: never in clear text over a network -- */

static bool link_dial_has_token(const struct link *l) {
    return xs_options_has(l->options, XS_OPT_TOKEN) ||
           xs_options_has(l->options, XS_OPT_TOKEN_FILE);
}

static bool link_dial_needs_loopback(const struct link *l) {
    return l->target->kind == TARGET_WS && link_dial_has_token(l) &&
           xs_options_get_num(l->options, XS_OPT_TOKEN_INSECURE, 0) == 0;
}

static bool link_dial_is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_UNIX)
        return true;
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static bool link_dial_allow(struct dial *d, const struct sock_addr *a) {
    struct link *l = container_of(d, struct link, dial);
    bool may = !link_dial_needs_loopback(l) || link_dial_is_loopback(&a->u.sa);
    l->token_blocked = l->token_blocked || !may;
    return may;
}

static void link_dial_refuse_token(struct link *l) {
    link_break(l, LINK_REFUSED, XS_EINVAL,
               "the token would go in clear text over a network; use wss: or ssh:");
}

/* The token, without a newline at its end. 0 or -errno. */
static int link_dial_read_token(const struct link *l, struct buf *token) {
    const char *text = xs_options_get(l->options, XS_OPT_TOKEN, NULL);
    if (text != NULL)
        return buf_putz(token, text);
    const char *path = xs_options_get(l->options, XS_OPT_TOKEN_FILE, NULL);
    if (path == NULL)
        return 0;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (buf_reserve(token, LINK_DIAL_TOKEN_MAX) < 0)
        return -ENOMEM;
    ssize_t n = read(fd, token->p, LINK_DIAL_TOKEN_MAX);
    if (n < 0)
        return -errno;
    token->len = (size_t)n;
    while (token->len > 0 && strchr("\r\n", token->p[token->len - 1]) != NULL)
        token->len--;
    return token->len > 0 ? 0 : -ENODATA;
}

static bool link_dial_token_is_fit(struct str token) {
    for (size_t i = 0; i < token.n; i++) {
        if ((unsigned char)token.p[i] <= ' ' || token.p[i] == 0x7F)
            return false;
    }
    return true;
}

/* Puts the request; false: the link failed. */
static bool link_dial_ask(struct link *l) {
    _cleanup_buf_ struct buf token = BUF_INIT(LINK_DIAL_TOKEN_MAX + 1);
    _cleanup_buf_ struct buf text = BUF_INIT(TARGET_URL_MAX * 4 + LINK_DIAL_TOKEN_MAX + 1024);
    int r = link_dial_read_token(l, &token);
    if (r < 0) {
        link_break(l, LINK_REFUSED, XS_ELOCAL, "cannot read the token from %s: %s",
                   xs_options_get(l->options, XS_OPT_TOKEN_FILE, "its option"),
                   r == -ENODATA ? "it is empty" : err_os_text(-r));
        return false;
    }
    if (!link_dial_token_is_fit(buf_str(&token))) {
        link_break(l, LINK_REFUSED, XS_EINVAL, "the token has characters that no header can have");
        return false;
    }
    ws_open_key(l->key);
    r = l->ask != NULL ? l->ask(l, &text, buf_str(&token))
                       : ws_open_request(&text, str_of(l->target->authority),
                                         str_of(l->target->resource), buf_str(&token), l->key);
    bool put = r == 0 && link_out_raw(l, text.p, text.len);
    if (token.p != NULL)
        explicit_bzero(token.p, token.cap);
    if (text.p != NULL)
        explicit_bzero(text.p, text.cap);
    if (!put)
        link_break(l, LINK_REFUSED, XS_ENOMEM, "the request does not fit");
    return put;
}

/* -- a connected descriptor -- */

/* Lines and bytes are open at once; a WebSocket asks first. */
static void link_dial_begin_talk(struct link *l) {
    if (l->bytes != NULL && !link_dial_ask(l))
        return;
    if (l->lines || l->bytes != NULL) {
        l->state = LINK_OPEN;
        loop_timer_del(l->loop, &l->limit);
        link_alive_begin(l);
        l->opened(l);
        return;
    }
    l->state = LINK_UPGRADE;
    if (link_dial_ask(l))
        link_out_flush(l);
}

void link_dial_tls(struct link *l) {
    short events = 0;
    int r = l->tls->handshake(l->session, &events);
    if (r == 0) {
        link_dial_begin_talk(l);
    } else if (r == -EAGAIN) {
        loop_io_want(l->loop, &l->in,
                     ((events & POLLIN) != 0 ? EPOLLIN : 0) |
                         ((events & POLLOUT) != 0 ? EPOLLOUT : 0));
    } else {
        /* What a certificate lacks, it will lack again; a lost connection may come back. */
        bool lost = r == -ECONNRESET || r == -EPIPE || r == -ETIMEDOUT;
        link_break(l, lost ? LINK_LOST : LINK_REFUSED, XS_ECONNECT, "TLS: %s",
                   l->tls->error(l->session));
    }
}

/* Before a wss: URL is dialled, so that a program without TLS says so at once. */
static bool link_dial_load_tls(struct link *l) {
    char why[256] = "";
    if (l->tls == NULL)
        l->tls = tls_load(why, sizeof why);
    if (l->tls == NULL)
        link_break(l, LINK_REFUSED, XS_ENOTSUP, "%s", why);
    return l->tls != NULL;
}

static void link_dial_begin_tls(struct link *l) {
    char why[256] = "";
    if (!link_dial_load_tls(l))
        return;
    l->session = l->tls->open(l->in.fd, l->target->host,
                              xs_options_get(l->options, XS_OPT_CA_FILE, NULL), why, sizeof why);
    if (l->session == NULL) {
        link_break(l, LINK_REFUSED, XS_ECONNECT, "TLS: %s", why);
        return;
    }
    l->state = LINK_TLS;
    link_dial_tls(l);
}

static bool link_dial_is_socket(int fd) {
    int type = 0;
    socklen_t n = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0;
}

void link_dial_connected(struct link *l, int fd) {
    l->in.fd = fd;
    l->in_is_socket = link_dial_is_socket(fd);
    l->out_is_socket = l->out.fd >= 0 ? link_dial_is_socket(l->out.fd) : l->in_is_socket;
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof peer;
    if (link_dial_needs_loopback(l) && (getpeername(fd, (struct sockaddr *)&peer, &n) < 0 ||
                                        !link_dial_is_loopback((struct sockaddr *)&peer))) {
        link_dial_refuse_token(l);
        return;
    }
    l->met = true;
    int r = loop_io_add(l->loop, &l->in, EPOLLIN);
    if (r == 0 && l->out.fd >= 0)
        r = loop_io_add(l->loop, &l->out, 0);
    if (r < 0)
        link_break(l, LINK_REFUSED, XS_ELOCAL, "cannot watch the descriptor: %s", err_os_text(-r));
    else if (l->target->kind == TARGET_WSS)
        link_dial_begin_tls(l);
    else
        link_dial_begin_talk(l);
}

/* -- addresses -- */

static void link_dial_on_done(struct dial *d) {
    struct link *l = container_of(d, struct link, dial);
    if (d->fd >= 0) {
        link_dial_connected(l, steal_fd(&d->fd));
    } else if (l->token_blocked) {
        link_dial_refuse_token(l);
    } else {
        link_break(l, LINK_LOST, XS_ECONNECT, "%s", err_msg(&d->err));
    }
}

static void link_dial_address(struct link *l, uint64_t limit_ms) {
    l->dial.done = link_dial_on_done;
    l->dial.allow = link_dial_allow;
    if (l->target->kind == TARGET_WSS && !link_dial_load_tls(l))
        return;
    if (!l->resolving)
        resolve_init(&l->resolve, l->loop, NULL);
    l->resolving = true;
    int r =
        l->target->kind == TARGET_UNIX
            ? dial_unix(&l->dial, l->loop, str_of(l->target->path), limit_ms)
            : dial_host(&l->dial, &l->resolve, str_of(l->target->host), l->target->port, limit_ms);
    if (r < 0)
        link_break(l, r == -ENOMEM ? LINK_LOST : LINK_REFUSED, r == -ENOMEM ? XS_ENOMEM : XS_EINVAL,
                   "%s", err_os_text(-r));
}

/* -- children -- */

/* Quotes a word for the shell of the other host. */
static int link_dial_quote(struct buf *b, const char *word) {
    int r = buf_putc(b, '\'');
    for (; r == 0 && *word != '\0'; word++)
        r = *word == '\'' ? buf_putz(b, "'\\''") : buf_putc(b, *word);
    return r == 0 ? buf_putz(b, "'") : r;
}

/* exec-server beside the running program, or its bare name for PATH. */
static const char *link_dial_local_program(char path[PATH_MAX]) {
    static const char name[] = "exec-server";
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof name);
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (slash == NULL)
        return name;
    memcpy(slash + 1, name, sizeof name);
    return access(path, X_OK) == 0 ? path : name;
}

static void link_dial_child(struct link *l, const char *const *argv) {
    size_t n = 0;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    const char *const *env = xs_options_list(l->options, XS_OPT_PROGRAM_ENV, &n);
    const char *cwd = xs_options_get(l->options, XS_OPT_PROGRAM_CWD, NULL);
    int fd = spawn_start(&l->child, argv, env, cwd, &e);
    if (fd < 0)
        link_fail(l, LINK_REFUSED, &e);
    else
        link_dial_connected(l, fd);
}

static void link_dial_program(struct link *l) {
    size_t n = 0, count = 0;
    const char *const *args = xs_options_list(l->options, XS_OPT_ARG, &n);
    const char *program = xs_options_get(l->options, XS_OPT_PROGRAM, NULL);
    char path[PATH_MAX];
    bool local = l->target->kind == TARGET_LOCAL;
    if (local && program == NULL)
        program = link_dial_local_program(path);
    if (program == NULL) {
        link_break(l, LINK_REFUSED, XS_EINVAL, "stdio: needs a program");
        return;
    }
    _cleanup_free_ const char **argv = calloc(n + LINK_DIAL_ARGS, sizeof *argv);
    if (argv == NULL) {
        link_break(l, LINK_REFUSED, XS_ENOMEM, "out of memory");
        return;
    }
    argv[count++] = program;
    for (size_t i = 0; i < n; i++)
        argv[count++] = args[i];
    if (local) {
        argv[count++] = "--listen";
        argv[count++] = "stdio";
    }
    link_dial_child(l, argv);
}

static void link_dial_ssh(struct link *l) {
    const struct target *t = l->target;
    _cleanup_buf_ struct buf command = BUF_INIT(4 * TARGET_URL_MAX);
    const char *argv[LINK_DIAL_ARGS] = {"ssh", "-T", "-o", "ServerAliveInterval=5"};
    char port[8];
    size_t count = 4;
    if (t->user != NULL) {
        argv[count++] = "-l";
        argv[count++] = t->user;
    }
    if (t->port != 0) {
        snprintf(port, sizeof port, "%u", t->port);
        argv[count++] = "-p";
        argv[count++] = port;
    }
    argv[count++] = "--";
    argv[count++] = t->host;
    if (link_dial_quote(&command, t->path != NULL ? t->path : "exec-server") < 0 ||
        buf_putz(&command, " --listen stdio") < 0 || buf_putc(&command, '\0') < 0) {
        link_break(l, LINK_REFUSED, XS_ENOMEM, "out of memory");
        return;
    }
    argv[count++] = command.p;
    link_dial_child(l, argv);
}

static void link_dial_descriptors(struct link *l) {
    const struct target *t = l->target;
    int in = fcntl(t->in, F_DUPFD_CLOEXEC, 3);
    if (in >= 0 && t->out != t->in)
        l->out.fd = fcntl(t->out, F_DUPFD_CLOEXEC, 3);
    if (in < 0 || (t->out != t->in && l->out.fd < 0)) {
        int num = errno;
        util_close_fd(&in);
        link_break(l, LINK_REFUSED, XS_ELOCAL, "%s", err_os_text(num));
        return;
    }
    /* Sockets are read and written without waiting, whatever their flags. */
    if (!link_dial_is_socket(in))
        fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    if (l->out.fd >= 0 && !link_dial_is_socket(l->out.fd))
        fcntl(l->out.fd, F_SETFL, fcntl(l->out.fd, F_GETFL) | O_NONBLOCK);
    link_dial_connected(l, in);
}

void link_dial_begin(struct link *l, uint64_t limit_ms) {
    switch (l->target->kind) {
    case TARGET_WS:
    case TARGET_WSS:
    case TARGET_UNIX: link_dial_address(l, limit_ms); break;
    case TARGET_STDIO:
    case TARGET_LOCAL: link_dial_program(l); break;
    case TARGET_SSH: link_dial_ssh(l); break;
    case TARGET_FD: link_dial_descriptors(l); break;
    }
}
