#include "json/jsondec.h"

#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* A quoted value is cut here, so that the rest of the message still fits. */
#define JSONDEC_QUOTE_MAX (ERR_MSG_MAX - 512)

/* Fields of one struct; a bit each. */
#define JSONDEC_FIELDS_MAX 64

/*
 * Code points the protocol's texts show as \u{x}: controls, blanks other than the space, format
 * characters, combining marks of the common scripts, private use, and permanently unassigned ones.
 */
static const struct {
    uint32_t first, last;
} jsondec_hidden[] = {
    {0x7F, 0xA0},       {0xAD, 0xAD},       {0x300, 0x36F},      {0x483, 0x489},
    {0x591, 0x5BD},     {0x600, 0x605},     {0x610, 0x61A},      {0x61C, 0x61C},
    {0x64B, 0x65F},     {0x6DD, 0x6DD},     {0x70F, 0x70F},      {0x1680, 0x1680},
    {0x180B, 0x180F},   {0x1AB0, 0x1ACE},   {0x1DC0, 0x1DFF},    {0x2000, 0x200F},
    {0x2028, 0x202F},   {0x205F, 0x206F},   {0x20D0, 0x20F0},    {0x3000, 0x3000},
    {0x302A, 0x302F},   {0x3099, 0x309A},   {0xD800, 0xF8FF},    {0xFB1E, 0xFB1E},
    {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F},   {0xFEFF, 0xFEFF},    {0xFF9E, 0xFF9F},
    {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x1D165, 0x1D169},  {0x1D16D, 0x1D182},
    {0x1FFFE, 0x1FFFF}, {0x2FFFE, 0x2FFFF}, {0x323B0, 0x10FFFF},
};

static bool jsondec_is_hidden(uint32_t c) {
    for (size_t i = 0; i < ARRAY_LEN(jsondec_hidden) && c >= jsondec_hidden[i].first; i++) {
        if (c <= jsondec_hidden[i].last)
            return true;
    }
    return false;
}

/* Writes code point c of len bytes at p as the protocol quotes it (at most 10 bytes). */
static size_t jsondec_quote_one(char *dst, const char *p, size_t len, uint32_t c) {
    const char *named = c == 0      ? "\\0"
                        : c == '\t' ? "\\t"
                        : c == '\n' ? "\\n"
                        : c == '\r' ? "\\r"
                        : c == '"'  ? "\\\""
                        : c == '\\' ? "\\\\"
                                    : NULL;
    if (named != NULL) {
        memcpy(dst, named, 2);
        return 2;
    }
    if (c < 0x20 || (c >= 0x7F && jsondec_is_hidden(c)))
        return (size_t)sprintf(dst, "\\u{%x}", c);
    memcpy(dst, p, len);
    return len;
}

/* The quoted form of s, NUL-terminated, in dst (JSONDEC_QUOTE_MAX + 16 bytes). */
static void jsondec_quote(char *dst, struct str s) {
    size_t out = 0;
    for (size_t i = 0, len; i < s.n; i += len) {
        if (out > JSONDEC_QUOTE_MAX - 16) {
            memcpy(dst + out, "...", 3);
            out += 3;
            break;
        }
        uint32_t c;
        len = utf8_decode(s.p + i, s.n - i, &c);
        out += jsondec_quote_one(dst + out, s.p + i, len, c);
    }
    dst[out] = '\0';
}

int jsondec_type_error(const struct json_node *v, const char *expected, struct err *e) {
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "boolean `false`", [JSON_TRUE] = "boolean `true`",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string",         [JSON_ARRAY] = "sequence",
        [JSON_OBJECT] = "map"};
    if (v == NULL || v->type != JSON_STRING) {
        return err_set(e, ERR_INVALID_PARAMS, "invalid type: %s, expected %s",
                       names[v == NULL ? JSON_NULL : v->type], expected);
    }
    char quoted[JSONDEC_QUOTE_MAX + 16];
    jsondec_quote(quoted, json_str(v));
    return err_set(e, ERR_INVALID_PARAMS, "invalid type: string \"%s\", expected %s", quoted,
                   expected);
}

static int jsondec_unsigned(const struct json_node *v, const char *expected, uint64_t max,
                            uint64_t *out, struct err *e) {
    if (v->type != JSON_NUMBER)
        return jsondec_type_error(v, expected, e);
    if (json_u64(v, out) < 0 || *out > max)
        return err_set(e, ERR_INVALID_PARAMS, "invalid number");
    return 0;
}

/* Checks the kind of a container; with `strings` also that its elements or values are strings. */
static int jsondec_container(const struct json_node *v, enum json_type type, const char *expected,
                             bool strings, struct err *e) {
    if (v->type != type)
        return jsondec_type_error(v, expected, e);
    if (!strings)
        return 0;
    const struct json_node *end = json_next(v);
    size_t step = type == JSON_OBJECT ? 1 : 0; /* over the key */
    for (v++; v < end; v = json_next(v + step)) {
        if (v[step].type != JSON_STRING)
            return jsondec_type_error(v + step, "a string", e);
    }
    return 0;
}

/* Decodes a plain value into `out`. */
static int jsondec_scalar(const struct jsondec_field *f, const struct json_node *v, void *out,
                          struct err *e) {
    const char *expected = f->expected;
    uint64_t u;
    int r;
    switch (f->kind) {
    case JSONDEC_STR:
        if (v->type != JSON_STRING)
            return jsondec_type_error(v, expected ? expected : "a string", e);
        *(struct str *)out = json_str(v);
        return 0;
    case JSONDEC_BOOL:
        if (v->type != JSON_TRUE && v->type != JSON_FALSE)
            return jsondec_type_error(v, expected ? expected : "a boolean", e);
        *(bool *)out = v->type == JSON_TRUE;
        return 0;
    case JSONDEC_U64: return jsondec_unsigned(v, expected ? expected : "u64", UINT64_MAX, out, e);
    case JSONDEC_USIZE:
        return jsondec_unsigned(v, expected ? expected : "usize", UINT64_MAX, out, e);
    case JSONDEC_U16:
        r = jsondec_unsigned(v, expected ? expected : "u16", UINT16_MAX, &u, e);
        if (r == 0)
            *(uint16_t *)out = (uint16_t)u;
        return r;
    case JSONDEC_I64:
        if (v->type != JSON_NUMBER)
            return jsondec_type_error(v, expected ? expected : "i64", e);
        return json_i64(v, out) < 0 ? err_set(e, ERR_INVALID_PARAMS, "invalid number") : 0;
    case JSONDEC_NODE:
    case JSONDEC_SEQ:
    case JSONDEC_STRS:
    case JSONDEC_MAP:
    case JSONDEC_STRMAP:
    case JSONDEC_STRUCT: break;
    }
    return -EINVAL;
}

static int jsondec_value(const struct jsondec_field *f, const struct json_node *v, void *out,
                         struct err *e) {
    const char *seq = f->expected ? f->expected : "a sequence";
    const char *map = f->expected ? f->expected : "a map";
    int r = 0;
    switch (f->kind) {
    case JSONDEC_NODE: break;
    case JSONDEC_SEQ: r = jsondec_container(v, JSON_ARRAY, seq, false, e); break;
    case JSONDEC_STRS: r = jsondec_container(v, JSON_ARRAY, seq, true, e); break;
    case JSONDEC_MAP: r = jsondec_container(v, JSON_OBJECT, map, false, e); break;
    case JSONDEC_STRMAP: r = jsondec_container(v, JSON_OBJECT, map, true, e); break;
    case JSONDEC_STRUCT: return jsondec(f->sub, v, out, e);
    case JSONDEC_STR:
    case JSONDEC_BOOL:
    case JSONDEC_U64:
    case JSONDEC_USIZE:
    case JSONDEC_U16:
    case JSONDEC_I64: return jsondec_scalar(f, v, out, e);
    }
    if (r == 0)
        *(const struct json_node **)out = v;
    return r;
}

static const struct jsondec_field *jsondec_find(const struct jsondec_struct *s, struct str key) {
    if (key.n == 0)
        return NULL;
    for (size_t i = 0; i < s->count; i++) {
        if (s->fields[i].name[0] == key.p[0] && str_eqz(key, s->fields[i].name))
            return &s->fields[i];
    }
    return NULL;
}

/* Runs the checks of the members before `end` (NULL: of all). 0, or -errno of the first fault. */
static int jsondec_checks(const struct jsondec_struct *s, const struct json_node *v,
                          const struct json_node *end, struct err *e) {
    json_for_each_member(k, v) {
        if (k == end)
            break;
        const struct jsondec_field *f = jsondec_find(s, json_str(k));
        if (f == NULL || (k[1].type == JSON_NULL && (f->flags & JSONDEC_NULLABLE) != 0))
            continue;
        int r = 0;
        if (f->kind == JSONDEC_STRUCT)
            r = jsondec_checks(f->sub, k + 1, NULL, e);
        else if (f->check != NULL)
            r = f->check(k + 1, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Replaces an error of the member `at` (NULL: of none) by that of an earlier check. */
static void jsondec_look_before(const struct jsondec_struct *s, const struct json_node *v,
                                const struct json_node *at, struct err *e) {
    _cleanup_err_ struct err first = ERR_INIT;
    if (jsondec_checks(s, v, at, &first) < 0)
        err_move(e, &first);
}

void jsondec_report_first(const struct jsondec_struct *s, const struct json_node *v,
                          struct err *e) {
    jsondec_look_before(s, v, NULL, e);
}

int jsondec(const struct jsondec_struct *s, const struct json_node *v, void *out, struct err *e) {
    if (v == NULL || v->type != JSON_OBJECT) {
        char expected[128];
        snprintf(expected, sizeof expected, "struct %s", s->name);
        return jsondec_type_error(v, expected, e);
    }
    assert(s->count <= JSONDEC_FIELDS_MAX);
    uint64_t given = 0;
    json_for_each_member(k, v) {
        const struct jsondec_field *f = jsondec_find(s, json_str(k));
        if (f == NULL)
            continue;
        given |= UINT64_C(1) << (size_t)(f - s->fields);
        if (k[1].type == JSON_NULL && (f->flags & JSONDEC_NULLABLE) != 0)
            continue;
        int r = jsondec_value(f, k + 1, (char *)out + f->offset, e);
        if (r < 0) {
            jsondec_look_before(s, v, k, e);
            return r;
        }
        if (f->present != JSONDEC_NO_PRESENT)
            *(bool *)((char *)out + f->present) = true;
    }
    for (size_t i = 0; i < s->count; i++) {
        if ((s->fields[i].flags & JSONDEC_REQUIRED) != 0 && (given >> i & 1) == 0) {
            err_set(e, ERR_INVALID_PARAMS, "missing field `%s`", s->fields[i].name);
            jsondec_look_before(s, v, NULL, e);
            return -EINVAL;
        }
    }
    return 0;
}

int jsondec_unit(const struct json_node *v, struct err *e) {
    if (v == NULL || v->type == JSON_NULL || (v->type == JSON_OBJECT && v->count == 0))
        return 0;
    return jsondec_type_error(v, "unit", e);
}

/* The list of variants as the error text has it, cut to the room at dst. */
static void jsondec_variants(char *dst, size_t room, const char *const *variants, size_t count) {
    size_t len = 0;
    dst[0] = '\0';
    for (size_t i = 0; i < count && len < room; i++) {
        const char *before = i > 0 ? (count == 2 ? " or " : ", ") : count > 2 ? "one of " : "";
        int n = snprintf(dst + len, room - len, "%s`%s`", before, variants[i]);
        len += n > 0 ? (size_t)n : 0;
    }
}

int jsondec_variant(const struct json_node *v, const char *const *variants, size_t count,
                    struct err *e) {
    /* The reference also accepts {"name":null}. It is refused here, with the reference's texts. */
    const struct json_node *name = v;
    if (v != NULL && v->type == JSON_OBJECT) {
        if (v->count != 1)
            return err_set(e, ERR_INVALID_PARAMS,
                           "invalid value: map, expected map with a single key");
        name = v + 1;
    }
    if (name == NULL || name->type != JSON_STRING)
        return jsondec_type_error(v, "string or map", e);
    for (size_t i = 0; i < count; i++) {
        if (str_eqz(json_str(name), variants[i]))
            return name == v ? (int)i : jsondec_type_error(v, "a string", e);
    }
    char after[512 + 16] = "`, expected ";
    size_t used = strlen(after);
    jsondec_variants(after + used, sizeof after - used, variants, count);
    struct str quoted = {name->p, utf8_cut(name->p, name->n, JSONDEC_QUOTE_MAX)};
    return err_about(e, ERR_INVALID_PARAMS, "unknown variant `", quoted, after);
}
