/*
 * The manifest of a plugin. The MCP servers in it come out as strict JSON, not much longer, and are
 * stable in a round trip.
 */
#include "environment/manifest.h"

#include "base/utf8.h"
#include "environment/discover.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define MEMBER "{\"mcpServers\":"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct str s) {
    REQUIRE(s.p == NULL || utf8_valid(s.p, s.n));
}

/* Reads the MCP servers that were written. */
static void check_again(struct str mcp) {
    _cleanup_arena_ struct arena a = ARENA_INIT(8u << 20);
    _cleanup_buf_ struct buf b = BUF_INIT(8u << 20);
    struct manifest m;
    REQUIRE(buf_putz(&b, MEMBER) == 0 && buf_put(&b, mcp.p, mcp.n) == 0 && buf_putc(&b, '}') == 0);
    REQUIRE(manifest_read(&a, buf_str(&b), true, &m));
    REQUIRE(str_eq(m.mcp, mcp));
}

static void check_strict(struct str mcp) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    json_doc_init(&doc, mcp.n, 1);
    REQUIRE(json_parse(&doc, mcp.p, mcp.n, &e) == 0);
    REQUIRE(json_root(&doc)->type == JSON_OBJECT);
    json_doc_fini(&doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = {(const char *)data, size};
    if (size > DISCOVER_FILE_MAX || !utf8_valid(text.p, size)) /* as the server has it */
        return 0;
    for (int whole = 0; whole < 2; whole++) {
        struct arena a = ARENA_INIT(8u << 20);
        struct manifest m;
        bool ok = manifest_read(&a, text, whole != 0, &m);
        if (ok) {
            check_text(m.name);
            check_text(m.display);
        }
        if (ok && m.mcp.p != NULL) {
            REQUIRE(whole != 0 && m.mcp.n <= 2 * size);
            check_strict(m.mcp);
            check_again(m.mcp);
        }
        arena_fini(&a);
    }
    return 0;
}
