#include "client/tls.h"

#include "base/util.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

extern const struct tls_ops execserver_tls_ops;
#define OPS (&execserver_tls_ops)

/* An authority, and what it signed or did not. */
static EVP_PKEY *ca_key, *key;
static X509 *ca;
static char ca_file[] = "/tmp/test_tls_XXXXXX";

/* Our session and the peer, which is OpenSSL itself. */
static struct tls_session *session;
static SSL *peer;
static SSL_CTX *context;
static int fds[2] = {-1, -1};
static char why[256];

static EVP_PKEY *make_key(void) {
    EVP_PKEY *k = EVP_EC_gen("P-256");
    assert_non_null(k);
    return k;
}

static void extend(X509 *x, int nid, const char *value) {
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

/* A certificate that is valid from now + from to now + until. `names` NULL: an authority. */
static X509 *make_cert(EVP_PKEY *k, const char *names, long from, long until, X509 *issuer,
                       EVP_PKEY *signer) {
    static long serial = 1;
    X509 *x = X509_new();
    assert_non_null(x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), from);
    X509_gmtime_adj(X509_getm_notAfter(x), until);
    X509_set_pubkey(x, k);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)(names ? "box.example" : "authority"), -1, -1,
                               0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
    if (names != NULL)
        extend(x, NID_subject_alt_name, names);
    else
        extend(x, NID_basic_constraints, "critical,CA:TRUE");
    assert_true(X509_sign(x, signer, EVP_sha256()) > 0);
    return x;
}

static int make_authority(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* a write to a vanished peer must not raise it */
    ca_key = make_key();
    key = make_key();
    ca = make_cert(ca_key, NULL, -60, 3600, NULL, ca_key);
    int fd = mkstemp(ca_file);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, ca), 1);
    fclose(f);
    return 0;
}

static int forget_authority(void **state) {
    (void)state;
    unlink(ca_file);
    X509_free(ca);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    return 0;
}

static int hang_up(void **state) {
    (void)state;
    OPS->close(session);
    session = NULL;
    SSL_free(peer);
    SSL_CTX_free(context);
    peer = NULL;
    context = NULL;
    util_close_fd(&fds[0]);
    util_close_fd(&fds[1]);
    return 0;
}

/* A peer with this certificate, and a session that expects `host`. */
static void dial(X509 *cert, const char *host) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(context, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(cert);
    peer = SSL_new(context);
    SSL_set_fd(peer, fds[1]);
    SSL_set_accept_state(peer);
    session = OPS->open(fds[0], host, ca_file, why, sizeof(why));
    assert_non_null(session);
}

/* Both sides in turn until ours is done; its result. */
static int shake(void) {
    for (int i = 0; i < 100; i++) {
        short events = 0;
        int r = OPS->handshake(session, &events);
        if (r != -EAGAIN) {
            (void)SSL_do_handshake(peer);
            return r;
        }
        assert_true(events == POLLIN || events == POLLOUT);
        (void)SSL_do_handshake(peer);
    }
    return -ETIMEDOUT;
}

static X509 *good(const char *names) {
    return make_cert(key, names, -60, 3600, ca, ca_key);
}

static void expect_refusal(const char *text) {
    assert_int_equal(shake(), -EACCES);
    if (strstr(OPS->error(session), text) == NULL)
        fail_msg("%s", OPS->error(session));
}

static void a_valid_certificate_is_taken(void **state) {
    (void)state;
    dial(good("DNS:box.example"), "box.example");
    assert_int_equal(shake(), 0);
    assert_string_equal(SSL_get_servername(peer, TLSEXT_NAMETYPE_host_name), "box.example");
    assert_int_equal(OPS->write(session, "ping", 4), 4);
    char got[16];
    assert_int_equal(SSL_read(peer, got, sizeof(got)), 4);
    assert_memory_equal(got, "ping", 4);
    assert_int_equal(OPS->read(session, got, sizeof(got)), -EAGAIN);
    assert_int_equal(SSL_write(peer, "pong!", 5), 5);
    assert_int_equal(OPS->read(session, got, 2), 2);
    assert_int_equal(OPS->pending(session), 3);
    assert_int_equal(OPS->read(session, got + 2, 8), 3);
    assert_memory_equal(got, "pong!", 5);
    (void)SSL_shutdown(peer);
    assert_int_equal(OPS->read(session, got, sizeof(got)), 0);
}

static void names_and_addresses(void **state) {
    static const struct {
        const char *names, *host;
        bool fits;
    } cases[] = {
        {"DNS:*.net.example", "box.net.example", true},
        {"DNS:box.example", "box.example.", true},
        {"DNS:box.example", "BOX.example", true},
        {"IP:127.0.0.1", "127.0.0.1", true},
        {"IP:::1", "::1", true},
        {"DNS:other.example", "box.example", false}, /* the common name does not count */
        {"DNS:*.net.example", "a.box.net.example", false},
        {"DNS:*.example", "box.example", false},
        {"DNS:b*.net.example", "box.net.example", false},
        {"DNS:127.0.0.1", "127.0.0.1", false},
        {"IP:127.0.0.1", "127.0.0.2", false},
        {"IP:127.0.0.1", "box.example", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        dial(good(cases[i].names), cases[i].host);
        int r = cases[i].fits ? shake() : 0;
        if (r != 0)
            fail_msg("%s: %s", cases[i].host, OPS->error(session));
        if (!cases[i].fits)
            expect_refusal("mismatch");
        hang_up(NULL);
    }
}

static void an_address_is_not_sent(void **state) {
    (void)state;
    dial(good("IP:127.0.0.1"), "127.0.0.1");
    assert_int_equal(shake(), 0);
    assert_null(SSL_get_servername(peer, TLSEXT_NAMETYPE_host_name));
}

static void bad_certificates_are_refused(void **state) {
    (void)state;
    dial(make_cert(key, "DNS:box.example", -7200, -3600, ca, ca_key), "box.example");
    expect_refusal("expired");
    hang_up(NULL);
    dial(make_cert(key, "DNS:box.example", 3600, 7200, ca, ca_key), "box.example");
    expect_refusal("not yet valid");
    hang_up(NULL);
    dial(make_cert(key, "DNS:box.example", -60, 3600, NULL, key), "box.example");
    expect_refusal("self-signed");
    hang_up(NULL);
    dial(make_cert(key, "DNS:box.example", -60, 3600, ca, key), "box.example"); /* forged */
    assert_int_equal(shake(), -EACCES);
}

static void an_old_protocol_is_refused(void **state) {
    (void)state;
    dial(good("DNS:box.example"), "box.example");
    SSL_set_min_proto_version(peer, TLS1_VERSION);
    SSL_set_max_proto_version(peer, TLS1_1_VERSION);
    SSL_set_security_level(peer, 0);
    assert_int_equal(shake(), -EPROTO);
}

static void a_peer_that_speaks_no_tls(void **state) {
    (void)state;
    dial(good("DNS:box.example"), "box.example");
    assert_int_equal(write(fds[1], "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
    short events;
    assert_int_equal(OPS->handshake(session, &events), -EPROTO);
    assert_true(strlen(OPS->error(session)) > 5);
}

/* The peer vanishes after each number of bytes of its part of the handshake. */
static void a_truncated_handshake_fails(void **state) {
    (void)state;
    for (size_t cut = 0;; cut = cut * 2 + 1) {
        char flight[16384];
        int wire[2];
        short events;
        dial(good("DNS:box.example"), "box.example");
        assert_int_equal(OPS->handshake(session, &events), -EAGAIN);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, wire), 0);
        SSL_set_rfd(peer, fds[1]);
        SSL_set_wfd(peer, wire[0]);
        (void)SSL_do_handshake(peer);
        ssize_t n = read(wire[1], flight, sizeof(flight));
        assert_true(n > 0);
        bool whole = cut >= (size_t)n;
        if (!whole && cut > 0)
            assert_int_equal(write(fds[1], flight, cut), cut);
        util_close_fd(&fds[1]);
        close(wire[0]);
        close(wire[1]);
        if (whole) {
            hang_up(NULL);
            break;
        }
        int r = OPS->handshake(session, &events);
        assert_int_equal(r, -ECONNRESET);
        assert_string_equal(OPS->error(session), "the connection ended within TLS");
        hang_up(NULL);
    }
}

static void an_end_without_goodbye_is_an_error(void **state) {
    (void)state;
    char got[16];
    dial(good("DNS:box.example"), "box.example");
    assert_int_equal(shake(), 0);
    SSL_free(peer);
    peer = NULL;
    util_close_fd(&fds[1]);
    ssize_t n;
    while ((n = OPS->read(session, got, sizeof(got))) == -EAGAIN)
        ;
    assert_int_equal(n, -ECONNRESET);
    n = OPS->write(session, "x", 1);
    assert_true(n < 0);
}

/* A peer that does not read: writing stops, and goes on later without loss. */
static void a_full_socket_takes_no_more(void **state) {
    (void)state;
    static char block[60000], got[65536];
    size_t sent = 0, received = 0;
    dial(good("DNS:box.example"), "box.example");
    assert_int_equal(shake(), 0);
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)i;
    ssize_t n;
    while ((n = OPS->write(session, block + sent % sizeof(block),
                           sizeof(block) - sent % sizeof(block))) > 0)
        sent += (size_t)n;
    assert_int_equal(n, -EAGAIN);
    assert_true(sent > 0);
    bool ended = false;
    while (!ended || received < sent) {
        int r = SSL_read(peer, got, sizeof(got));
        for (int i = 0; i < r; i++)
            assert_int_equal(got[i], block[(received + (size_t)i) % sizeof(block)]);
        received += r > 0 ? (size_t)r : 0;
        if (!ended) {
            n = OPS->write(session, block + sent % sizeof(block),
                           sizeof(block) - sent % sizeof(block));
            sent += n > 0 ? (size_t)n : 0;
            ended = n > 0;
        }
    }
    assert_int_equal(received, sent);
}

static void a_bad_file_of_authorities(void **state) {
    (void)state;
    assert_null(OPS->open(0, "box.example", "/nonexistent/ca.pem", why, sizeof(why)));
    assert_non_null(strstr(why, "/nonexistent/ca.pem"));
    assert_null(OPS->open(0, "box.example", "/dev/null", why, sizeof(why)));
    char host[400];
    memset(host, 'a', sizeof(host));
    host[sizeof(host) - 1] = '\0';
    assert_null(OPS->open(0, host, ca_file, why, sizeof(why)));
    assert_string_equal(why, "the host name is too long");
    OPS->close(NULL);
}

static void the_interface_is_the_present_one(void **state) {
    (void)state;
    assert_int_equal(OPS->abi, TLS_ABI);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interface_is_the_present_one),
        cmocka_unit_test_teardown(a_valid_certificate_is_taken, hang_up),
        cmocka_unit_test_teardown(names_and_addresses, hang_up),
        cmocka_unit_test_teardown(an_address_is_not_sent, hang_up),
        cmocka_unit_test_teardown(bad_certificates_are_refused, hang_up),
        cmocka_unit_test_teardown(an_old_protocol_is_refused, hang_up),
        cmocka_unit_test_teardown(a_peer_that_speaks_no_tls, hang_up),
        cmocka_unit_test_teardown(a_truncated_handshake_fails, hang_up),
        cmocka_unit_test_teardown(an_end_without_goodbye_is_an_error, hang_up),
        cmocka_unit_test_teardown(a_full_socket_takes_no_more, hang_up),
        cmocka_unit_test(a_bad_file_of_authorities),
    };
    return cmocka_run_group_tests(tests, make_authority, forget_authority);
}
