#include "client/xs_entries.h"

#include "base/arena.h"
#include "client/fsanswer.h"

#include <errno.h>

#define MEMORY_MAX (256u << 20) /* for the names of an answer of CLIENT_MESSAGE_MAX */

struct collected {
    struct xs_entries public; /* first */
    struct arena arena;
    struct xs_entry *entries;
    struct xs_walk_error *errors;
    size_t cap_entries, cap_errors;
};

static int add_error(struct collected *c, const struct fsanswer_item *i) {
    c->errors = c->public.n_errors < c->cap_errors
                    ? c->errors
                    : arena_grow(&c->arena, c->errors, c->public.n_errors, &c->cap_errors, 16,
                                 sizeof(*c->errors));
    struct xs_walk_error e = {.path = arena_strdup(&c->arena, str_of(i->name)),
                              .text = arena_strdup(&c->arena, str_of(i->message))};
    if (c->errors == NULL || e.path == NULL || e.text == NULL)
        return -ENOMEM;
    c->errors[c->public.n_errors++] = e;
    return 0;
}

static int add(void *user, const struct fsanswer_item *i) {
    static const int kinds[] = {
        [FSANSWER_OTHER] = XS_KIND_OTHER,
        [FSANSWER_FILE] = XS_KIND_FILE,
        [FSANSWER_DIRECTORY] = XS_KIND_DIRECTORY,
        [FSANSWER_LINK] = XS_KIND_LINK,
    };
    struct collected *c = user;
    if (i->message != NULL)
        return add_error(c, i);
    if (c->public.n == c->cap_entries)
        c->entries = arena_grow(&c->arena, c->entries, c->public.n, &c->cap_entries, 64,
                                sizeof(*c->entries));
    struct xs_entry e = {.name = arena_strdup(&c->arena, str_of(i->name)),
                         .name_len = strlen(i->name),
                         .kind = kinds[i->kind]};
    if (i->target != NULL)
        e.target = arena_strdup(&c->arena, str_of(i->target));
    if (c->entries == NULL || e.name == NULL || (i->target != NULL && e.target == NULL))
        return -ENOMEM;
    c->entries[c->public.n++] = e;
    return 0;
}

int xs_entries_new(const struct json_node *result, const char *root, struct xs_entries **out) {
    struct collected *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return XS_ENOMEM;
    c->arena = ARENA_INIT(MEMORY_MAX);
    bool truncated = false;
    int r = root != NULL ? fsanswer_walk(result, root, add, c, &truncated)
                         : fsanswer_list(result, add, c);
    c->public.entries = c->entries;
    c->public.errors = c->errors;
    c->public.truncated = truncated;
    if (r < 0) {
        xs_entries_free(&c->public);
        return r == -ENOMEM ? XS_ENOMEM : XS_EPROTO;
    }
    *out = &c->public;
    return 0;
}

void xs_entries_free(struct xs_entries *e) {
    if (e == NULL)
        return;
    struct collected *c = container_of(e, struct collected, public);
    arena_fini(&c->arena);
    free(c);
}
