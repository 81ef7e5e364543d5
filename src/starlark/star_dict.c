#include "starlark/star_internal.h"

#define DICT_ENTRIES_MAX (1u << 24)

struct star_value *star_dict_new(struct star *s) {
    struct star_value *v = star_value_new(s, STAR_DICT);
    if (v == NULL)
        return NULL;
    v->dict = star_alloc(s, sizeof *v->dict);
    return v->dict == NULL ? NULL : v;
}

static void dict_index(struct star_dict *d, size_t i) {
    size_t at = d->entries[i].hash & (d->slots - 1);
    while (d->index[at] != 0)
        at = (at + 1) & (d->slots - 1);
    d->index[at] = (uint32_t)i + 1;
}

static void dict_index_all(struct star_dict *d) {
    if (d->slots > 0)
        memset(d->index, 0, d->slots * sizeof *d->index);
    for (size_t i = 0; i < d->n; i++)
        dict_index(d, i);
}

static bool dict_grow(struct star *s, struct star_dict *d) {
    size_t cap = MAX((size_t)8, d->cap * 2);
    if (cap > DICT_ENTRIES_MAX)
        return star_fail(s, "a dictionary has too many entries");
    struct star_entry *entries = star_calloc(s, cap, sizeof *entries);
    uint32_t *index = star_calloc(s, cap * 2, sizeof *index);
    if (entries == NULL || index == NULL)
        return false;
    if (d->n > 0)
        memcpy(entries, d->entries, d->n * sizeof *entries);
    d->entries = entries;
    d->index = index;
    d->cap = cap;
    d->slots = cap * 2;
    dict_index_all(d);
    return true;
}

static struct star_entry *dict_look(struct star *s, const struct star_dict *d,
                                    const struct star_value *key, uint64_t hash) {
    for (size_t at = hash & (d->slots - 1); d->slots > 0 && d->index[at] != 0;
         at = (at + 1) & (d->slots - 1)) {
        struct star_entry *e = &d->entries[d->index[at] - 1];
        if (!star_work(s, 1))
            return NULL;
        if (e->hash == hash && star_value_equal(s, e->key, key) == 1)
            return e;
    }
    return NULL;
}

struct star_entry *star_dict_find(struct star *s, const struct star_dict *d,
                                  const struct star_value *key) {
    uint64_t hash;
    return star_value_hash(s, key, &hash) ? dict_look(s, d, key, hash) : NULL;
}

bool star_dict_set(struct star *s, struct star_dict *d, struct star_value *key,
                   struct star_value *value) {
    uint64_t hash;
    if (!star_value_may_change(s, d->iterating) || !star_value_hash(s, key, &hash))
        return false;
    struct star_entry *e = dict_look(s, d, key, hash);
    if (s->failed)
        return false;
    if (e != NULL) {
        e->value = value;
        return true;
    }
    if (d->n == d->cap && !dict_grow(s, d))
        return false;
    d->entries[d->n] = (struct star_entry){key, value, hash};
    dict_index(d, d->n++);
    return true;
}

void star_dict_remove(struct star_dict *d, struct star_entry *e) {
    size_t i = (size_t)(e - d->entries);
    memmove(e, e + 1, (d->n - i - 1) * sizeof *e);
    d->n--;
    dict_index_all(d);
}
