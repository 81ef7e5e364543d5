/*
 * Texts in TOML. An accepted one, written out again with inline tables alone, is accepted and has
 * the same values, as has what toml_write() writes; a refused one has a message with its place.
 * Each is read as environments.toml,
 * too, whose promises are checked.
 */
#include "client/environments.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "toml/toml_write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_string(struct buf *b, struct str s) {
    int r = buf_putc(b, '"');
    REQUIRE(utf8_valid(s.p, s.n) && s.p[s.n] == '\0');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == 0x7F || c == '"' || c == '\\')
            r |= buf_putf(b, "\\u%04x", c);
        else
            r |= buf_putc(b, (char)c);
    }
    REQUIRE((r | buf_putc(b, '"')) == 0);
}

static void put_float(struct buf *b, double number) {
    size_t start = b->len;
    if (isnan(number)) {
        REQUIRE(buf_putz(b, signbit(number) ? "-nan" : "nan") == 0);
        return;
    }
    REQUIRE(buf_putf(b, "%.17g", number) == 0 && buf_putc(b, '\0') == 0);
    b->len--;
    if (strpbrk(b->p + start, ".ei") == NULL)
        REQUIRE(buf_putz(b, ".0") == 0);
}

static void put_value(struct buf *b, const struct toml_value *v) {
    int r = 0;
    size_t count = 0;
    switch (v->type) {
    case TOML_STRING: put_string(b, v->text); break;
    case TOML_INTEGER: r = buf_putf(b, "%lld", (long long)v->integer); break;
    case TOML_FLOAT: put_float(b, v->number); break;
    case TOML_BOOLEAN: r = buf_putz(b, v->boolean ? "true" : "false"); break;
    case TOML_ARRAY:
    case TOML_TABLE:
        r = buf_putc(b, v->type == TOML_ARRAY ? '[' : '{');
        toml_for_each(child, v) {
            if (count++ > 0)
                r |= buf_putc(b, ',');
            if (v->type == TOML_TABLE) {
                put_string(b, child->key);
                r |= buf_putc(b, '=');
            }
            put_value(b, child);
        }
        REQUIRE(count == v->count);
        r |= buf_putc(b, v->type == TOML_ARRAY ? ']' : '}');
        break;
    default: r = buf_put(b, v->text.p, v->text.n);
    }
    REQUIRE(r == 0);
}

static void put_document(struct buf *b, const struct toml_value *root) {
    toml_for_each(v, root) {
        put_string(b, v->key);
        REQUIRE(buf_putc(b, '=') == 0);
        put_value(b, v);
        REQUIRE(buf_putc(b, '\n') == 0);
    }
}

static bool same(const struct toml_value *v, const struct toml_value *w) {
    if (v->type != w->type)
        return false;
    if (v->type == TOML_FLOAT)
        return isnan(v->number) ? isnan(w->number) : v->number == w->number;
    if (v->type == TOML_INTEGER)
        return v->integer == w->integer;
    if (v->type == TOML_BOOLEAN)
        return v->boolean == w->boolean;
    if (v->type != TOML_ARRAY && v->type != TOML_TABLE)
        return v->type != TOML_STRING || str_eq(v->text, w->text); /* times lose digits */
    if (v->count != w->count)
        return false;
    const struct toml_value *other = w->children.first;
    toml_for_each(child, v) {
        if (v->type == TOML_TABLE) { /* plain members come first now */
            other = w->children.first;
            while (other != NULL && !str_eq(other->key, child->key))
                other = other->next;
        }
        if (other == NULL || !same(child, other))
            return false;
        other = other->next;
    }
    return true;
}

/* What toml_write() writes has the same values, and is written again as it is. */
static void rewrite(const struct toml_value *root) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf first = BUF_INIT(TOML_TEXT_MAX), second = BUF_INIT(TOML_TEXT_MAX);
    const struct toml_value *again;
    if (toml_write(&first, root) == -ENOBUFS) /* long numbers and headers */
        return;
    REQUIRE(toml_parse(&a, buf_str(&first), &again, &e) == 0 && same(root, again));
    REQUIRE(toml_write(&second, again) == 0 && str_eq(buf_str(&first), buf_str(&second)));
}

static void read_toml(struct str text) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf first = BUF_INIT(1u << 22), second = BUF_INIT(1u << 22);
    const struct toml_value *root;
    int r = toml_parse(&a, text, &root, &e);
    if (r < 0) {
        REQUIRE(r == -EINVAL && root == NULL && strncmp(err_msg(&e), "line ", 5) == 0);
        return;
    }
    REQUIRE(e.code == 0 && root->type == TOML_TABLE);
    rewrite(root);
    put_document(&first, root);
    REQUIRE(toml_parse(&a, buf_str(&first), &root, &e) == 0);
    put_document(&second, root);
    REQUIRE(str_eq(buf_str(&first), buf_str(&second)));
}

static void read_environments(struct str text) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    struct environments list;
    int r = environments_read(text, "x", &a, &list, &e);
    if (r < 0) {
        REQUIRE(r == -EINVAL && e.code != 0);
        return;
    }
    REQUIRE(list.from_file && list.count <= ENVIRONMENTS_MAX);
    for (size_t i = 0; i < list.count; i++) {
        const struct environments_entry *entry = &list.entries[i];
        REQUIRE((entry->url == NULL) != (entry->program == NULL));
        REQUIRE(entry->url != NULL || entry->token == NULL);
        REQUIRE(entry->args[entry->arg_count] == NULL);
        REQUIRE(environments_find(&list, entry->id) == entry);
    }
    REQUIRE(list.default_id == NULL || strcmp(list.default_id, "local") == 0 ||
            environments_find(&list, list.default_id) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = {(const char *)data, size};
    if (size > 16384)
        return 0;
    read_toml(text);
    read_environments(text);
    return 0;
}
