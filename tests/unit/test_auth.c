#include "net/auth.h"

#include "base/buf.h"
#include "base/crypto.h"
#include "json/base64.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define MISSING "missing websocket bearer token"
#define HEADER "invalid authorization header"
#define TOKEN "invalid websocket bearer token"
#define INVALID "invalid websocket jwt"
#define EXPIRED "expired websocket jwt"
#define NOT_YET "websocket jwt is not valid yet"
#define ISSUER "websocket jwt issuer mismatch"
#define AUDIENCE "websocket jwt audience mismatch"

#define SECRET "0123456789abcdef0123456789abcdef"

/* The moments at which the rows below were recorded. */
#define JWT_NOW 1794725009
#define JWT_NOW2 1794725026

/* {"alg": "HS256", "typ": "JWT"} */
#define HEAD "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9"

struct row {
    const char *header; /* NULL = absent */
    const char *want;   /* NULL = let in */
};

static const struct row capability[] = {
    {NULL, MISSING},
    {"Bearer sekret-token", NULL},
    {"Bearer nope", TOKEN},
    {"bearer sekret-token", NULL},
    {"BEARER sekret-token", NULL},
    {"Bearer   sekret-token  ", NULL},
    {"Bearer \tsekret-token", NULL},
    {"Bearer\tsekret-token", HEADER},
    {"sekret-token", HEADER},
    {"Basic sekret-token", HEADER},
    {"Bearer ", HEADER},
    {"Bearer", HEADER},
    {"Bearer  \t ", HEADER},
    {" Bearer sekret-token", HEADER},
    {"", HEADER},
    {"Bearer \xE9", HEADER},
    {"Bearer sekret-token\x7F", HEADER},
    {"Bearer sekret-token\001", HEADER},
    {"Bearer sekret-tokenx", TOKEN},
    {"Bearer sekret-toke", TOKEN},
    {"Bearer sekret token", TOKEN},
};

static const struct row jwt[] = {
    /* none */
    {NULL, MISSING},
    /* ok exp+60 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".s-Va5jUQ0mig4XOfQimdeVSE0jgYGv4kEjNV6_SoDA4",
     NULL},
    /* no exp */
    {"Bearer " HEAD ".eyJpc3MiOiAieCJ9"
     ".ZMjZmF_VdiN4bAhNly44xsHT7N01FDm8RtH5S7eFMOw",
     INVALID},
    /* exp -29 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI0OTgxfQ"
     ".JVtCbuGVz7-YX73GF9xCa-lODtpQHXlOkPW1t2AP968",
     NULL},
    /* exp -40 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI0OTY4fQ"
     ".Wf3ucH2v9vgv9uGcbsD3z3KG7ZC57KHaVSpcoFyqUDo",
     EXPIRED},
    /* exp float */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LjV9"
     "._hmP87IuMNCLtOwK9JzWHy1AxFyIf6-wa-FWv3MM1xY",
     INVALID},
    /* exp string */
    {"Bearer " HEAD ".eyJleHAiOiAiMTc5NDcyNTA2OCJ9"
     ".wOl_yAaRFMn-gK8y1ZN3faNgZ_MZ5wMCd_jwnphg_p8",
     INVALID},
    /* exp huge */
    {"Bearer " HEAD ".eyJleHAiOiA5MjIzMzcyMDM2ODU0Nzc1ODA3fQ"
     ".3IyfLyF5ttPS0btSLw7w4XK2s_dLt6THgef-t7-bvwM",
     NULL},
    /* exp too huge */
    {"Bearer " HEAD ".eyJleHAiOiA5MjIzMzcyMDM2ODU0Nzc1ODA4fQ"
     ".yXNecPxWC0rFqzMz7hpuL0ZBRoDyLRRQqEj6W4LOOho",
     INVALID},
    /* exp negative */
    {"Bearer " HEAD ".eyJleHAiOiAtMX0"
     ".lKjlgPd5SUH5uu2XmTzMJM4w0hXcmkvB31mmT_Lf4qo",
     EXPIRED},
    /* nbf future +20 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAibmJmIjogMTc5NDcyNTAyOH0"
     ".f0eUuBAfpvFmxPIhTdA1EZLUyM4gao42-goRXX9F_Nc",
     NULL},
    /* nbf future +60 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAibmJmIjogMTc5NDcyNTA2OH0"
     ".R5EFxoAxbRerl0JLGxtHzunzYlaEQWFFg73SQ3ZFcLQ",
     NOT_YET},
    /* nbf null */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAibmJmIjogbnVsbH0"
     ".xcz4snpEA-ItV-ZnpqHHd98kIMItnVh02xZGlj2ioz4",
     NULL},
    /* nbf string */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAibmJmIjogIngifQ"
     ".vZcXLeWENWznRKxWYBj2dgXZLFAOEvqb4pY8z5WvblA",
     INVALID},
    /* iat future */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAiaWF0IjogMTc5NDczNTAwN30"
     ".5mqHzMqGwFYMwScfr2TRG9EOCdqCvkbiiCJuoVLDVtw",
     NULL},
    /* aud array ok no expected */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAiYXVkIjogWyJhIiwgImIiXX0"
     ".RqFdQ4ckXgB2fzQ6mVw-lwox94rdXDeNVzmKcWRJdaY",
     NULL},
    /* aud number */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAiYXVkIjogNX0"
     ".vp23LVcmz0KwWaKssIgkjaEyXE_zNkiY-ZMclI06wBw",
     INVALID},
    /* iss number */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1NjA4LCAiaXNzIjogNX0"
     ".MUbZuRf1jj2OfMrMsrebGiR8gwc5dWv1Xe38Xr5KuBo",
     INVALID},
    /* HS384 */
    {"Bearer eyJhbGciOiAiSFMzODQiLCAidHlwIjogIkpXVCJ9"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".xJp541jNfqLiOJOAlBDwbaQt0BTjKfkkmbnpHjVwzghxHBen71j4o_IRgD5Q9pRc",
     INVALID},
    /* HS512 */
    {"Bearer eyJhbGciOiAiSFM1MTIifQ"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".krDCFRdSG9gZPJyL4t20KEh8yqugnjWGTv0593NMaKj9hGXK_7d0pJBz1tucth0W9YyCKSvCKSX0AoXcOCzw3A",
     INVALID},
    /* none alg */
    {"Bearer eyJhbGciOiAibm9uZSJ9"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".",
     INVALID},
    /* HS256 no typ */
    {"Bearer eyJhbGciOiAiSFMyNTYifQ"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".l-NZUxWmYLRAg5j5zwGTg4FjfOOp_IdW6troy1hd35g",
     NULL},
    /* HS256 typ odd */
    {"Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogImZvbyJ9"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".ojp1u3KsSFH-vmej4IS637Ib3WXrtb1zJTsnxwW5C98",
     NULL},
    /* HS256 kid */
    {"Bearer eyJhbGciOiAiSFMyNTYiLCAia2lkIjogImZvbyJ9"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".rFtzjTL0cA5zhTlMk6aki9ikgWaZ1HHbOIgzg7q7P84",
     NULL},
    /* HS256 crit */
    {"Bearer eyJhbGciOiAiSFMyNTYiLCAiY3JpdCI6IFsieCJdLCAieCI6IDF9"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".TVhHaPZp9bVxx2xfkIkNO06o0nigBOx9qU8scvKPxUw",
     NULL},
    /* hs256 lower */
    {"Bearer eyJhbGciOiAiaHMyNTYifQ"
     ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".",
     INVALID},
    /* bad secret */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".7tusRi8sCf4urOGNB91DYh3MnZzi4ueKfWjwMlejOHM",
     INVALID},
    /* secret w newline */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".mYH4zJC_cUriaOYBls7w2MYmk3RKdt9j7r1IKq0L3Mo",
     INVALID},
    /* garbage */
    {"Bearer abc", INVALID},
    /* two parts */
    {"Bearer abc.def", INVALID},
    /* tampered */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".s-Va5jUQ0mig4XOfQimdeVSE0jgYGv4kEjNV6_SoDAA",
     INVALID},
    /* padded */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4fQ"
     ".s-Va5jUQ0mig4XOfQimdeVSE0jgYGv4kEjNV6_SoDA4=",
     INVALID},
    /* payload not obj */
    {"Bearer " HEAD ".WzFd"
     ".vVBj-_aofER9lky4aCeMeMl0B5BLc4-aj0lg_rEGRTU",
     INVALID},
    /* raw secret as token */
    {"Bearer 0123456789abcdef0123456789abcdef", INVALID},
    /* dup exp */
    {"Bearer " HEAD ".eyJleHAiOjE3OTQ3MjUwNjgsImV4cCI6MTc5NDcyNTA2OH0"
     ".WYDRn6iN7sVOrDNEEkTbNfj4oMfhlRrTq_Y36jAru3g",
     INVALID},
    /* extra claims */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAic3ViIjogIngiLCAiZm9vIjogeyJhIjogMX19"
     ".ce2ZwxhMOOmjuVEOmkRSm_XBVlxjARjZQ-iXsVsm2GI",
     NULL},
};

static const struct row jwt_iss_aud[] = {
    /* ok */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIm1lIiwgImF1ZCI6ICJ5b3UifQ"
     ".pmdQmc06ayiRCLA3L2qvQlJQzkJByGldni9oL3J4lI4",
     NULL},
    /* aud array */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIm1lIiwgImF1ZCI6IFsiYSIsICJ5b3UiXX0"
     ".epZ__BAHgBmB_tNzwaOVGxvpXpX1iGUVJ3jvUlzB36Y",
     NULL},
    /* aud missing */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIm1lIn0"
     ".dpfwkdUHhC8kJM_hIDqzDV38nEZki-RMm5yvFQhF3yU",
     AUDIENCE},
    /* aud wrong */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIm1lIiwgImF1ZCI6ICJoZSJ9"
     ".BXx0dhQoTY3mlUzyVI3Vv8bN9koA8DcJKlbrBmP576M",
     AUDIENCE},
    /* aud empty array */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIm1lIiwgImF1ZCI6IFtdfQ"
     ".mWs8M63RxfK6UtnPIwJNVHGpT0yPhBxX2zXy2OkVLto",
     AUDIENCE},
    /* iss missing */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiYXVkIjogInlvdSJ9"
     "._OlYs11Mhxb14p-uG9IsGf4-a7wEJ0kXRvL9mEjgi18",
     ISSUER},
    /* iss wrong */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIk1lIiwgImF1ZCI6ICJ5b3UifQ"
     ".zLrCZQG0nfzdD4CHKKwMWs1GrlzLDMW6-rZyDE649b0",
     ISSUER},
    /* both wrong */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDY4LCAiaXNzIjogIngiLCAiYXVkIjogInkifQ"
     ".9SCiXI-Yi17GHBFM0GvRpFwZXiuw9FSeQe_FYBdYdkQ",
     ISSUER},
    /* expired+iss wrong */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI0OTQ4LCAiaXNzIjogIngiLCAiYXVkIjogInkifQ"
     ".UOQT2rn3Hu77RVWOjHrFL5tHXZTxAIqaDtJUJ1EJ8MU",
     EXPIRED},
    /* exp==now */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDI2LCAiaXNzIjogIm1lIiwgImF1ZCI6ICJ5b3UifQ"
     ".3MxtlL83S8TmonUfdLRd7TNgRpyOdZOMioKFQlhcz0c",
     NULL},
    /* exp==now-2 */
    {"Bearer " HEAD ".eyJleHAiOiAxNzk0NzI1MDI0LCAiaXNzIjogIm1lIiwgImF1ZCI6ICJ5b3UifQ"
     ".AFhFNO3wSAcuVCrjicpGDUQ1EIC_gBdEXM69CDhsxC0",
     EXPIRED},
    /* nbf now+2 */
    {"Bearer " HEAD
     ".eyJleHAiOiAxNzk0NzI1MDY4LCAibmJmIjogMTc5NDcyNTAzMCwgImlzcyI6ICJtZSIsICJhdWQiOiAieW91In0"
     ".3qEQEni5obgsGKDIKn6c6oPeNXgKVBSD-rkymYZ9pgQ",
     NOT_YET},
};

static char path[PATH_MAX];

/* Writes a file and leaves its name in `path`. */
static void write_file(const void *p, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test_auth.XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    crypto_init();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void assert_text(const char *got, const char *want) {
    if (want == NULL)
        assert_null(got);
    else
        assert_string_equal(got ? got : "(let in)", want);
}

static void check_rows(const struct auth *a, const struct row *rows, size_t n, int64_t now) {
    for (size_t i = 0; i < n; i++)
        assert_text(auth_check(a, str_of(rows[i].header), now), rows[i].want);
}

static void no_mode(void **state) {
    (void)state;
    struct auth a = {.mode = AUTH_NONE};
    assert_null(auth_check(&a, (struct str){NULL, 0}, 0));
    assert_null(auth_check(&a, STR_LIT("anything\xFF"), 0));
    auth_fini(&a);
}

static void capability_tokens(void **state) {
    (void)state;
    struct auth a = {.mode = AUTH_NONE};
    _cleanup_err_ struct err e = ERR_INIT;
    write_file("  sekret-token\r\n\n", 17);
    assert_int_equal(auth_capability_file(&a, path, &e), 0);
    assert_int_equal(e.code, 0);
    check_rows(&a, capability, ARRAY_LEN(capability), 0);
    auth_fini(&a);
    assert_int_equal(a.mode, AUTH_NONE);
}

static void capability_digests(void **state) {
    (void)state;
    /* SHA-256 of "sekret-token" */
    static const char hex[] = "a794eda5753996e42eaa5cc22216836ddc86dd25caac433fe486aa2e7a2093db";
    static const char *const bad[] = {
        "",
        "abc",
        "a794eda5753996e42eaa5cc22216836ddc86dd25caac433fe486aa2e7a2093d",
        "a794eda5753996e42eaa5cc22216836ddc86dd25caac433fe486aa2e7a2093db0",
        "ga794eda5753996e42eaa5cc22216836ddc86dd25caac433fe486aa2e7a2093d",
        "a794eda5753996e42eaa5cc22216836ddc86dd25caac433fe486aa2e7a2093dg",
        "a794eda5753996e42eaa5cc22216836d a794eda5753996e42eaa5cc22216836",
    };
    struct auth a = {.mode = AUTH_NONE};
    char text[80];
    snprintf(text, sizeof text, " \t%s\n", hex);
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(auth_capability_digest(&a, text, &e), 0);
    check_rows(&a, capability, ARRAY_LEN(capability), 0);
    for (char *p = text; *p; p++)
        *p = (char)(*p >= 'a' && *p <= 'f' ? *p - 32 : *p);
    assert_int_equal(auth_capability_digest(&a, text, &e), 0);
    check_rows(&a, capability, ARRAY_LEN(capability), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(auth_capability_digest(&a, bad[i], &e), -EINVAL);
        assert_string_equal(err_msg(&e),
                            "--ws-token-sha256 must be a 64-character hex SHA-256 digest");
    }
    check_rows(&a, capability, ARRAY_LEN(capability), 0);
    auth_fini(&a);
}

static void make_signed(struct auth *a, const char *issuer, const char *audience, int64_t skew) {
    _cleanup_err_ struct err e = ERR_INIT;
    write_file(SECRET "\n", sizeof SECRET);
    assert_int_equal(auth_signed(a, path, issuer, audience, skew, &e), 0);
}

static void recorded_jwt(void **state) {
    (void)state;
    struct auth a;
    make_signed(&a, NULL, NULL, 30);
    check_rows(&a, jwt, ARRAY_LEN(jwt), JWT_NOW);
    auth_fini(&a);
    make_signed(&a, " \t", "", 30);
    assert_null(a.issuer);
    assert_null(a.audience);
    check_rows(&a, jwt, ARRAY_LEN(jwt), JWT_NOW);
    auth_fini(&a);
    make_signed(&a, " me ", "\tyou\n", 0);
    check_rows(&a, jwt_iss_aud, ARRAY_LEN(jwt_iss_aud), JWT_NOW2);
    auth_fini(&a);
    assert_null(a.secret);
}

static void put_base64url(struct buf *b, const void *p, size_t n) {
    char text[4096];
    size_t len = base64_encode(text, p, n);
    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    assert_int_equal(buf_put(b, text, len), 0);
}

/* Appends the signature of what b holds. */
static void sign(struct buf *b) {
    uint8_t mac[32];
    crypto_auth_hmacsha256_state st;
    crypto_auth_hmacsha256_init(&st, (const unsigned char *)SECRET, sizeof SECRET - 1);
    crypto_auth_hmacsha256_update(&st, (const unsigned char *)b->p, b->len);
    crypto_auth_hmacsha256_final(&st, mac);
    assert_int_equal(buf_putc(b, '.'), 0);
    put_base64url(b, mac, sizeof mac);
}

static void check_token(const struct auth *a, const char *head, const char *claims, int64_t now,
                        const char *want) {
    _cleanup_buf_ struct buf b = BUF_INIT(16384);
    put_base64url(&b, head, strlen(head));
    assert_int_equal(buf_putc(&b, '.'), 0);
    put_base64url(&b, claims, strlen(claims));
    sign(&b);
    assert_text(auth_check_jwt(a, buf_str(&b), now), want);
}

#define HS256 "{\"alg\":\"HS256\"}"

static void claim_shapes(void **state) {
    (void)state;
    static const struct {
        const char *head, *claims;
        const char *want;
    } cases[] = {
        {HS256, "{\"exp\":1000}", NULL},
        {" {\"alg\" : \"HS\\u003256\" }\n", "\n{\"exp\":1000}", NULL},
        {"{}", "{\"exp\":1000}", INVALID},
        {"[]", "{\"exp\":1000}", INVALID},
        {"", "{\"exp\":1000}", INVALID},
        {"{\"alg\":256}", "{\"exp\":1000}", INVALID},
        {"{\"alg\":null}", "{\"exp\":1000}", INVALID},
        {"{\"alg\":\"HS256\",\"alg\":\"HS256\"}", "{\"exp\":1000}", INVALID},
        {"{\"alg\":\"hs256\"}", "{\"exp\":1000}", INVALID},
        {"{\"alg\":\"none\"}", "{\"exp\":1000}", INVALID},
        {HS256, "", INVALID},
        {HS256, "{", INVALID},
        {HS256, "{\"exp\":1000} x", INVALID},
        {HS256, "\"exp\"", INVALID},
        {HS256, "{\"exp\":null}", INVALID},
        {HS256, "{\"exp\":1e9}", INVALID},
        {HS256, "{\"exp\":1000.0}", INVALID},
        {HS256, "{\"exp\":true}", INVALID},
        {HS256, "{\"exp\":[1000]}", INVALID},
        {HS256, "{\"exp\":\"\xFF\"}", INVALID},
        {HS256, "{\"exp\":1000,\"nbf\":1.5}", INVALID},
        {HS256, "{\"exp\":1000,\"nbf\":-1}", NULL},
        {HS256, "{\"exp\":1000,\"nbf\":-9223372036854775808}", NULL},
        {HS256, "{\"exp\":1000,\"nbf\":9223372036854775807}", NOT_YET},
        {HS256, "{\"exp\":-9223372036854775808}", EXPIRED},
        {HS256, "{\"exp\":-9223372036854775809}", INVALID},
        {HS256, "{\"exp\":1000,\"iss\":null,\"aud\":null}", NULL},
        {HS256, "{\"exp\":1000,\"iss\":[]}", INVALID},
        {HS256, "{\"exp\":1000,\"aud\":{}}", INVALID},
        {HS256, "{\"exp\":1000,\"aud\":[\"a\",1]}", INVALID},
        {HS256, "{\"exp\":1000,\"aud\":[\"a\",null]}", INVALID},
        {HS256, "{\"exp\":1000,\"aud\":[]}", NULL},
        {HS256, "{\"exp\":0,\"aud\":5}", INVALID},
    };
    struct auth a;
    make_signed(&a, NULL, NULL, 5);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_token(&a, cases[i].head, cases[i].claims, 1000, cases[i].want);
    auth_fini(&a);
}

/* The borders of exp and nbf with a skew, and at the ends of the number range. */
static void borders(void **state) {
    (void)state;
    struct auth a;
    make_signed(&a, NULL, NULL, 5);
    check_token(&a, HS256, "{\"exp\":1000}", 1005, NULL);
    check_token(&a, HS256, "{\"exp\":1000}", 1006, EXPIRED);
    check_token(&a, HS256, "{\"exp\":9999,\"nbf\":1000}", 995, NULL);
    check_token(&a, HS256, "{\"exp\":9999,\"nbf\":1000}", 994, NOT_YET);
    check_token(&a, HS256, "{\"exp\":1,\"nbf\":1000}", 994, EXPIRED);
    auth_fini(&a);
    make_signed(&a, NULL, NULL, INT64_MAX);
    check_token(&a, HS256, "{\"exp\":9223372036854775807}", INT64_MAX, NULL);
    check_token(&a, HS256, "{\"exp\":0,\"nbf\":-2}", 0, NULL);
    auth_fini(&a);
}

static void audiences(void **state) {
    (void)state;
    struct auth a;
    make_signed(&a, "me", "you", 0);
    static const struct {
        const char *claims, *want;
    } cases[] = {
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":\"you\"}", NULL},
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":[\"x\",\"you\",\"z\"]}", NULL},
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":[\"you\",7]}", INVALID},
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":\"you\\u0000\"}", AUDIENCE},
        {"{\"exp\":9,\"iss\":\"me\\u0000\",\"aud\":\"you\"}", ISSUER},
        {"{\"exp\":9,\"iss\":\"\",\"aud\":\"you\"}", ISSUER},
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":\"\"}", AUDIENCE},
        {"{\"exp\":9,\"iss\":\"me\",\"aud\":null}", AUDIENCE},
        {"{\"exp\":9,\"iss\":\"ME\",\"aud\":\"x\"}", ISSUER},
        {"{\"exp\":9,\"nbf\":10,\"iss\":\"x\",\"aud\":\"x\"}", NOT_YET},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_token(&a, HS256, cases[i].claims, 9, cases[i].want);
    auth_fini(&a);
}

/* Signed well, but not of three parts, or with a signature of another length. */
static void token_shapes(void **state) {
    (void)state;
    static const char *const signed_parts[] = {
        "",
        ".",
        "..",
        "e30",
        "a.b.c",
        HEAD ".eyJleHAiOjk5fQ.x",
        HEAD "=.eyJleHAiOjk5fQ",
        HEAD ".eyJleHAiOjk5fQ=",
        HEAD ". eyJleHAiOjk5fQ",
        HEAD ".eyJleHAiOjk5fQ\n",
    };
    static const char *const tokens[] = {
        "",
        ".",
        "..",
        "...",
        "a",
        "a.b",
        "a.b.c",
        HEAD ".eyJleHAiOjk5fQ.",
        HEAD ".eyJleHAiOjk5fQ.AAAA",
        "0123456789abcdef0123456789abcdef",
    };
    struct auth a;
    make_signed(&a, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(signed_parts); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(buf_putz(&b, signed_parts[i]), 0);
        sign(&b);
        assert_text(auth_check_jwt(&a, buf_str(&b), 1), INVALID);
    }
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        assert_text(auth_check_jwt(&a, str_of(tokens[i]), 1), INVALID);
    _cleanup_buf_ struct buf good = BUF_INIT(4096);
    assert_int_equal(buf_putz(&good, HEAD ".eyJleHAiOjk5fQ"), 0);
    sign(&good);
    assert_null(auth_check_jwt(&a, buf_str(&good), 1));
    for (size_t n = 0; n < good.len; n++)
        assert_text(auth_check_jwt(&a, (struct str){good.p, n}, 1), INVALID);
    assert_int_equal(buf_putc(&good, 'A'), 0);
    assert_text(auth_check_jwt(&a, buf_str(&good), 1), INVALID);
    auth_fini(&a);
}

static void subjects(void **state) {
    (void)state;
    static char long_one[400];
    memset(long_one, 's', sizeof long_one - 1);
    char claims[500];
    snprintf(claims, sizeof claims, "{\"exp\":99,\"sub\":\"%s\"}", long_one);
    long_one[AUTH_SUBJECT_MAX] = '\0';
    const struct {
        const char *claims, *want;
    } cases[] = {{"{\"exp\":99,\"sub\":\"alice\"}", "alice"},
                 {"{\"exp\":99,\"sub\":\"a\\n\\u20ac\"}", "a\n\xE2\x82\xAC"},
                 {"{\"exp\":99}", NULL},
                 {"{\"exp\":99,\"sub\":null}", NULL},
                 {"{\"exp\":99,\"sub\":\"\"}", ""},
                 {claims, long_one}};
    struct auth a, none = {.mode = AUTH_NONE};
    make_signed(&a, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(buf_putz(&b, "Bearer "), 0);
        _cleanup_buf_ struct buf token = BUF_INIT(4096);
        put_base64url(&token, HS256, strlen(HS256));
        assert_int_equal(buf_putc(&token, '.'), 0);
        put_base64url(&token, cases[i].claims, strlen(cases[i].claims));
        sign(&token);
        assert_int_equal(buf_put(&b, token.p, token.len), 0);
        assert_null(auth_check(&a, buf_str(&b), 1));
        _cleanup_free_ char *got = auth_subject(&a, buf_str(&b));
        if (cases[i].want == NULL)
            assert_null(got);
        else
            assert_string_equal(got, cases[i].want);
        assert_null(auth_subject(&none, buf_str(&b)));
    }
    assert_null(auth_subject(&a, STR_LIT("Bearer a.b")));
    assert_null(auth_subject(&a, (struct str){NULL, 0}));
    auth_fini(&a);
}

/* Expects a failure of auth_read_secret() with "<before><path><after>". */
static void reject_secret(int rc, const char *before, const char *after) {
    _cleanup_err_ struct err e = ERR_INIT;
    char want[PATH_MAX + 200], *out = NULL;
    size_t n;
    assert_int_equal(auth_read_secret(path, &out, &n, &e), rc);
    assert_null(out);
    snprintf(want, sizeof want, "%s%s%s", before, path, after);
    assert_string_equal(err_msg(&e), want);
}

static void secret_files(void **state) {
    (void)state;
    static char big[AUTH_SECRET_MAX + 1];
    memset(big, 's', sizeof big);
    _cleanup_err_ struct err e = ERR_INIT;
    char *out = NULL;
    size_t n = 0;
    write_file(big, AUTH_SECRET_MAX);
    assert_int_equal(auth_read_secret(path, &out, &n, &e), 0);
    assert_int_equal(n, AUTH_SECRET_MAX);
    assert_int_equal(strlen(out), n);
    free(out);
    write_file(big, sizeof big);
    reject_secret(-EINVAL, "websocket auth secret ", " is larger than 65536 bytes");
    write_file("", 0);
    reject_secret(-EINVAL, "websocket auth secret ", " must not be empty");
    write_file(" \t\r\n", 4);
    reject_secret(-EINVAL, "websocket auth secret ", " must not be empty");
    write_file("\xC3(", 2);
    reject_secret(-EINVAL, "failed to read websocket auth secret ",
                  ": stream did not contain valid UTF-8");
}

static void unreadable_secrets(void **state) {
    (void)state;
    char saved[sizeof path];
    memcpy(saved, path, sizeof path);
    snprintf(path, sizeof path, "/nonexistent/secret");
    reject_secret(-ENOENT, "failed to read websocket auth secret ",
                  ": No such file or directory (os error 2)");
    snprintf(path, sizeof path, "/");
    reject_secret(-EISDIR, "failed to read websocket auth secret ",
                  ": Is a directory (os error 21)");
    memcpy(path, saved, sizeof path);
}

/* A refused file leaves the authentication in force as it is. */
static void failed_reload(void **state) {
    (void)state;
    struct auth a;
    char want[PATH_MAX + 100];
    make_signed(&a, NULL, NULL, 30);
    _cleanup_err_ struct err e = ERR_INIT;
    write_file(" 0123456789abcdef0123456789abcde \n", 34);
    assert_int_equal(auth_signed(&a, path, "i", "a", 1, &e), -EINVAL);
    snprintf(want, sizeof want, "signed websocket bearer secret %s must be at least 32 bytes",
             path);
    assert_string_equal(err_msg(&e), want);
    write_file("", 0);
    assert_int_equal(auth_capability_file(&a, path, &e), -EINVAL);
    check_rows(&a, jwt, ARRAY_LEN(jwt), JWT_NOW);
    auth_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_mode),
        cmocka_unit_test(capability_tokens),
        cmocka_unit_test(capability_digests),
        cmocka_unit_test(recorded_jwt),
        cmocka_unit_test(claim_shapes),
        cmocka_unit_test(subjects),
        cmocka_unit_test(borders),
        cmocka_unit_test(audiences),
        cmocka_unit_test(token_shapes),
        cmocka_unit_test(secret_files),
        cmocka_unit_test(unreadable_secrets),
        cmocka_unit_test(failed_reload),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
