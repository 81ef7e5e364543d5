#pragma once
/*
 * What a link needs of a TLS library. libexecserver-tls.so.0 exports one `struct tls_ops` under the
 * name TLS_SYMBOL; tls_load() finds it. Every call is non-blocking.
 */

#include <stddef.h>
#include <sys/types.h>

#define TLS_ABI 1
#define TLS_LIBRARY "libexecserver-tls.so.0"
#define TLS_SYMBOL "execserver_tls_ops"

struct tls_session;

struct tls_ops {
    unsigned abi; /* TLS_ABI */
    /* A session on a connected, non-blocking socket, which stays the caller's. `host` is verified
     * and sent (SNI); ca_file NULL: the system's. NULL, with a text in why[n]. */
    struct tls_session *(*open)(int fd, const char *host, const char *ca_file, char *why, size_t n);
    /* 0: done; -EAGAIN and *events (POLLIN, POLLOUT) to wait for; else -errno and error(). */
    int (*handshake)(struct tls_session *s, short *events);
    /* Bytes; 0 at the end; -EAGAIN (what to wait for is the obvious direction); else -errno. */
    ssize_t (*read)(struct tls_session *s, void *buf, size_t n);
    ssize_t (*write)(struct tls_session *s, const void *buf, size_t n);
    /* Bytes that read() gives without the socket. */
    size_t (*pending)(struct tls_session *s);
    const char *(*error)(struct tls_session *s); /* one line */
    void (*close)(struct tls_session *s);        /* says goodbye if it can at once, frees */
};

/* The operations, or NULL with a text in why[n]. They stay loaded. */
const struct tls_ops *tls_load(char *why, size_t n);
