#include "toml/toml.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "toml/toml_internal.h"

#include <errno.h>

#define TOML_MESSAGE_MAX 4096 /* bytes of a list of known keys */

/* Places the first byte that is not UTF-8. */
static bool toml_bad_utf8(struct toml_parser *p) {
    size_t i = 0;
    for (uint32_t point = 0; i < p->text.n;) {
        size_t n = utf8_decode(p->text.p + i, p->text.n - i, &point);
        if (point >= 0x110000)
            break;
        i += n;
    }
    return toml_scan_fail(p, i, "the text is not valid UTF-8");
}

static bool toml_statements(struct toml_parser *p, struct toml_value *root) {
    struct toml_value *current = root;
    for (;;) {
        if (!toml_scan_lines(p))
            return false;
        int c = toml_scan_peek(p, 0);
        if (c < 0)
            return true;
        bool good = c == '[' ? toml_table_header(p, root, &current) : toml_table_pair(p, current);
        if (!good || !toml_scan_line_end(p))
            return false;
    }
}

static bool toml_text(struct toml_parser *p, struct toml_value *root) {
    if (p->text.n > TOML_TEXT_MAX) {
        p->status =
            err_set(p->e, ERR_INVALID_PARAMS, "the text is longer than %u bytes", TOML_TEXT_MAX);
        return false;
    }
    if (!utf8_valid(p->text.p, p->text.n))
        return toml_bad_utf8(p);
    if (p->text.n >= 3 && memcmp(p->text.p, "\xEF\xBB\xBF", 3) == 0)
        str_take(&p->text, 3);
    return toml_statements(p, root);
}

int toml_parse(struct arena *a, struct str text, const struct toml_value **root, struct err *e) {
    struct toml_parser p = {.arena = a, .text = text, .line = 1, .e = e};
    *root = NULL;
    struct toml_value *table = arena_alloc(a, sizeof *table);
    if (table == NULL) {
        toml_scan_memory(&p);
        return p.status;
    }
    *table = (struct toml_value){.type = TOML_TABLE, .line = 1, .definition = TOML_HEADER};
    hash_init(&p.index);
    if (toml_text(&p, table))
        *root = table;
    hash_fini(&p.index);
    return p.status;
}

const struct toml_value *toml_get(const struct toml_value *table, const char *key) {
    toml_for_each(v, table) {
        if (str_eqz(v->key, key))
            return v;
    }
    return NULL;
}

const char *toml_type_name(enum toml_type type) {
    static const char *const names[] = {
        [TOML_STRING] = "a string",
        [TOML_INTEGER] = "an integer",
        [TOML_FLOAT] = "a float",
        [TOML_BOOLEAN] = "a boolean",
        [TOML_OFFSET_DATETIME] = "a date and time",
        [TOML_LOCAL_DATETIME] = "a date and time without an offset",
        [TOML_LOCAL_DATE] = "a date",
        [TOML_LOCAL_TIME] = "a time",
        [TOML_ARRAY] = "an array",
        [TOML_TABLE] = "a table",
    };
    return names[type];
}

int toml_expect(const struct toml_value *v, const char *name, enum toml_type type, struct err *e) {
    if (v->type == type)
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "line %u: `%s` must be %s, not %s", (unsigned)v->line,
                   name, toml_type_name(type), toml_type_name(v->type));
}

int toml_read_string(const struct toml_value *v, const char *name, struct str *out, struct err *e) {
    int r = toml_expect(v, name, TOML_STRING, e);
    if (r == 0)
        *out = v->text;
    return r;
}

int toml_read_integer(const struct toml_value *v, const char *name, int64_t *out, struct err *e) {
    int r = toml_expect(v, name, TOML_INTEGER, e);
    if (r == 0)
        *out = v->integer;
    return r;
}

int toml_read_number(const struct toml_value *v, const char *name, double *out, struct err *e) {
    if (v->type == TOML_INTEGER) {
        *out = (double)v->integer;
        return 0;
    }
    if (v->type != TOML_FLOAT)
        return err_set(e, ERR_INVALID_PARAMS, "line %u: `%s` must be a number, not %s",
                       (unsigned)v->line, name, toml_type_name(v->type));
    *out = v->number;
    return 0;
}

int toml_read_boolean(const struct toml_value *v, const char *name, bool *out, struct err *e) {
    int r = toml_expect(v, name, TOML_BOOLEAN, e);
    if (r == 0)
        *out = v->boolean;
    return r;
}

static int toml_unknown(const struct toml_value *v, const char *const *known, size_t n,
                        struct err *e) {
    _cleanup_buf_ struct buf before = BUF_INIT(64), after = BUF_INIT(TOML_MESSAGE_MAX);
    int r = buf_putf(&before, "line %u: unknown key `", (unsigned)v->line);
    if (r == 0)
        r = buf_putz(&after, n > 1 ? "`, expected one of " : "`, expected ");
    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_putf(&after, "%s`%s`", i > 0 ? ", " : "", known[i]);
    if (r == 0)
        r = buf_putc(&before, '\0');
    if (r == 0)
        r = buf_putc(&after, '\0');
    if (r < 0)
        return err_set(e, ERR_INVALID_PARAMS, "line %u: unknown key", (unsigned)v->line);
    return err_about(e, ERR_INVALID_PARAMS, before.p, v->key, after.p);
}

int toml_only(const struct toml_value *table, const char *const *known, size_t n, struct err *e) {
    toml_for_each(v, table) {
        size_t i = 0;
        while (i < n && !str_eqz(v->key, known[i]))
            i++;
        if (i == n)
            return toml_unknown(v, known, n, e);
    }
    return 0;
}
