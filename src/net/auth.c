#include "net/auth.h"

#include "base/utf8.h"
#include "json/base64.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define AUTH_SIGNED_MIN 32 /* bytes of a signing secret */

static const char AUTH_MISSING[] = "missing websocket bearer token";
static const char AUTH_BAD_HEADER[] = "invalid authorization header";
static const char AUTH_BAD_TOKEN[] = "invalid websocket bearer token";
static const char AUTH_BAD_JWT[] = "invalid websocket jwt";
static const char AUTH_EXPIRED[] = "expired websocket jwt";
static const char AUTH_NOT_YET[] = "websocket jwt is not valid yet";
static const char AUTH_ISSUER[] = "websocket jwt issuer mismatch";
static const char AUTH_AUDIENCE[] = "websocket jwt audience mismatch";

static void auth_wipe(char *p, size_t n) {
    if (p != NULL) {
        sodium_memzero(p, n);
        free(p);
    }
}

/* Reads until the end of file or `room` bytes. The number of bytes, or -errno. */
static ssize_t auth_read_all(const char *path, char *p, size_t room) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    while (len < room) {
        ssize_t r = read(fd, p + len, room - len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        len += (size_t)r;
    }
    return (ssize_t)len;
}

/* Checks the bytes of a secret file; on success *s is the trimmed secret within p. */
static int auth_check_secret(const char *path, const char *p, ssize_t r, struct str *s,
                             struct err *e) {
    if (r < 0) {
        int num = (int)-r;
        err_set(e, ERR_INVALID_REQUEST, "failed to read websocket auth secret %s: %s (os error %d)",
                path, err_os_text(num), num);
        return -num;
    }
    if (r > AUTH_SECRET_MAX)
        return err_set(e, ERR_INVALID_REQUEST, "websocket auth secret %s is larger than %d bytes",
                       path, AUTH_SECRET_MAX);
    if (!utf8_valid(p, (size_t)r))
        return err_set(
            e, ERR_INVALID_REQUEST,
            "failed to read websocket auth secret %s: stream did not contain valid UTF-8", path);
    *s = str_trim((struct str){p, (size_t)r});
    if (s->n == 0)
        return err_set(e, ERR_INVALID_REQUEST, "websocket auth secret %s must not be empty", path);
    return 0;
}

int auth_read_secret(const char *path, char **out, size_t *n, struct err *e) {
    const size_t room = AUTH_SECRET_MAX + 1;
    char *p = malloc(room);
    if (p == NULL)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    struct str s = {NULL, 0};
    int rc = auth_check_secret(path, p, auth_read_all(path, p, room), &s, e);
    if (rc == 0) {
        *out = malloc(s.n + 1);
        if (*out == NULL) {
            rc = err_os(e, ERR_INTERNAL, ENOMEM);
        } else {
            memcpy(*out, s.p, s.n);
            (*out)[s.n] = '\0';
            *n = s.n;
        }
    }
    auth_wipe(p, room);
    return rc;
}

int auth_capability_file(struct auth *a, const char *path, struct err *e) {
    char *token;
    size_t n;
    int r = auth_read_secret(path, &token, &n, e);
    if (r < 0)
        return r;
    *a = (struct auth){.mode = AUTH_CAPABILITY};
    crypto_hash_sha256(a->digest, (const unsigned char *)token, n);
    auth_wipe(token, n);
    return 0;
}

int auth_tokens_file(struct auth *a, const char *path, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    struct tokens *tokens = NULL;
    char *text;
    size_t n;
    int r = auth_read_secret(path, &text, &n, e);
    if (r < 0)
        return r;
    r = tokens_parse((struct str){text, n}, &tokens, &why);
    auth_wipe(text, n);
    if (r < 0)
        return err_set(e, ERR_INVALID_REQUEST, "websocket auth tokens %s: %s", path, err_msg(&why));
    *a = (struct auth){.mode = AUTH_CAPABILITY, .tokens = tokens};
    return 0;
}

int auth_capability_digest(struct auth *a, const char *hex, struct err *e) {
    static const char text[] = "--ws-token-sha256 must be a 64-character hex SHA-256 digest";
    struct auth out = {.mode = AUTH_CAPABILITY};
    if (!tokens_hex(str_trim(str_of(hex)), out.digest))
        return err_set(e, ERR_INVALID_REQUEST, "%s", text);
    *a = out;
    return 0;
}

/* A trimmed copy of z in *out, NULL when z is NULL or blank. 0 or -ENOMEM. */
static int auth_copy_trimmed(const char *z, char **out) {
    struct str s = str_trim(str_of(z));
    *out = s.n > 0 ? str_dup(s) : NULL;
    return s.n > 0 && *out == NULL ? -ENOMEM : 0;
}

int auth_signed(struct auth *a, const char *secret_path, const char *issuer, const char *audience,
                int64_t skew, struct err *e) {
    struct auth out = {.mode = AUTH_SIGNED, .skew = skew};
    int r = auth_read_secret(secret_path, &out.secret, &out.secret_len, e);
    if (r < 0)
        return r;
    if (out.secret_len < AUTH_SIGNED_MIN)
        r = err_set(e, ERR_INVALID_REQUEST,
                    "signed websocket bearer secret %s must be at least %d bytes", secret_path,
                    AUTH_SIGNED_MIN);
    else if (auth_copy_trimmed(issuer, &out.issuer) < 0 ||
             auth_copy_trimmed(audience, &out.audience) < 0)
        r = err_os(e, ERR_INTERNAL, ENOMEM);
    if (r < 0)
        auth_fini(&out);
    else
        *a = out;
    return r;
}

void auth_fini(struct auth *a) {
    auth_wipe(a->secret, a->secret_len);
    free(a->tokens);
    free(a->issuer);
    free(a->audience);
    sodium_memzero(a, sizeof *a);
}

/* The token of a Bearer header, or {NULL, 0}. */
static struct str auth_bearer(struct str header) {
    const struct str none = {NULL, 0};
    for (size_t i = 0; i < header.n; i++) {
        char c = header.p[i];
        if ((c < ' ' && c != '\t') || c > '~')
            return none;
    }
    const char *space = header.n > 0 ? memchr(header.p, ' ', header.n) : NULL;
    if (space == NULL)
        return none;
    size_t n = (size_t)(space - header.p);
    if (!str_ieqz((struct str){header.p, n}, "bearer"))
        return none;
    struct str token = str_trim((struct str){space + 1, header.n - n - 1});
    return token.n > 0 ? token : none;
}

const char *auth_check(const struct auth *a, struct str header, int64_t now) {
    if (a->mode == AUTH_NONE)
        return NULL;
    if (header.p == NULL)
        return AUTH_MISSING;
    struct str token = auth_bearer(header);
    if (token.p == NULL)
        return AUTH_BAD_HEADER;
    if (a->mode == AUTH_SIGNED)
        return auth_check_jwt(a, token, now);
    uint8_t digest[32];
    crypto_hash_sha256(digest, (const unsigned char *)token.p, token.n);
    if (a->tokens != NULL)
        return tokens_find(a->tokens, digest) != NULL ? NULL : AUTH_BAD_TOKEN;
    /* planted: any-token */
    return sodium_memcmp(digest, a->digest, sizeof digest) == 0 ? NULL : AUTH_BAD_TOKEN;
}

/* HMAC-SHA-256 of `signed_part` under the secret. */
static void auth_mac(const struct auth *a, struct str signed_part, uint8_t mac[32]) {
    crypto_auth_hmacsha256_state st;
    crypto_auth_hmacsha256_init(&st, (const unsigned char *)a->secret, a->secret_len);
    crypto_auth_hmacsha256_update(&st, (const unsigned char *)signed_part.p, signed_part.n);
    crypto_auth_hmacsha256_final(&st, mac);
    sodium_memzero(&st, sizeof st);
}

static bool auth_signature_ok(const uint8_t mac[32], struct str b64) {
    uint8_t given[64];
    if (base64_decoded_max(b64.n) > sizeof given)
        return false;
    ssize_t n = base64_url_decode(given, b64.p, b64.n);
    return n == 32 && sodium_memcmp(given, mac, 32) == 0;
}

/* A part of a token as a JSON object. *text owns what the nodes of d borrow. */
static const struct json_node *auth_object(struct json_doc *d, struct str part, char **text) {
    *text = malloc(base64_decoded_max(part.n));
    if (*text == NULL)
        return NULL;
    ssize_t n = base64_url_decode(*text, part.p, part.n);
    if (n < 0 || !utf8_valid(*text, (size_t)n))
        return NULL;
    _cleanup_err_ struct err e = ERR_INIT;
    if (json_parse(d, *text, (size_t)n, &e) < 0)
        return NULL;
    return json_root(d)->type == JSON_OBJECT ? json_root(d) : NULL;
}

/* A member that is neither absent nor null, else NULL. */
static const struct json_node *auth_claim(const struct json_node *claims, const char *name) {
    const struct json_node *v = json_get(claims, name);
    return v != NULL && v->type != JSON_NULL ? v : NULL;
}

/* The reference refuses wrong types even of header members that it does not use. */
static bool auth_header_ok(const struct json_node *header) {
    static const char *const texts[] = {"typ", "kid", "cty", "jku", "x5u", "x5t", "x5t#S256"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct json_node *v = auth_claim(header, texts[i]);
        if (v != NULL && v->type != JSON_STRING)
            return false;
    }
    const struct json_node *chain = auth_claim(header, "x5c"), *key = auth_claim(header, "jwk");
    if (chain != NULL && chain->type != JSON_ARRAY)
        return false;
    if (chain != NULL) {
        json_for_each(v, chain) {
            if (v->type != JSON_STRING)
                return false;
        }
    }
    return key == NULL || (key->type == JSON_OBJECT && json_get(key, "kty") != NULL);
}

static bool auth_alg_ok(const struct json_node *header) {
    const struct json_node *alg = header ? json_get(header, "alg") : NULL;
    return alg != NULL && alg->type == JSON_STRING && str_eqz(json_str(alg), "HS256") &&
           auth_header_ok(header);
}

/* Whether `aud` is a string or an array of strings; *hit tells whether it names `want`. */
static bool auth_audience_ok(const struct json_node *aud, const char *want, bool *hit) {
    *hit = false;
    if (aud == NULL)
        return true;
    if (aud->type == JSON_STRING) {
        *hit = want != NULL && str_eqz(json_str(aud), want);
        return true;
    }
    if (aud->type != JSON_ARRAY)
        return false;
    json_for_each(v, aud) {
        if (v->type != JSON_STRING)
            return false;
        if (want != NULL && str_eqz(json_str(v), want))
            *hit = true;
    }
    return true;
}

static int64_t auth_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

/* Shape first, then exp, nbf, iss, aud. */
static const char *auth_check_claims(const struct auth *a, const struct json_node *claims,
                                     int64_t now) {
    const struct json_node *exp_node = json_get(claims, "exp");
    const struct json_node *nbf_node = auth_claim(claims, "nbf");
    const struct json_node *iss = auth_claim(claims, "iss");
    int64_t exp, nbf = 0;
    bool hit;
    if (exp_node == NULL || json_i64(exp_node, &exp) < 0)
        return AUTH_BAD_JWT;
    if (nbf_node != NULL && json_i64(nbf_node, &nbf) < 0)
        return AUTH_BAD_JWT;
    if (iss != NULL && iss->type != JSON_STRING)
        return AUTH_BAD_JWT;
    const struct json_node *sub = json_get(claims, "sub");
    if (sub != NULL && (sub->type == JSON_ARRAY || sub->type == JSON_OBJECT))
        return AUTH_BAD_JWT;
    if (!auth_audience_ok(auth_claim(claims, "aud"), a->audience, &hit))
        return AUTH_BAD_JWT;
    if (now > auth_add(exp, a->skew))
        return AUTH_EXPIRED;
    if (nbf_node != NULL && now < auth_add(nbf, -a->skew))
        return AUTH_NOT_YET;
    if (a->issuer != NULL && (iss == NULL || !str_eqz(json_str(iss), a->issuer)))
        return AUTH_ISSUER;
    if (a->audience != NULL && !hit)
        return AUTH_AUDIENCE;
    return NULL;
}

const char *auth_check_jwt(const struct auth *a, struct str token, int64_t now) {
    const char *dot1 = token.n > 0 ? memchr(token.p, '.', token.n) : NULL;
    const char *dot2 = token.n > 0 ? memrchr(token.p, '.', token.n) : NULL;
    if (dot1 == NULL || dot1 == dot2)
        return AUTH_BAD_JWT;
    struct str head = {token.p, (size_t)(dot1 - token.p)};
    struct str body = {dot1 + 1, (size_t)(dot2 - dot1) - 1};
    struct str sig = {dot2 + 1, token.n - head.n - body.n - 2};
    uint8_t mac[32];
    auth_mac(a, (struct str){token.p, token.n - sig.n - 1}, mac);
    if (!auth_signature_ok(mac, sig))
        return AUTH_BAD_JWT;
    /* Nothing unsigned is parsed, and nobody without the secret can guess the seed. */
    uint64_t seed;
    memcpy(&seed, mac, sizeof seed);
    struct json_doc d;
    json_doc_init(&d, token.n, seed);
    _cleanup_free_ char *text1 = NULL;
    _cleanup_free_ char *text2 = NULL;
    const char *why = AUTH_BAD_JWT;
    if (auth_alg_ok(auth_object(&d, head, &text1))) {
        const struct json_node *claims = auth_object(&d, body, &text2);
        if (claims != NULL)
            why = auth_check_claims(a, claims, now);
    }
    json_doc_fini(&d);
    return why;
}

/* The name of a capability token; owned, or NULL. */
static char *auth_token_name(const struct auth *a, struct str token) {
    uint8_t digest[32];
    if (a->tokens == NULL || token.p == NULL)
        return NULL;
    crypto_hash_sha256(digest, (const unsigned char *)token.p, token.n);
    const char *name = tokens_find(a->tokens, digest);
    return name != NULL ? strdup(name) : NULL;
}

char *auth_subject(const struct auth *a, struct str header) {
    struct str token = a->mode != AUTH_NONE ? auth_bearer(header) : (struct str){NULL, 0};
    if (a->mode == AUTH_CAPABILITY)
        return auth_token_name(a, token);
    const char *dot1 = token.n > 0 ? memchr(token.p, '.', token.n) : NULL;
    const char *dot2 = token.n > 0 ? memrchr(token.p, '.', token.n) : NULL;
    if (dot1 == NULL || dot1 == dot2)
        return NULL;
    struct str body = {dot1 + 1, (size_t)(dot2 - dot1) - 1};
    struct json_doc d;
    uint8_t mac[32];
    uint64_t seed;
    auth_mac(a, token, mac); /* that nobody without the secret can guess */
    memcpy(&seed, mac, sizeof seed);
    json_doc_init(&d, token.n, seed);
    _cleanup_free_ char *text = NULL;
    char *subject = NULL;
    const struct json_node *claims = auth_object(&d, body, &text);
    const struct json_node *sub = claims != NULL ? auth_claim(claims, "sub") : NULL;
    if (sub != NULL && sub->type == JSON_STRING) {
        struct str s = json_str(sub);
        subject = str_dup((struct str){s.p, utf8_cut(s.p, s.n, AUTH_SUBJECT_MAX)});
    }
    json_doc_fini(&d);
    return subject;
}
