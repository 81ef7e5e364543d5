/* TLS by OpenSSL, for the links of the client. */
#include "client/tls.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ERROR_MAX 512 /* bytes of an error, with its NUL */
#define HOST_MAX 254  /* bytes of a host name, with its NUL */

struct tls_session {
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    int fd;      /* borrowed */
    int os;      /* errno of the socket, after a failure */
    bool ended;  /* the peer closed the socket */
    bool shaken; /* the handshake is done */
    bool broken; /* it failed */
    char name[HOST_MAX];
    char error[ERROR_MAX];
};

/* -- the socket: without SIGPIPE -- */

static struct tls_session *session_of(BIO *bio) {
    return BIO_get_data(bio);
}

static bool is_transient(int err) {
    return err == EAGAIN || err == EINTR;
}

static int bio_read(BIO *bio, char *p, int n) {
    struct tls_session *s = session_of(bio);
    BIO_clear_retry_flags(bio);
    ssize_t r = recv(s->fd, p, (size_t)n, MSG_DONTWAIT);
    if (r < 0 && is_transient(errno))
        BIO_set_retry_read(bio);
    else if (r < 0)
        s->os = errno;
    s->ended |= r == 0;
    return (int)r;
}

static int bio_write(BIO *bio, const char *p, int n) {
    struct tls_session *s = session_of(bio);
    BIO_clear_retry_flags(bio);
    ssize_t r = send(s->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (r < 0 && is_transient(errno))
        BIO_set_retry_write(bio);
    else if (r < 0)
        s->os = errno;
    return (int)r;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static bool make_bio(struct tls_session *s) {
    s->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "socket");
    if (s->method == NULL || !BIO_meth_set_read(s->method, bio_read) ||
        !BIO_meth_set_write(s->method, bio_write) || !BIO_meth_set_ctrl(s->method, bio_ctrl))
        return false;
    BIO *bio = BIO_new(s->method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    return true;
}

/* -- errors -- */

/* The reason of the oldest error of this thread; empties its list. */
static void reason(char *out, size_t n) {
    unsigned long e = ERR_get_error();
    const char *text = e != 0 ? ERR_reason_error_string(e) : NULL;
    (void)snprintf(out, n, "%s", text != NULL ? text : "TLS failed");
    ERR_clear_error();
}

/* Describes a failure of OpenSSL; returns -errno. */
static int fail(struct tls_session *s) {
    s->broken = true;
    long verdict = SSL_get_verify_result(s->ssl);
    if (!s->shaken && verdict != X509_V_OK) {
        ERR_clear_error();
        (void)snprintf(s->error, sizeof(s->error), "the certificate is not valid for %s: %s",
                       s->name, X509_verify_cert_error_string(verdict));
        return -EACCES;
    }
    if (s->os != 0) {
        ERR_clear_error();
        (void)snprintf(s->error, sizeof(s->error), "%s", strerror(s->os));
        return -s->os;
    }
    if (s->ended) {
        ERR_clear_error();
        (void)snprintf(s->error, sizeof(s->error), "the connection ended within TLS");
        return -ECONNRESET;
    }
    char text[ERROR_MAX / 2];
    reason(text, sizeof(text));
    (void)snprintf(s->error, sizeof(s->error), "%s", text);
    return -EPROTO;
}

/* -- sessions -- */

static void tls_close(struct tls_session *s) {
    if (s == NULL)
        return;
    if (s->shaken && !s->broken)
        (void)SSL_shutdown(s->ssl);
    SSL_free(s->ssl);
    BIO_meth_free(s->method);
    SSL_CTX_free(s->context);
    ERR_clear_error();
    free(s);
}

/* Trusts the certificates of a file, or those of the system. */
static bool trust(SSL_CTX *context, const char *ca_file) {
    return ca_file != NULL ? SSL_CTX_load_verify_file(context, ca_file) == 1
                           : SSL_CTX_set_default_verify_paths(context) == 1;
}

/* The peer's certificate must be for this name or address. A name is sent, too. */
static bool expect(struct tls_session *s) {
    X509_VERIFY_PARAM *p = SSL_get0_param(s->ssl);
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, s->name, address) == 1 || inet_pton(AF_INET6, s->name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(p, s->name) == 1;
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(p, s->name, 0) == 1 &&
           SSL_set_tlsext_host_name(s->ssl, s->name) == 1;
}

static bool prepare(struct tls_session *s, const char *ca_file) {
    static const unsigned char http[] = "\x08http/1.1";
    s->context = SSL_CTX_new(TLS_client_method());
    if (s->context == NULL || SSL_CTX_set_min_proto_version(s->context, TLS1_2_VERSION) != 1)
        return false;
    SSL_CTX_set_options(s->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(s->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                     SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(s->context, SSL_VERIFY_PEER, NULL);
    if (!trust(s->context, ca_file) || (s->ssl = SSL_new(s->context)) == NULL)
        return false;
    SSL_set_connect_state(s->ssl);
    return SSL_set_alpn_protos(s->ssl, http, sizeof(http) - 1) == 0 && expect(s) && make_bio(s);
}

static struct tls_session *tls_open(int fd, const char *host, const char *ca_file, char *why,
                                    size_t n) {
    size_t length = strlen(host);
    struct tls_session *s = calloc(1, sizeof(*s));
    if (length > 0 && host[length - 1] == '.') /* the root, which no certificate names */
        length--;
    if (s == NULL || length >= sizeof(s->name)) {
        (void)snprintf(why, n, s == NULL ? "out of memory" : "the host name is too long");
        free(s);
        return NULL;
    }
    s->fd = fd;
    memcpy(s->name, host, length);
    ERR_clear_error();
    if (prepare(s, ca_file))
        return s;
    char text[ERROR_MAX / 2];
    reason(text, sizeof(text));
    (void)snprintf(why, n, "%s: %s", ca_file != NULL ? ca_file : "TLS", text);
    tls_close(s);
    return NULL;
}

static int tls_handshake(struct tls_session *s, short *events) {
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl), e = SSL_get_error(s->ssl, r);
    if (r == 1) {
        s->shaken = true;
        return 0;
    }
    if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
        return fail(s);
    *events = e == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return -EAGAIN;
}

/* The result of SSL_read_ex() or SSL_write_ex() for the caller. */
static ssize_t outcome(struct tls_session *s, int r, size_t done) {
    if (r == 1)
        return (ssize_t)done;
    switch (SSL_get_error(s->ssl, r)) {
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return -EAGAIN;
    default: return fail(s);
    }
}

static ssize_t tls_read(struct tls_session *s, void *buf, size_t n) {
    size_t done = 0;
    ERR_clear_error();
    int r = SSL_read_ex(s->ssl, buf, n, &done);
    return outcome(s, r, done);
}

static ssize_t tls_write(struct tls_session *s, const void *buf, size_t n) {
    size_t done = 0;
    ERR_clear_error();
    int r = SSL_write_ex(s->ssl, buf, n, &done);
    return outcome(s, r, done);
}

static size_t tls_pending(struct tls_session *s) {
    return (size_t)SSL_pending(s->ssl);
}

static const char *tls_error(struct tls_session *s) {
    return s->error;
}

__attribute__((visibility("default"))) extern const struct tls_ops execserver_tls_ops;
const struct tls_ops execserver_tls_ops = {
    .abi = TLS_ABI,
    .open = tls_open,
    .handshake = tls_handshake,
    .read = tls_read,
    .write = tls_write,
    .pending = tls_pending,
    .error = tls_error,
    .close = tls_close,
};
