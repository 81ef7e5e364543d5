#include "environment/envconf_select.h"

#include <stdint.h>

/* A project could use these to send credentials elsewhere, or to run a program. */
static const char *const select_refused[] = {
    "chatgpt_base_url",
    "experimental_realtime_ws_base_url",
    "model_provider",
    "model_providers",
    "notify",
    "openai_base_url",
    "otel",
    "profile",
    "profiles",
};

static bool select_is_refused(struct str key) {
    for (size_t i = 0; i < ARRAY_LEN(select_refused); i++) {
        if (str_eqz(key, select_refused[i]))
            return true;
    }
    return false;
}

/* A set of paths that agree up to some depth: a bit for each. */
struct select_set {
    uint64_t bits[ENVCONF_PATHS_MAX / 64];
};

/* How paths meet a key. */
enum select_how {
    SELECT_NO,
    SELECT_INSIDE, /* some lead on from it */
    SELECT_WHOLE,  /* one ends at it */
};

static enum select_how select_match(const struct envconf_paths *paths, const struct select_set *in,
                                    size_t depth, struct str key, struct select_set *out) {
    enum select_how how = SELECT_NO;
    *out = (struct select_set){0};
    for (size_t i = 0; i < paths->count; i++) {
        const struct envconf_path *p = &paths->path[i];
        uint64_t bit = UINT64_C(1) << (i % 64);
        if ((in->bits[i / 64] & bit) == 0 || !str_eq(p->keys[depth], key))
            continue;
        if (p->count == depth + 1)
            return SELECT_WHOLE;
        out->bits[i / 64] |= bit;
        how = SELECT_INSIDE;
    }
    return how;
}

/* A copy of a value without its siblings; it shares its members. NULL: no memory. */
static struct toml_value *select_copy(struct arena *a, const struct toml_value *v) {
    struct toml_value *copy = arena_alloc(a, sizeof *copy);
    if (copy != NULL) {
        *copy = *v;
        copy->next = NULL;
    }
    return copy;
}

static void select_append(struct toml_value *table, struct toml_value *v) {
    if (table->children.last != NULL)
        table->children.last->next = v;
    else
        table->children.first = v;
    table->children.last = v;
    table->count++;
}

/* The reader bounds the depth of tables, and with it this recursion. */
static struct toml_value *select_table(struct arena *a, const struct toml_value *table,
                                       const struct envconf_paths *paths,
                                       const struct select_set *in, size_t depth, bool project) {
    struct toml_value *result = select_copy(a, table);
    if (result == NULL)
        return NULL;
    result->children.first = result->children.last = NULL;
    result->count = 0;
    toml_for_each(v, table) {
        struct select_set out;
        enum select_how how = select_match(paths, in, depth, v->key, &out);
        if (how == SELECT_NO || (project && select_is_refused(v->key)))
            continue;
        struct toml_value *part = how == SELECT_WHOLE || v->type != TOML_TABLE
                                      ? select_copy(a, v)
                                      : select_table(a, v, paths, &out, depth + 1, false);
        if (part == NULL)
            return NULL;
        select_append(result, part);
    }
    return result;
}

const struct toml_value *envconf_select(struct arena *a, const struct toml_value *table,
                                        const struct envconf_paths *paths, bool project) {
    struct select_set all = {{0}};
    for (size_t i = 0; i < paths->count; i++)
        all.bits[i / 64] |= UINT64_C(1) << (i % 64);
    return select_table(a, table, paths, &all, 0, project);
}
