/*
 * What of a command line reaches the audit log. The input is a list of arguments, one per line.
 * What is shown must keep to its maximum, and a value that an option names as secret must not be
 * in it.
 */
#include "ops/redact.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOW_MAX 512
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(struct redact *r, struct str arg) {
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    int cut = redact_arg(r, arg, SHOW_MAX, &out);
    REQUIRE(cut == 0 || cut == 1);
    REQUIRE(out.len <= SHOW_MAX + sizeof REDACT_MARK * SHOW_MAX);
}

/* The secret in the place of % in a script must not be shown. */
static void hide_in(const char *form, struct str secret) {
    char script[512];
    const char *gap = strchr(form, '%');
    int n = snprintf(script, sizeof script, "%.*s%.*s%s", (int)(gap - form), form, (int)secret.n,
                     secret.p, gap + 1);
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    struct redact r = {.script = true};
    REQUIRE(redact_arg(&r, (struct str){script, (size_t)n}, 4096, &out) == 0);
    REQUIRE(memmem(out.p, out.len, secret.p, secret.n) == NULL);
}

/* The argument as the value of an option that names a secret, in both spellings. */
static void hide(struct str arg) {
    static const char prefix[] = "--api-token=";
    if (arg.n < 12 || arg.n > 256)
        return;
    for (size_t i = 0; i < arg.n; i++) {
        if (!isalnum((unsigned char)arg.p[i])) /* punctuation may belong to the spelling */
            return;
    }
    char joined[sizeof prefix + 256];
    memcpy(joined, prefix, sizeof prefix - 1);
    memcpy(joined + sizeof prefix - 1, arg.p, arg.n);
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    struct redact r = {0};
    REQUIRE(redact_arg(&r, (struct str){joined, sizeof prefix - 1 + arg.n}, 4096, &out) == 0);
    REQUIRE(memmem(out.p, out.len, arg.p, arg.n) == NULL);
    out.len = 0;
    r = (struct redact){0};
    REQUIRE(redact_arg(&r, STR_LIT("--api-token"), 4096, &out) == 0);
    out.len = 0;
    REQUIRE(redact_arg(&r, arg, 4096, &out) == 0);
    REQUIRE(out.len == 0 || memmem(out.p, out.len, arg.p, arg.n) == NULL);
    static const char *const forms[] = {
        "A_TOKEN=$(echo %) x",     "A_TOKEN=`%`",       "A_TOKEN=\"a\n$(b \"%\")\"",
        "run --password 'a\n%' x", "cat <<EOF\na\n%\n", "login <<<%",
        "-----BEGIN X-----\n%",    "TOKENS=(a % b)",    "mysql -p%",
        "x[\"key\"] = '%'",        "https://u:%@h/",    "-H \"Cookie: a; b=%\""};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        hide_in(forms[i], arg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redact r = {0};
    const char *p = (const char *)data, *end = p + size;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        struct str arg = {p, (size_t)((nl ? nl : end) - p)};
        show(&r, arg);
        hide(arg);
        p = nl ? nl + 1 : end;
    }
    return 0;
}
