/*
 * Bearer tokens. The input is tried as a whole Authorization header, as a token, and, split at its
 * first line end, as the header and claims of a token that is signed here, so that the JSON behind
 * the signature is reached.
 */
#include "net/auth.h"

#include "base/buf.h"
#include "json/base64.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char SECRET[] = "0123456789abcdef0123456789abcdef";
static char ISSUER[] = "me", AUDIENCE[] = "you";

static void put_base64url(struct buf *b, const void *p, size_t n) {
    REQUIRE(buf_reserve(b, base64_encoded_len(n)) == 0);
    char *text = b->p + b->len;
    size_t len = base64_encode(text, p, n);
    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    b->len += len;
}

static void sign(struct buf *b) {
    uint8_t mac[32];
    crypto_auth_hmacsha256_state st;
    crypto_auth_hmacsha256_init(&st, (const unsigned char *)SECRET, sizeof SECRET - 1);
    crypto_auth_hmacsha256_update(&st, (const unsigned char *)b->p, b->len);
    crypto_auth_hmacsha256_final(&st, mac);
    REQUIRE(buf_putc(b, '.') == 0);
    put_base64url(b, mac, sizeof mac);
}

static void check_signed(const struct auth *a, struct str in) {
    static const char head[] = "{\"alg\":\"HS256\"}";
    const char *line = in.n > 0 ? memchr(in.p, '\n', in.n) : NULL;
    size_t n = line ? (size_t)(line - in.p) : 0;
    _cleanup_buf_ struct buf b = BUF_INIT(1 << 22);
    if (n > 0)
        put_base64url(&b, in.p, n);
    else
        put_base64url(&b, head, sizeof head - 1);
    REQUIRE(buf_putc(&b, '.') == 0);
    size_t skip = line ? n + 1 : 0;
    put_base64url(&b, in.p + skip, in.n - skip);
    sign(&b);
    const char *why = auth_check_jwt(a, buf_str(&b), 1000);
    _cleanup_buf_ struct buf header = BUF_INIT(1 << 23);
    REQUIRE(buf_putz(&header, "Bearer ") == 0 && buf_put(&header, b.p, b.len) == 0);
    _cleanup_free_ char *subject = auth_subject(a, buf_str(&header));
    REQUIRE(subject == NULL || strlen(subject) <= AUTH_SUBJECT_MAX);
    /* A changed signature never passes. */
    b.p[b.len - 3] = b.p[b.len - 3] == 'A' ? 'B' : 'A';
    REQUIRE(auth_check_jwt(a, buf_str(&b), 1000) != NULL);
    if (why == NULL)
        REQUIRE(memmem(in.p, in.n, "exp", 3) != NULL || memchr(in.p, '\\', in.n) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str in = {(const char *)data, size};
    struct auth a = {
        .mode = AUTH_SIGNED, .secret = SECRET, .secret_len = sizeof SECRET - 1, .skew = 30};
    if (size == 0)
        return 0;
    auth_check(&a, in, 1000);
    auth_check_jwt(&a, in, 1000);
    free(auth_subject(&a, in)); /* must stand any text, though it is asked about good ones only */
    check_signed(&a, in);
    a.issuer = ISSUER;
    a.audience = AUDIENCE;
    check_signed(&a, in);
    a.mode = AUTH_CAPABILITY;
    REQUIRE(auth_check(&a, in, 1000) != NULL);
    return 0;
}
