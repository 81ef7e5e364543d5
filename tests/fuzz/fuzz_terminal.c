/* Bytes of a terminal: typed ones through the escapes, a program's through the modes, foreign text
 * through the escaping of our messages. However they are cut, the outcome is the same. */

#include "cli/cli_escape.h"
#include "cli/cli_modes.h"
#include "cli/cli_path.h"
#include "cli/cli_text.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Types everything in pieces; returns what is sent, with a 0 for each action. */
static size_t type(const char *p, size_t n, size_t piece, char *out) {
    struct cli_escape s = CLI_ESCAPE_INIT('~');
    size_t sent = 0;
    while (n > 0) {
        enum cli_escape_action action;
        size_t part = piece < n ? piece : n, got;
        size_t used = cli_escape_feed(&s, p, part, out + sent, &got, &action);
        REQUIRE(used > 0 && used <= part && got <= used + 1);
        sent += got;
        if (action != CLI_ESCAPE_NONE)
            out[sent++] = '\0';
        p += used;
        n -= used;
    }
    return sent;
}

static void show(const char *p, size_t n) {
    struct buf b = BUF_INIT(16 * n + 16);
    REQUIRE(cli_text_put(&b, (struct str){p, n}) == 0 && utf8_valid(b.p, b.len));
    for (size_t i = 0; i < b.len; i++)
        REQUIRE((unsigned char)b.p[i] >= 0x20 && b.p[i] != 0x7f);
    buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *p = (const char *)data;
    char *whole = malloc(2 * size + 2), *cut = malloc(2 * size + 2);
    struct cli_modes a = {0}, b = {0};
    char text[CLI_MODES_RESTORE_MAX], other[CLI_MODES_RESTORE_MAX];
    REQUIRE(whole != NULL && cut != NULL);
    size_t n = type(p, size, size + 1, whole);
    REQUIRE(type(p, size, 1, cut) == n && (n == 0 || memcmp(whole, cut, n) == 0));
    cli_modes_feed(&a, p, size);
    for (size_t i = 0; i < size; i++)
        cli_modes_feed(&b, p + i, 1);
    n = cli_modes_restore(&a, text);
    REQUIRE(n < sizeof text && cli_modes_restore(&b, other) == n && memcmp(text, other, n) == 0);
    show(p, size);
    if (size > 0)
        memcpy(whole, p, size);
    whole[size] = '\0';
    struct cli_path path = cli_path_parse(whole);
    REQUIRE(!path.remote || path.host.n <= strlen(whole));
    free(whole);
    free(cut);
    return 0;
}
