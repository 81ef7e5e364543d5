#include "toml/toml_internal.h"

#define TABLE_KEY_SHOWN 64 /* bytes of a key that a message quotes */

/* One part of a key. */
struct toml_part {
    struct str key;
    size_t at; /* where it begins */
};

static bool table_is_bare(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Reads a bare or quoted part of a key and the blanks behind it. */
static bool table_part(struct toml_parser *p, struct toml_part *part) {
    part->at = p->at;
    int c = toml_scan_peek(p, 0);
    if (c == '"' || c == '\'') {
        if (!toml_string_read(p, false, &part->key))
            return false;
    } else {
        while (table_is_bare(toml_scan_peek(p, 0)))
            p->at++;
        part->key = (struct str){p->text.p + part->at, p->at - part->at};
        if (part->key.n == 0)
            return toml_scan_expected(p, "a key");
    }
    toml_scan_blanks(p);
    return true;
}

/* The member of a table, or NULL. A failure to build the question is a failure of memory. */
static struct toml_value *table_find(struct toml_parser *p, const struct toml_value *table,
                                     struct str key) {
    char small[256];
    size_t n = sizeof table + key.n;
    char *bytes = n <= sizeof small ? small : arena_alloc(p->arena, n);
    if (bytes == NULL) {
        toml_scan_memory(p);
        return NULL;
    }
    memcpy(bytes, &table, sizeof table);
    if (key.n > 0)
        memcpy(bytes + sizeof table, key.p, key.n);
    struct hash_node *node = hash_find(&p->index, (struct str){bytes, n});
    return node != NULL ? &container_of(node, struct toml_member, node)->value : NULL;
}

/* Says that a key is taken, and where. */
static bool table_taken(struct toml_parser *p, const struct toml_part *part,
                        const struct toml_value *by, const char *what) {
    int n = (int)MIN(part->key.n, (size_t)TABLE_KEY_SHOWN);
    while (n > 0 && (size_t)n < part->key.n && ((unsigned char)part->key.p[n] & 0xC0) == 0x80)
        n--;
    return toml_scan_fail(p, part->at, "%s `%.*s%s`, which line %u defines as %s", what, n,
                          part->key.p, (size_t)n < part->key.n ? "..." : "", (unsigned)by->line,
                          toml_type_name(by->type));
}

static struct toml_value *table_make(struct toml_parser *p, struct toml_value *table,
                                     const struct toml_part *part, enum toml_type type,
                                     enum toml_definition definition) {
    struct toml_value *v = toml_value_new(p, table, &part->key, type, part->at);
    if (v != NULL)
        v->definition = (uint8_t)definition;
    return v;
}

/* The table that a part of a dotted key names, made if it is not there. NULL after a failure. */
static struct toml_value *table_step_dotted(struct toml_parser *p, struct toml_value *table,
                                            const struct toml_part *part) {
    struct toml_value *v = table_find(p, table, part->key);
    if (p->status < 0)
        return NULL;
    if (v == NULL)
        return table_make(p, table, part, TOML_TABLE, TOML_DOTTED);
    if (v->definition != TOML_DOTTED && v->definition != TOML_IMPLICIT) {
        table_taken(p, part, v, "a dotted key cannot add to");
        return NULL;
    }
    v->definition = TOML_DOTTED;
    return v;
}

/* The table that a part of a header, not the last one, names: of an array the last table. */
static struct toml_value *table_step_header(struct toml_parser *p, struct toml_value *table,
                                            const struct toml_part *part) {
    struct toml_value *v = table_find(p, table, part->key);
    if (p->status < 0)
        return NULL;
    if (v == NULL)
        return table_make(p, table, part, TOML_TABLE, TOML_IMPLICIT);
    if (v->definition == TOML_TABLES)
        return v->children.last;
    if (v->definition == TOML_CLOSED) {
        table_taken(p, part, v, "a header cannot add to");
        return NULL;
    }
    return v;
}

bool toml_table_pair(struct toml_parser *p, struct toml_value *table) {
    struct toml_part part;
    if (!table_part(p, &part))
        return false;
    while (toml_scan_take(p, '.')) {
        table = table_step_dotted(p, table, &part);
        toml_scan_blanks(p);
        if (table == NULL || !table_part(p, &part))
            return false;
    }
    if (!toml_scan_take(p, '='))
        return toml_scan_expected(p, "`=`");
    struct toml_value *v = table_find(p, table, part.key);
    if (p->status < 0)
        return false;
    if (v != NULL)
        return table_taken(p, &part, v, "cannot define");
    toml_scan_blanks(p);
    return toml_value_read(p, table, &part.key);
}

/* Opens the table that [header] names. */
static struct toml_value *table_open(struct toml_parser *p, struct toml_value *table,
                                     const struct toml_part *part) {
    struct toml_value *v = table_find(p, table, part->key);
    if (p->status < 0)
        return NULL;
    if (v == NULL)
        return table_make(p, table, part, TOML_TABLE, TOML_HEADER);
    if (v->definition != TOML_IMPLICIT) {
        table_taken(p, part, v, "cannot define");
        return NULL;
    }
    v->definition = TOML_HEADER;
    v->line = p->line;
    return v;
}

/* Adds a table to the array that [[header]] names. */
static struct toml_value *table_append(struct toml_parser *p, struct toml_value *table,
                                       const struct toml_part *part) {
    struct toml_value *v = table_find(p, table, part->key);
    if (p->status < 0)
        return NULL;
    if (v == NULL)
        v = table_make(p, table, part, TOML_ARRAY, TOML_TABLES);
    else if (v->definition != TOML_TABLES)
        table_taken(p, part, v, "cannot append to");
    if (v == NULL || p->status < 0)
        return NULL;
    struct toml_value *element = toml_value_new(p, v, NULL, TOML_TABLE, part->at);
    if (element != NULL)
        element->definition = TOML_HEADER;
    return element;
}

bool toml_table_header(struct toml_parser *p, struct toml_value *root,
                       struct toml_value **current) {
    struct toml_value *table = root;
    struct toml_part part;
    toml_scan_take(p, '[');
    bool append = toml_scan_take(p, '[');
    toml_scan_blanks(p);
    if (!table_part(p, &part))
        return false;
    while (toml_scan_take(p, '.')) {
        table = table_step_header(p, table, &part);
        toml_scan_blanks(p);
        if (table == NULL || !table_part(p, &part))
            return false;
    }
    if (!toml_scan_take(p, ']'))
        return toml_scan_expected(p, "`]`");
    if (append && !toml_scan_take(p, ']'))
        return toml_scan_expected(p, "`]]`");
    *current = append ? table_append(p, table, &part) : table_open(p, table, &part);
    return *current != NULL;
}
