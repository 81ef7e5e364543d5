#include "sandbox/policy/profile.h"

#include "json/jsondec.h"
#include "sandbox/policy/profile_internal.h"

#include <errno.h>

/* Whether an entry depends on the cwd or the workspace roots. */
static bool entry_is_dynamic(const struct profile_entry *entry) {
    return entry->target == PROFILE_PROJECT_ROOTS ||
           (entry->target == PROFILE_GLOB && (entry->text.n == 0 || entry->text.p[0] != '/'));
}

/* Whether an entry by itself neither grants nor denies anything. */
static bool entry_is_idle(const struct profile_entry *entry) {
    return entry->target == PROFILE_MINIMAL || entry->target == PROFILE_UNKNOWN;
}

/* The subject of an entry, as far as the entry alone tells: a kind and a text. */
struct profile_key {
    enum profile_target target;
    struct str text;
    bool write;
};

static struct profile_key entry_key(const struct profile_entry *entry) {
    struct profile_key key = {entry->target, entry->text, entry->access == PLAN_WRITE};
    if (entry->target == PROFILE_ROOT || entry->target == PROFILE_SLASH_TMP) {
        key.text = str_of(entry->target == PROFILE_ROOT ? "/" : "/tmp");
        key.target = PROFILE_PATH;
    } else if (entry->target == PROFILE_PATH) {
        key.text = str_of(entry->path.native != NULL ? entry->path.native : entry->path.foreign);
    }
    return key;
}

/* By subject; of one subject, writes first. */
static int key_compare(const void *x, const void *y) {
    const struct profile_key *a = x, *b = y;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    size_t n = MIN(a->text.n, b->text.n);
    int r = n > 0 ? memcmp(a->text.p, b->text.p, n) : 0;
    if (r != 0)
        return r;
    if (a->text.n != b->text.n)
        return a->text.n < b->text.n ? -1 : 1;
    return (int)b->write - (int)a->write;
}

/* Whether every readable subject is also writable. Sorts the keys. */
static bool keys_are_writable(struct profile_key *keys, size_t count) {
    qsort(keys, count, sizeof *keys, key_compare);
    bool written = false;
    for (size_t i = 0; i < count; i++) {
        bool same =
            i > 0 && keys[i].target == keys[i - 1].target && str_eq(keys[i].text, keys[i - 1].text);
        written = keys[i].write || (same && written);
        if (!written)
            return false;
    }
    return true;
}

/* Whether no entry restricts a write entry for the root: 0, 1 or -ENOMEM. */
static int profile_is_not_narrowed(const struct profile *p, struct arena *a) {
    struct profile_key *keys = arena_calloc(a, p->entry_count, sizeof *keys);
    size_t count = 0;
    if (keys == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < p->entry_count; i++) {
        const struct profile_entry *entry = &p->entries[i];
        if (entry_is_idle(entry) || (entry->target == PROFILE_ROOT && entry->access == PLAN_READ))
            continue;
        bool odd =
            entry->target == PROFILE_PROJECT_ROOTS && profile_plan_subpath_is_odd(entry->text);
        if (entry->access == PLAN_DENY ||
            ((odd || entry->target == PROFILE_GLOB) && entry->access == PLAN_READ))
            return 0;
        keys[count++] = entry_key(entry);
    }
    return keys_are_writable(keys, count);
}

/* Derives the flags that depend on the entries alone. */
static int profile_conclude(struct profile *p, struct arena *a) {
    bool root_read = false, root_write = false, denies = false;
    for (size_t i = 0; i < p->entry_count; i++) {
        const struct profile_entry *entry = &p->entries[i];
        p->dynamic |= entry_is_dynamic(entry);
        p->foreign |= entry->path.foreign != NULL;
        denies |= entry->access == PLAN_DENY;
        root_write |= entry->target == PROFILE_ROOT && entry->access == PLAN_WRITE;
        root_read |= entry->target == PROFILE_ROOT && entry->access == PLAN_READ;
    }
    int r = root_write ? profile_is_not_narrowed(p, a) : 0;
    p->full_write = p->kind == PROFILE_OPEN || r > 0;
    p->full_read = p->full_write || ((root_read || root_write) && !denies);
    return MIN(r, 0);
}

int profile_decode(const struct json_node *v, enum profile_call call, struct arena *a,
                   struct profile **out, struct err *e) {
    *out = NULL;
    if (v == NULL || v->type == JSON_NULL)
        return 0;
    if (v->type != JSON_OBJECT)
        return jsondec_type_error(v, "struct WireFileSystemSandboxContext", e);
    struct profile *p = arena_alloc(a, sizeof *p);
    struct profile_decoder d = {.p = p, .a = a, .e = e};
    int r = -ENOMEM;
    if (p != NULL)
        r = profile_legacy_is(v) ? profile_legacy(&d, v) : profile_decode_wire(&d, v);
    if (r == 0)
        r = profile_conclude(p, a);
    if (r == -ENOMEM)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    if (r < 0)
        return r;
    if (call == PROFILE_FILES && p->dynamic && p->cwd.native == NULL && p->cwd.foreign == NULL)
        return err_set(e, ERR_INVALID_PARAMS,
                       "file system sandbox context with dynamic permissions requires cwd");
    *out = p;
    return 0;
}

enum profile_need profile_files_need(const struct profile *p, bool write) {
    if (p == NULL)
        return PROFILE_DIRECT;
    if (p->foreign)
        return PROFILE_CONFINED;
    return (write ? p->full_write : p->full_read) ? PROFILE_DIRECT : PROFILE_CONFINED;
}

enum profile_need profile_process_need(const struct profile *p) {
    if (p == NULL)
        return PROFILE_DIRECT;
    bool foreign = p->foreign || p->cwd.foreign != NULL;
    for (size_t i = 0; i < p->root_count; i++)
        foreign |= p->roots[i].foreign != NULL;
    return p->full_write && p->network && !foreign && !p->mxc ? PROFILE_DIRECT : PROFILE_CONFINED;
}
