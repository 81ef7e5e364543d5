/*
 * What a browser, or somebody who claims to be one, sends to the console's listener: a head, whose
 * Host is compared with several listeners, and a token. No name but its own opens one, and no
 * text but a token is one. The input without the head is tried as a Host, too.
 */
#include "console/console_http.h"
#include "console/ticket.h"
#include "net/sock.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *const names[] = {"box.example"};

/* All that the listener at 127.0.0.1:8080 is called, besides its names. */
static const char *const own[] = {"127.0.0.1:8080", "localhost:8080"};

static bool is_named(struct str host) {
    static const char name[] = "box.example";
    const size_t n = sizeof name - 1;
    bool digits = host.n > n + 1 && host.n <= n + 6 && host.p[n] == ':';
    for (size_t i = n + 1; i < host.n && digits; i++)
        digits = host.p[i] >= '0' && host.p[i] <= '9';
    return host.n >= n && strncasecmp(host.p, name, n) == 0 && (host.n == n || digits);
}

static void check_host(struct str host) {
    struct sock_addr v4, v6;
    REQUIRE(sock_addr_parse(STR_LIT("127.0.0.1"), 8080, &v4) == 0);
    REQUIRE(sock_addr_parse(STR_LIT("::1"), 8080, &v6) == 0);
    bool known = is_named(host);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        known |= str_ieqz(host, own[i]);
    REQUIRE(console_http_host_ok(host, &v4.u.sa, names, ARRAY_LEN(names)) == known);
    bool known6 = is_named(host) || str_eqz(host, "[::1]:8080") || str_ieqz(host, own[1]);
    REQUIRE(console_http_host_ok(host, &v6.u.sa, names, ARRAY_LEN(names)) == known6);
}

static void check_token(struct str text) {
    static struct ticket_table t; /* nothing but its own tokens changes it */
    static char token[TICKET_LEN + 1];
    if (token[0] == '\0') {
        REQUIRE(sodium_init() >= 0);
        ticket_issue(&t, TICKET_FOREVER, token);
    }
    REQUIRE(!ticket_redeem(&t, text, 0));
    REQUIRE(ticket_secret_use(&t, text, 0) == -ENOENT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_request r;
    struct str all = {(const char *)data, size};
    check_host(all);
    check_token(all);
    (void)console_http_takes_gzip(all);
    if (http_parse(all.p, size, &r) <= 0)
        return 0;
    struct http_answer a;
    http_answer_init(&r, &a);
    if (http_check_get(&r, &a))
        REQUIRE(a.status == 200);
    http_check_upgrade(&r, &a);
    REQUIRE((a.action == HTTP_UPGRADE) == (a.status == 101));
    for (size_t i = 0; i < r.count; i++) {
        check_host(r.headers[i].value);
        (void)console_http_takes_gzip(r.headers[i].value);
    }
    return 0;
}
