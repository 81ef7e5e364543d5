#include "yaml/yaml.h"

#include <errno.h>
#include <yaml.h>

struct anchor {
    struct str name;
    const struct yaml_node *node;
};

/* A document being read. */
struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    struct anchor *anchors; /* in the arena; a later one of a name hides the earlier */
    size_t anchor_count, anchor_cap;
    size_t nodes;
    int error; /* the first: 0, or -errno */
};

static void yaml_event_cleanup(yaml_event_t *e) {
    yaml_event_delete(e);
}
#define _cleanup_event_ __attribute__((cleanup(yaml_event_cleanup)))

static const struct yaml_node *yaml_fail(struct reader *r, int error) {
    if (r->error == 0)
        r->error = error;
    return NULL;
}

/* Fetches the next event into *e, which is zero. */
static bool yaml_next(struct reader *r, yaml_event_t *e) {
    if (yaml_parser_parse(&r->parser, e))
        return true;
    yaml_fail(r, r->parser.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL);
    return false;
}

static struct str yaml_copy(struct reader *r, const void *p, size_t n) {
    const char *copy = arena_strdup(r->arena, (struct str){p, n});
    if (copy == NULL)
        yaml_fail(r, -ENOMEM);
    return (struct str){copy, n};
}

static struct yaml_node *yaml_new(struct reader *r, enum yaml_type type, const yaml_char_t *tag) {
    struct yaml_node *n = arena_calloc(r->arena, 1, sizeof *n);
    if (n == NULL) {
        yaml_fail(r, -ENOMEM);
        return NULL;
    }
    n->type = type;
    if (tag != NULL)
        n->tag = yaml_copy(r, tag, strlen((const char *)tag));
    return n;
}

static void yaml_name(struct reader *r, const yaml_char_t *anchor, const struct yaml_node *n) {
    if (anchor == NULL || n == NULL)
        return;
    if (r->anchor_count == YAML_ANCHORS_MAX) {
        yaml_fail(r, -EINVAL);
        return;
    }
    struct anchor *grown =
        arena_grow(r->arena, r->anchors, r->anchor_count, &r->anchor_cap, 8, sizeof *r->anchors);
    if (grown == NULL) {
        yaml_fail(r, -ENOMEM);
        return;
    }
    r->anchors = grown;
    r->anchors[r->anchor_count++] =
        (struct anchor){yaml_copy(r, anchor, strlen((const char *)anchor)), n};
}

static const struct yaml_node *yaml_alias(struct reader *r, const yaml_char_t *name) {
    for (size_t i = r->anchor_count; i-- > 0;) {
        if (str_eqz(r->anchors[i].name, (const char *)name))
            return r->anchors[i].node;
    }
    return yaml_fail(r, -EINVAL);
}

static const struct yaml_node *yaml_read_node(struct reader *r, const yaml_event_t *e,
                                              unsigned depth);

/* Reads the nodes of a collection up to its end. */
static void yaml_read_items(struct reader *r, struct yaml_node *n, yaml_event_type_t end,
                            unsigned depth) {
    const struct yaml_item **tail = &n->first;
    while (r->error == 0) {
        _cleanup_event_ yaml_event_t e = {0};
        if (!yaml_next(r, &e) || e.type == end)
            return;
        struct yaml_item *item = arena_calloc(r->arena, 1, sizeof *item);
        if (item == NULL) {
            yaml_fail(r, -ENOMEM);
            return;
        }
        item->node = yaml_read_node(r, &e, depth + 1);
        *tail = item;
        tail = &item->next;
    }
}

static const struct yaml_node *yaml_read_scalar(struct reader *r, const yaml_event_t *e) {
    struct yaml_node *n = yaml_new(r, YAML_SCALAR, e->data.scalar.tag);
    if (n == NULL)
        return NULL;
    n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    n->text = yaml_copy(r, e->data.scalar.value, e->data.scalar.length);
    yaml_name(r, e->data.scalar.anchor, n);
    return n;
}

static const struct yaml_node *yaml_read_list(struct reader *r, enum yaml_type type,
                                              const yaml_char_t *tag, const yaml_char_t *anchor,
                                              unsigned depth) {
    struct yaml_node *n = yaml_new(r, type, tag);
    if (n == NULL)
        return NULL;
    yaml_name(r, anchor, n);
    yaml_read_items(r, n, type == YAML_SEQUENCE ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT,
                    depth);
    return n;
}

/* The node that begins with an event. NULL with r->error set. */
static const struct yaml_node *yaml_read_node(struct reader *r, const yaml_event_t *e,
                                              unsigned depth) {
    if (++r->nodes > YAML_NODES_MAX || depth > YAML_DEPTH_MAX)
        return yaml_fail(r, -EINVAL);
    switch (e->type) {
    case YAML_SCALAR_EVENT: return yaml_read_scalar(r, e);
    case YAML_ALIAS_EVENT: return yaml_alias(r, e->data.alias.anchor);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_read_list(r, YAML_SEQUENCE, e->data.sequence_start.tag,
                              e->data.sequence_start.anchor, depth);
    case YAML_MAPPING_START_EVENT:
        return yaml_read_list(r, YAML_MAPPING, e->data.mapping_start.tag,
                              e->data.mapping_start.anchor, depth);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: break;
    }
    return yaml_fail(r, -EINVAL);
}

/* Reads the stream: nothing, or one document. */
static const struct yaml_node *yaml_read_stream(struct reader *r) {
    const struct yaml_node *root = NULL;
    bool inside = false;
    while (r->error == 0) {
        _cleanup_event_ yaml_event_t e = {0};
        if (!yaml_next(r, &e) || e.type == YAML_STREAM_END_EVENT)
            break;
        if (e.type == YAML_STREAM_START_EVENT || e.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (e.type == YAML_DOCUMENT_START_EVENT && !inside)
            inside = true;
        else if (e.type == YAML_DOCUMENT_START_EVENT)
            yaml_fail(r, -EINVAL);
        else
            root = yaml_read_node(r, &e, 0);
    }
    return root;
}

int yaml_parse(struct arena *a, struct str text, const struct yaml_node **root) {
    struct reader r = {.arena = a};
    *root = NULL;
    if (text.n > YAML_TEXT_MAX)
        return -EINVAL;
    if (!yaml_parser_initialize(&r.parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.n > 0 ? text.p : ""),
                                 text.n);
    *root = yaml_read_stream(&r);
    yaml_parser_delete(&r.parser);
    if (r.error != 0)
        *root = NULL;
    return r.error;
}

/* -- values -- */

bool yaml_is_empty(const struct yaml_node *n) {
    return n->type == YAML_SCALAR && n->plain && n->text.n == 0 && n->tag.p == NULL;
}

bool yaml_is_null(const struct yaml_node *n) {
    static const char *const none[] = {"", "~", "null", "Null", "NULL"};
    if (n->type != YAML_SCALAR || !n->plain)
        return false;
    if (n->tag.p != NULL && !str_eqz(n->tag, YAML_NULL_TAG))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        if (str_eqz(n->text, none[i]))
            return true;
    }
    return false;
}

int yaml_get(const struct yaml_node *mapping, const char *key, const struct yaml_node **value) {
    *value = NULL;
    if (mapping == NULL || yaml_is_empty(mapping))
        return 0;
    if (mapping->type != YAML_MAPPING)
        return -EINVAL;
    for (const struct yaml_item *k = mapping->first; k != NULL; k = k->next->next) {
        if (k->node->type != YAML_SCALAR || (*value != NULL && str_eqz(k->node->text, key)))
            return -EINVAL;
        if (str_eqz(k->node->text, key))
            *value = k->next->node;
    }
    return 0;
}

int yaml_text(const struct yaml_node *n, struct str *out) {
    *out = (struct str){NULL, 0};
    if (n == NULL || yaml_is_null(n))
        return 0;
    if (n->type != YAML_SCALAR || (n->tag.p != NULL && str_eqz(n->tag, YAML_NULL_TAG)))
        return -EINVAL;
    *out = n->text;
    return 0;
}

/* Whether a scalar's type follows from its text. */
static bool yaml_is_untyped(const struct yaml_node *n, const char *tag) {
    return n->type == YAML_SCALAR && n->plain && (n->tag.p == NULL || str_eqz(n->tag, tag));
}

int yaml_bool(const struct yaml_node *n, int *out) {
    static const char *const words[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
    *out = -1;
    if (n == NULL || yaml_is_null(n))
        return 0;
    if (!yaml_is_untyped(n, YAML_BOOL_TAG))
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqz(n->text, words[i]))
            *out = i > 2;
    }
    return *out < 0 ? -EINVAL : 0;
}

/* Cuts the prefix of a base off and returns the base; 0 for a decimal with a useless zero. */
static unsigned yaml_base(struct str *s) {
    static const struct {
        const char *prefix;
        unsigned base;
    } bases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}};
    if (s->n > 0 && s->p[0] == '+')
        str_take(s, 1);
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if (s->n > 2 && memcmp(s->p, bases[i].prefix, 2) == 0) {
            str_take(s, 2);
            return bases[i].base;
        }
    }
    return s->n > 1 && s->p[0] == '0' ? 0 : 10;
}

static unsigned yaml_digit(char c) {
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

int yaml_uint(const struct yaml_node *n, uint32_t max, int64_t *out) {
    *out = -1;
    if (n == NULL || yaml_is_null(n))
        return 0;
    if (!yaml_is_untyped(n, YAML_INT_TAG))
        return -EINVAL;
    struct str s = n->text;
    unsigned base = yaml_base(&s);
    if (s.n == 0 || base == 0)
        return -EINVAL;
    uint64_t value = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = yaml_digit(s.p[i]);
        value = value * base + digit;
        if (digit >= base || value > max)
            return -EINVAL;
    }
    *out = (int64_t)value;
    return 0;
}
