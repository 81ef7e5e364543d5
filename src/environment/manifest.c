#include "environment/manifest.h"

#include "environment/discover.h"
#include "json/json_dup.h"
#include "json/jsonw.h"

#include <errno.h>

#define MANIFEST_TWINS_MAX 256 /* members of an object that has one of them twice */

bool manifest_member(const struct json_node *v, size_t index, const char *key,
                     const struct json_node **out) {
    *out = NULL;
    if (v->type == JSON_OBJECT)
        return json_get_only(v, key, out);
    json_for_each(element, v) {
        if (index-- == 0)
            *out = element;
    }
    return true;
}

/* Whether it can be read as a structure; an array must have so many elements. */
static bool manifest_is_struct(const struct json_node *v, size_t least, size_t most) {
    return v->type == JSON_OBJECT ||
           (v->type == JSON_ARRAY && v->count >= least && v->count <= most);
}

/* A member that is a text, or missing; `null` may stand for that. False: it is another thing. */
static bool manifest_text(struct arena *a, const struct json_node *v, size_t index, const char *key,
                          bool nullable, struct str *out) {
    const struct json_node *member;
    *out = (struct str){NULL, 0};
    if (!manifest_member(v, index, key, &member))
        return false;
    if (member == NULL || (nullable && member->type == JSON_NULL))
        return true;
    if (member->type != JSON_STRING)
        return false;
    struct str s = json_str(member);
    *out = (struct str){arena_strdup(a, s), s.n};
    return out->p != NULL;
}

/* -- MCP servers in the manifest -- */

/* A number as the reference writes it: its text, an exponent with its sign. */
static int manifest_put_number(struct buf *b, struct str s) {
    size_t e = 0;
    while (e < s.n && s.p[e] != 'e' && s.p[e] != 'E')
        e++;
    if (str_eqz(s, "-0"))
        return buf_putc(b, '0');
    int r = buf_put(b, s.p, e);
    if (r < 0 || e == s.n)
        return r;
    bool is_signed = s.p[e + 1] == '+' || s.p[e + 1] == '-';
    r = buf_putz(b, is_signed ? "e" : "e+");
    return r < 0 ? r : buf_put(b, s.p + e + 1, s.n - e - 1);
}

/* The value that counts for a key: that of its last twin. NULL: an earlier twin was written. */
static const struct json_node *manifest_twin(const struct json_node *object,
                                             const struct json_node *key) {
    const struct json_node *value = key + 1;
    json_for_each_member(k, object) {
        if (!str_eq(json_str(k), json_str(key)))
            continue;
        if (k < key)
            return NULL;
        value = k + 1;
    }
    return value;
}

static int manifest_put(struct buf *b, struct json_dup *search, const struct json_node *v);

/* A key that is there twice keeps its first place and its last value. */
static int manifest_put_object(struct buf *b, struct json_dup *search, const struct json_node *v) {
    const struct json_node *twin = NULL;
    bool first = true;
    int r = v->count > 1 ? json_dup_find(search, v, &twin) : 0;
    if (r == 0 && twin != NULL && v->count > MANIFEST_TWINS_MAX)
        r = -EINVAL;
    if (r == 0)
        r = buf_putc(b, '{');
    json_for_each_member(k, v) {
        const struct json_node *value = twin == NULL ? k + 1 : manifest_twin(v, k);
        if (r < 0 || value == NULL)
            continue;
        r = first ? 0 : buf_putc(b, ',');
        first = false;
        if (r == 0)
            r = jsonw_str(b, json_str(k));
        if (r == 0)
            r = buf_putc(b, ':');
        if (r == 0)
            r = manifest_put(b, search, value); /* at most JSON_MAX_DEPTH levels */
    }
    return r < 0 ? r : buf_putc(b, '}');
}

static int manifest_put_array(struct buf *b, struct json_dup *search, const struct json_node *v) {
    int r = buf_putc(b, '[');
    json_for_each(element, v) {
        if (r == 0 && element != v + 1)
            r = buf_putc(b, ',');
        if (r == 0)
            r = manifest_put(b, search, element);
    }
    return r < 0 ? r : buf_putc(b, ']');
}

static int manifest_put(struct buf *b, struct json_dup *search, const struct json_node *v) {
    switch (v->type) {
    case JSON_NULL: return buf_putz(b, "null");
    case JSON_FALSE: return buf_putz(b, "false");
    case JSON_TRUE: return buf_putz(b, "true");
    case JSON_NUMBER: return manifest_put_number(b, json_str(v));
    case JSON_STRING: return jsonw_str(b, json_str(v));
    case JSON_ARRAY: return manifest_put_array(b, search, v);
    case JSON_OBJECT: break;
    }
    return manifest_put_object(b, search, v);
}

/* Sets m->mcp if the member is an object. */
static bool manifest_read_mcp(struct arena *a, const struct json_node *v, struct manifest *m) {
    _cleanup_buf_ struct buf b = BUF_INIT(2 * DISCOVER_FILE_MAX);
    struct json_dup search = {.seed = discover_seed()};
    if (v == NULL || v->type != JSON_OBJECT)
        return true;
    int r = manifest_put(&b, &search, v);
    json_dup_fini(&search);
    if (r == 0)
        m->mcp = (struct str){arena_strdup(a, buf_str(&b)), b.len};
    return m->mcp.p != NULL;
}

/* -- the manifest -- */

/* Reads all but the name. */
static bool manifest_read_rest(struct arena *a, const struct json_node *root, struct manifest *m) {
    const struct json_node *interface, *mcp;
    struct str ignored;
    if (!manifest_member(root, 1, "interface", &interface) ||
        !manifest_member(root, 2, "mcpServers", &mcp) ||
        !manifest_text(a, root, 3, "apps", true, &ignored))
        return false;
    if (interface != NULL && interface->type != JSON_NULL &&
        (!manifest_is_struct(interface, 1, 1) ||
         !manifest_text(a, interface, 0, "displayName", true, &m->display)))
        return false;
    return root->type != JSON_OBJECT || manifest_read_mcp(a, mcp, m);
}

bool manifest_read(struct arena *a, struct str text, bool whole, struct manifest *m) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct json_doc doc;
    json_doc_init(&doc, DISCOVER_FILE_MAX, discover_seed());
    doc.keeps_duplicates = true;
    *m = (struct manifest){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    bool ok = json_parse(&doc, text.p, text.n, &e) == 0;
    const struct json_node *root = ok ? json_root(&doc) : NULL;
    ok = ok && (whole ? manifest_is_struct(root, 4, 4) : manifest_is_struct(root, 0, 1)) &&
         manifest_text(a, root, 0, "name", false, &m->name);
    if (ok && whole)
        ok = manifest_read_rest(a, root, m);
    json_doc_fini(&doc);
    return ok;
}
