#include "toml/toml_internal.h"

/* The index finds a member by the address of its table and its key. */
static bool value_index(struct toml_parser *p, const struct toml_value *table,
                        struct toml_member *m, struct str key) {
    char *bytes = arena_alloc(p->arena, sizeof table + key.n + 1);
    if (bytes == NULL)
        return false;
    memcpy(bytes, &table, sizeof table);
    if (key.n > 0)
        memcpy(bytes + sizeof table, key.p, key.n);
    m->value.key = (struct str){bytes + sizeof table, key.n};
    return hash_add(&p->index, &m->node, (struct str){bytes, sizeof table + key.n}) == 0;
}

struct toml_value *toml_value_new(struct toml_parser *p, struct toml_value *parent,
                                  const struct str *key, enum toml_type type, size_t at) {
    if (p->values >= TOML_VALUES_MAX) {
        toml_scan_fail(p, at, "more than %d values", TOML_VALUES_MAX);
        return NULL;
    }
    if (parent->depth >= TOML_DEPTH_MAX) {
        toml_scan_fail(p, at, "more than %d tables and arrays in each other", TOML_DEPTH_MAX);
        return NULL;
    }
    struct toml_member *m =
        arena_alloc(p->arena, key != NULL ? sizeof *m : sizeof(struct toml_value));
    if (m == NULL || (key != NULL && !value_index(p, parent, m, *key))) {
        toml_scan_memory(p);
        return NULL;
    }
    struct toml_value *v = &m->value;
    v->type = (uint8_t)type;
    v->line = p->line;
    v->depth = (uint16_t)(parent->depth + 1);
    if (parent->children.last != NULL)
        parent->children.last->next = v;
    else
        parent->children.first = v;
    parent->children.last = v;
    parent->count++;
    p->values++;
    return v;
}

/* Reads the elements of an array; its bracket is passed. */
static bool value_array(struct toml_parser *p, struct toml_value *array) {
    for (;;) {
        if (!toml_scan_lines(p))
            return false;
        if (toml_scan_take(p, ']'))
            return true;
        if (!toml_value_read(p, array, NULL) || !toml_scan_lines(p))
            return false;
        if (toml_scan_take(p, ']'))
            return true;
        if (!toml_scan_take(p, ','))
            return toml_scan_expected(p, "`,` or `]`");
    }
}

/* Reads the members of an inline table, on one line; its brace is passed. */
static bool value_inline_table(struct toml_parser *p, struct toml_value *table) {
    toml_scan_blanks(p);
    if (toml_scan_take(p, '}'))
        return true;
    for (;;) {
        toml_scan_blanks(p);
        if (!toml_table_pair(p, table))
            return false;
        toml_scan_blanks(p);
        if (toml_scan_take(p, '}'))
            return true;
        if (!toml_scan_take(p, ','))
            return toml_scan_expected(p, "`,` or `}`");
    }
}

bool toml_value_read(struct toml_parser *p, struct toml_value *parent, const struct str *key) {
    struct toml_value *v = toml_value_new(p, parent, key, TOML_STRING, p->at);
    if (v == NULL)
        return false;
    switch (toml_scan_peek(p, 0)) {
    case '"':
    case '\'': return toml_string_read(p, true, &v->text);
    case '[':
        p->at++;
        v->type = TOML_ARRAY;
        return value_array(p, v);
    case '{':
        p->at++;
        v->type = TOML_TABLE;
        return value_inline_table(p, v);
    default: return toml_number_read(p, v);
    }
}
