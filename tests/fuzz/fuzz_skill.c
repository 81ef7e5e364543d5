/*
 * A skill: its SKILL.md and agents/openai.yaml, cut apart by a line "%%". Names and texts of one
 * that is accepted keep the promised limits, and the metadata are JSON. Both go through the YAML
 * reader.
 */
#include "environment/skill.h"

#include "base/utf8.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_front(struct str text) {
    struct arena a = ARENA_INIT(SKILL_ARENA_MAX);
    struct skill_front f;
    if (skill_read_front(&a, text, STR_LIT("skill"), &f) == 0) {
        REQUIRE(f.name.n > 0 && skill_chars(f.name) <= SKILL_NAME_MAX && f.description.n > 0);
        REQUIRE(utf8_valid(f.name.p, f.name.n) && utf8_valid(f.description.p, f.description.n));
        REQUIRE(memchr(f.name.p, '\n', f.name.n) == NULL);
    }
    arena_fini(&a);
}

static void fuzz_metadata(struct str text) {
    struct arena a = ARENA_INIT(SKILL_ARENA_MAX);
    struct buf b = BUF_INIT(4u << 20);
    struct json_doc doc;
    struct err e = ERR_INIT;
    REQUIRE(buf_putc(&b, '{') == 0);
    if (skill_put_metadata(&a, text, &b) == 0 && buf_putc(&b, '}') == 0) {
        json_doc_init(&doc, b.len, 0);
        REQUIRE(json_parse(&doc, b.p, b.len, &e) == 0);
        json_doc_fini(&doc);
    }
    err_fini(&e);
    buf_fini(&b);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = {(const char *)data, size}, second = {NULL, 0};
    if (!utf8_valid(text.p, size)) /* as the server has it */
        return 0;
    const char *cut = size > 0 ? memmem(data, size, "\n%%\n", 4) : NULL;
    if (cut != NULL) {
        second = (struct str){cut + 4, size - (size_t)(cut - text.p) - 4};
        text.n = (size_t)(cut - text.p) + 1;
    }
    fuzz_front(text);
    fuzz_metadata(cut != NULL ? second : text);
    return 0;
}
