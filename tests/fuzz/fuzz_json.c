/*
 * JSON reader, writer and parameter decoder. What is accepted must be a consistent tree that
 * survives being written and read again, and what jansson says, with these exceptions: only we have
 * the limits on depth and values; jansson refuses numbers that do not fit its types, and NUL in
 * keys; and it takes a NUL byte outside strings for the end.
 */
#include "base/buf.h"
#include "base/utf8.h"
#include "json/json.h"
#include "json/jsondec.h"
#include "json/jsonw.h"

#include <errno.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 24)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the value at v; checks that the counts fit the walk. */
static void write_value(struct buf *b, const struct json_node *v) {
    unsigned count = 0;
    switch (v->type) {
    case JSON_NULL: REQUIRE(buf_putz(b, "null") == 0); break;
    case JSON_FALSE: REQUIRE(buf_putz(b, "false") == 0); break;
    case JSON_TRUE: REQUIRE(buf_putz(b, "true") == 0); break;
    case JSON_NUMBER: REQUIRE(buf_put(b, v->p, v->n) == 0); break;
    case JSON_STRING:
        REQUIRE(utf8_valid(v->p, v->n));
        REQUIRE(jsonw_str(b, json_str(v)) == 0);
        break;
    case JSON_ARRAY:
        REQUIRE(buf_putc(b, '[') == 0);
        json_for_each(child, v) {
            REQUIRE(count++ == 0 || buf_putc(b, ',') == 0);
            write_value(b, child);
        }
        REQUIRE(count == v->count && buf_putc(b, ']') == 0);
        break;
    case JSON_OBJECT:
        REQUIRE(buf_putc(b, '{') == 0);
        json_for_each_member(key, v) {
            REQUIRE(key->type == JSON_STRING && key->skip == 1);
            REQUIRE(count++ == 0 || buf_putc(b, ',') == 0);
            write_value(b, key);
            REQUIRE(buf_putc(b, ':') == 0);
            write_value(b, key + 1);
        }
        REQUIRE(count == v->count && buf_putc(b, '}') == 0);
        break;
    }
}

static void check_round_trip(const struct json_doc *d) {
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    write_value(&b, json_root(d));
    struct json_doc again;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&again, b.len, ~d->seed);
    REQUIRE(json_parse(&again, b.p, b.len, &e) == 0);
    REQUIRE(again.len == d->len);
    for (size_t i = 0; i < d->len; i++) {
        const struct json_node *x = &d->nodes[i], *y = &again.nodes[i];
        REQUIRE(x->type == y->type && x->skip == y->skip && x->count == y->count);
        REQUIRE(str_eq(json_str(x), json_str(y)));
    }
    json_doc_fini(&again);
}

static void check_numbers(const struct json_doc *d) {
    for (size_t i = 0; i < d->len; i++) {
        const struct json_node *v = &d->nodes[i];
        uint64_t u = 0;
        int64_t s = 0;
        int ru = json_u64(v, &u), ri = json_i64(v, &s);
        REQUIRE(v->type == JSON_NUMBER || (ru == -EINVAL && ri == -EINVAL));
        if (v->type != JSON_NUMBER)
            continue;
        char *text = strndup(v->p, v->n), *end;
        REQUIRE(text != NULL);
        errno = 0;
        long long want = strtoll(text, &end, 10);
        REQUIRE((ri == -EINVAL) == (*end != '\0'));
        REQUIRE(ri == -EINVAL || (ri == -ERANGE) == (errno == ERANGE));
        REQUIRE(ri < 0 || s == want);
        errno = 0;
        unsigned long long uwant = strtoull(text, &end, 10);
        REQUIRE(ru < 0 || (errno == 0 && u == uwant));
        REQUIRE((ru == 0) == (ri != -EINVAL && errno == 0 && (text[0] != '-' || uwant == 0)));
        free(text);
    }
}

struct target {
    struct str str;
    bool flag;
    uint64_t u64;
    uint16_t u16;
    const struct json_node *strs, *strmap;
};

static void check_decoder(const struct json_node *root) {
    static const struct jsondec_field fields[] = {
        {"a", JSONDEC_STR, JSONDEC_REQUIRED, offsetof(struct target, str), JSONDEC_NO_PRESENT, NULL,
         NULL, NULL},
        {"b", JSONDEC_BOOL, 0, offsetof(struct target, flag), JSONDEC_NO_PRESENT, NULL, NULL, NULL},
        {"c", JSONDEC_U64, JSONDEC_NULLABLE, offsetof(struct target, u64), JSONDEC_NO_PRESENT, NULL,
         NULL, NULL},
        {"d", JSONDEC_U16, 0, offsetof(struct target, u16), JSONDEC_NO_PRESENT, NULL, NULL, NULL},
        {"e", JSONDEC_STRS, 0, offsetof(struct target, strs), JSONDEC_NO_PRESENT, NULL, NULL, NULL},
        {"f", JSONDEC_STRMAP, 0, offsetof(struct target, strmap), JSONDEC_NO_PRESENT, NULL, NULL,
         NULL},
    };
    static const struct jsondec_struct table = {"Target", fields, ARRAY_LEN(fields)};
    static const char *const variants[] = {"a", "b", "c"};
    struct target t;
    _cleanup_err_ struct err e = ERR_INIT;
    if (jsondec(&table, root, &t, &e) < 0)
        REQUIRE(e.code == ERR_INVALID_PARAMS && utf8_valid(err_msg(&e), strlen(err_msg(&e))));
    if (jsondec_variant(root, variants, ARRAY_LEN(variants), &e) < 0)
        REQUIRE(e.code == ERR_INVALID_PARAMS && utf8_valid(err_msg(&e), strlen(err_msg(&e))));
    if (jsondec_unit(root, &e) < 0)
        REQUIRE(e.code == ERR_INVALID_PARAMS && utf8_valid(err_msg(&e), strlen(err_msg(&e))));
}

/* Both headers name their types of values alike. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

static void compare_values(const struct json_node *v, json_t *o) {
    void *it;
    size_t i = 0;
    switch (v->type) {
    case JSON_NULL: REQUIRE(json_typeof(o) == JANSSON_NULL); break;
    case JSON_FALSE: REQUIRE(json_typeof(o) == JANSSON_FALSE); break;
    case JSON_TRUE: REQUIRE(json_typeof(o) == JANSSON_TRUE); break;
    case JSON_NUMBER:
        REQUIRE(json_typeof(o) == JANSSON_INTEGER || json_typeof(o) == JANSSON_REAL);
        break;
    case JSON_STRING:
        REQUIRE(json_typeof(o) == JANSSON_STRING);
        REQUIRE(str_eq(json_str(v), (struct str){json_string_value(o), json_string_length(o)}));
        break;
    case JSON_ARRAY:
        REQUIRE(json_typeof(o) == JANSSON_ARRAY && json_array_size(o) == v->count);
        json_for_each(child, v) compare_values(child, json_array_get(o, i++));
        break;
    case JSON_OBJECT:
        REQUIRE(json_typeof(o) == JANSSON_OBJECT && json_object_size(o) == v->count);
        it = json_object_iter(o);
        json_for_each_member(key, v) {
            REQUIRE(str_eqz(json_str(key), json_object_iter_key(it)));
            compare_values(key + 1, json_object_iter_value(it));
            it = json_object_iter_next(o, it);
        }
        break;
    }
}

static bool is_limit(const struct err *e) {
    return strstr(err_msg(e), "recursion limit") != NULL || strstr(err_msg(e), "exceeds") != NULL;
}

static void compare(const char *text, size_t n, const struct json_doc *d, int r,
                    const struct err *e) {
    if (memchr(text, '\0', n) != NULL)
        return;
    json_error_t why;
    json_t *o = json_loadb(
        text, n,
        JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
    if (o != NULL) {
        REQUIRE(r == 0 || is_limit(e));
        if (r == 0)
            compare_values(json_root(d), o);
        json_decref(o);
    } else if (r == 0) {
        REQUIRE(json_error_code(&why) == json_error_numeric_overflow ||
                json_error_code(&why) == json_error_null_byte_in_key);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    if (!utf8_valid(text, size))
        return 0;
    struct json_doc d;
    _cleanup_err_ struct err e = ERR_INIT;
    json_doc_init(&d, size, size);
    int r = json_parse(&d, text, size, &e);
    REQUIRE(r == 0 || (r == -EINVAL && e.code == ERR_INVALID_REQUEST));
    REQUIRE(r < 0 || memchr(text, '\0', size) == NULL);
    compare(text, size, &d, r, &e);
    if (r == 0) {
        REQUIRE(json_root(&d)->skip == d.len);
        check_round_trip(&d);
        check_numbers(&d);
        check_decoder(json_root(&d));
    } else {
        REQUIRE(strstr(err_msg(&e), " at line ") != NULL);
        REQUIRE(utf8_valid(err_msg(&e), strlen(err_msg(&e))));
    }
    json_doc_fini(&d);
    return 0;
}
