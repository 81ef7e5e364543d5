#include "sandbox/policy/profile_internal.h"

#include "base/uri.h"
#include "json/jsondec.h"

#include <errno.h>
#include <stdio.h>

int profile_decode_type_error(struct profile_decoder *d, const struct json_node *v,
                              const char *expected) {
    if (!d->buffered || v->type != JSON_NUMBER)
        return jsondec_type_error(v, expected, d->e);
    bool integer = memchr(v->p, '.', v->n) == NULL && memchr(v->p, 'e', v->n) == NULL &&
                   memchr(v->p, 'E', v->n) == NULL;
    return err_set(d->e, ERR_INVALID_PARAMS, "invalid type: %s `%.*s`, expected %s",
                   integer ? "integer" : "floating point", (int)MIN(v->n, 64u), v->p, expected);
}

int profile_decode_variant(struct profile_decoder *d, const struct json_node *v,
                           const char *const *variants, size_t count) {
    if (v->type == JSON_NUMBER)
        return profile_decode_type_error(d, v, "string or map");
    return jsondec_variant(v, variants, count, d->e);
}

int profile_decode_tag(struct profile_decoder *d, const struct json_node *v, const char *tag,
                       const char *name, const char *const *variants, size_t count) {
    if (v->type != JSON_OBJECT) {
        char expected[96];
        snprintf(expected, sizeof expected, "internally tagged enum %s", name);
        return profile_decode_type_error(d, v, expected);
    }
    const struct json_node *value = json_get(v, tag);
    if (value == NULL)
        return err_set(d->e, ERR_INVALID_PARAMS, "missing field `%s`", tag);
    if (value->type != JSON_STRING)
        return profile_decode_type_error(d, value, "variant identifier");
    return jsondec_variant(value, variants, count, d->e);
}

static const struct profile_member *profile_find(const struct profile_member *table, size_t count,
                                                 struct str key) {
    for (size_t i = 0; i < count; i++) {
        if (str_eqz(key, table[i].name))
            return &table[i];
    }
    return NULL;
}

int profile_decode_members(struct profile_decoder *d, const struct json_node *v,
                           const struct profile_member *table, size_t count, void *out) {
    json_for_each_member(k, v) {
        const struct profile_member *m = profile_find(table, count, json_str(k));
        if (m == NULL || (m->nullable && k[1].type == JSON_NULL))
            continue;
        int r = m->decode(d, k + 1, out);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].required && json_get(v, table[i].name) == NULL)
            return err_set(d->e, ERR_INVALID_PARAMS, "missing field `%s`", table[i].name);
    }
    return 0;
}

int profile_decode_text(struct profile_decoder *d, const struct json_node *v, void *out) {
    if (v->type != JSON_STRING)
        return profile_decode_type_error(d, v, "a string");
    *(struct str *)out = json_str(v);
    return 0;
}

int profile_decode_bool(struct profile_decoder *d, const struct json_node *v, void *out) {
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        return profile_decode_type_error(d, v, "a boolean");
    *(bool *)out = v->type == JSON_TRUE;
    return 0;
}

/* Counts n bytes of paths or patterns against the maximum. */
static int profile_count_text(struct profile_decoder *d, size_t n) {
    if (n > PROFILE_TEXT_MAX - d->text)
        return err_set(d->e, ERR_INVALID_PARAMS, "the sandbox has more than %u bytes of paths",
                       PROFILE_TEXT_MAX);
    d->text += n;
    return 0;
}

int profile_decode_path(struct profile_decoder *d, const struct json_node *v, void *out) {
    if (v->type != JSON_STRING)
        return profile_decode_type_error(d, v, "a string");
    _cleanup_err_ struct err why = ERR_INIT;
    _cleanup_free_ char *native = NULL;
    struct profile_path path = {0};
    int r = uri_to_path(json_str(v), &native, &why);
    if (r < 0 && r != -EXDEV) {
        (void)err_move(d->e, &why);
        return r;
    }
    bool foreign = r == -EXDEV;
    const char *text = foreign ? err_msg(&why) : native;
    r = profile_count_text(d, strlen(text));
    if (r < 0)
        return r;
    text = arena_strdup(d->a, str_of(text));
    if (text == NULL)
        return -ENOMEM;
    if (!foreign)
        path.native = text;
    else
        path = (struct profile_path){.foreign = text, .uri = {text + why.subject, why.subject_len}};
    *(struct profile_path *)out = path;
    return 0;
}

struct profile_paths {
    struct profile_path *items;
    size_t count;
};

static int profile_get_paths(struct profile_decoder *d, const struct json_node *v, void *out) {
    struct profile_paths *list = out;
    if (v->type != JSON_ARRAY)
        return profile_decode_type_error(d, v, "a sequence");
    if (v->count > PROFILE_ROOTS_MAX)
        return err_set(d->e, ERR_INVALID_PARAMS, "the sandbox has more than %d paths in a list",
                       PROFILE_ROOTS_MAX);
    list->items = arena_calloc(d->a, v->count, sizeof *list->items);
    list->count = 0;
    if (list->items == NULL)
        return -ENOMEM;
    json_for_each(item, v) {
        int r = profile_decode_path(d, item, &list->items[list->count++]);
        if (r < 0)
            return r;
    }
    return 0;
}

int profile_decode_add(struct profile_decoder *d, struct profile_entry entry) {
    struct profile *p = d->p;
    if (p->entry_count == PLAN_ENTRIES_MAX)
        return err_set(d->e, ERR_INVALID_PARAMS, "the sandbox has more than %d entries",
                       PLAN_ENTRIES_MAX);
    struct profile_entry *entries =
        arena_grow(d->a, p->entries, p->entry_count, &p->entry_cap, 16, sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    p->entries = entries;
    if (str_has_nul(entry.text))
        return err_set(d->e, ERR_INVALID_PARAMS, "path contains a NUL byte");
    int r = profile_count_text(d, entry.text.n);
    if (r < 0)
        return r;
    const char *text = arena_strdup(d->a, entry.text);
    if (text == NULL)
        return -ENOMEM;
    entry.text.p = text;
    p->entries[p->entry_count++] = entry;
    return 0;
}

int profile_decode_depth(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    uint64_t n;
    int r = v->type == JSON_NUMBER ? json_u64(v, &n) : -EINVAL;
    if (r == -EINVAL)
        return profile_decode_type_error(d, v, "a nonzero usize");
    if (r < 0 || n == 0)
        return err_set(d->e, ERR_INVALID_PARAMS,
                       "invalid value: integer `%.*s`, expected a nonzero usize",
                       (int)MIN(v->n, 64u), v->p);
    d->p->glob_depth = (uint32_t)MIN(n, UINT32_MAX);
    return 0;
}

/* The members of a path or a special path; the tag decides which of them count. */
struct profile_where {
    struct profile_path path;
    struct str pattern, subpath, token;
    enum profile_target special;
};

static int where_path(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_path(d, v, &((struct profile_where *)out)->path);
}

static int where_pattern(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_text(d, v, &((struct profile_where *)out)->pattern);
}

static int where_subpath(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_text(d, v, &((struct profile_where *)out)->subpath);
}

static int where_token(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_text(d, v, &((struct profile_where *)out)->token);
}

static int where_special(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const kinds[] = {"root",          "minimal", "current_working_directory",
                                        "project_roots", "tmpdir",  "slash_tmp",
                                        "unknown"};
    static const enum profile_target targets[] = {
        PROFILE_ROOT,   PROFILE_MINIMAL,   PROFILE_PROJECT_ROOTS, PROFILE_PROJECT_ROOTS,
        PROFILE_TMPDIR, PROFILE_SLASH_TMP, PROFILE_UNKNOWN};
    static const struct profile_member roots[] = {{"subpath", false, true, where_subpath}};
    static const struct profile_member unknown[] = {{"path", true, false, where_token},
                                                    {"subpath", false, true, where_subpath}};
    struct profile_where *where = out;
    int i = profile_decode_tag(d, v, "kind", "FileSystemSpecialPath", kinds, ARRAY_LEN(kinds));
    if (i < 0)
        return i;
    where->special = targets[i];
    if (where->special == PROFILE_PROJECT_ROOTS)
        return profile_decode_members(d, v, roots, ARRAY_LEN(roots), where);
    if (where->special == PROFILE_UNKNOWN)
        return profile_decode_members(d, v, unknown, ARRAY_LEN(unknown), where);
    return 0;
}

static int entry_path(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const types[] = {"path", "glob_pattern", "special"};
    static const struct profile_member members[] = {{"path", true, false, where_path},
                                                    {"pattern", true, false, where_pattern},
                                                    {"value", true, false, where_special}};
    struct profile_entry *entry = out;
    struct profile_where where = {0};
    int type = profile_decode_tag(d, v, "type", "ExecFileSystemPath", types, ARRAY_LEN(types));
    if (type < 0)
        return type;
    int r = profile_decode_members(d, v, &members[type], 1, &where);
    if (r < 0)
        return r;
    entry->target = type == 0 ? PROFILE_PATH : type == 1 ? PROFILE_GLOB : where.special;
    entry->path = where.path;
    if (entry->target == PROFILE_GLOB)
        entry->text = where.pattern;
    else if (entry->target == PROFILE_PROJECT_ROOTS)
        entry->text = where.subpath;
    return 0;
}

static int entry_access(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const names[] = {"read", "write", "deny", "none"};
    static const enum plan_access values[] = {PLAN_READ, PLAN_WRITE, PLAN_DENY, PLAN_DENY};
    int i = profile_decode_variant(d, v, names, ARRAY_LEN(names));
    if (i >= 0)
        ((struct profile_entry *)out)->access = values[i];
    return MIN(i, 0);
}

static int entry_missing(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    static const char *const names[] = {"skip"};
    return MIN(profile_decode_variant(d, v, names, ARRAY_LEN(names)), 0);
}

int profile_decode_entries(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    static const struct profile_member members[] = {
        {"path", true, false, entry_path},
        {"access", true, false, entry_access},
        {"missing_path_behavior", false, true, entry_missing}};
    if (v->type != JSON_ARRAY)
        return profile_decode_type_error(d, v, "a sequence");
    json_for_each(item, v) {
        struct profile_entry entry = {0};
        if (item->type != JSON_OBJECT)
            return profile_decode_type_error(d, item, "struct ExecFileSystemSandboxEntry");
        int r = profile_decode_members(d, item, members, ARRAY_LEN(members), &entry);
        if (r == 0)
            r = profile_decode_add(d, entry);
        if (r < 0)
            return r;
    }
    return 0;
}

int profile_decode_network(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const names[] = {"restricted", "enabled"};
    int i = profile_decode_variant(d, v, names, ARRAY_LEN(names));
    if (i >= 0)
        *(bool *)out = i == 1;
    return MIN(i, 0);
}

static int managed_network(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_network(d, v, &((struct profile *)out)->network);
}

static int managed_files(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const types[] = {"restricted", "unrestricted"};
    static const struct profile_member members[] = {
        {"entries", true, false, profile_decode_entries},
        {"glob_scan_max_depth", false, true, profile_decode_depth}};
    int type = profile_decode_tag(d, v, "type", "ExecManagedFileSystemPermissions", types,
                                  ARRAY_LEN(types));
    if (type < 0)
        return type;
    if (type == 1)
        return 0;
    ((struct profile *)out)->kind = PROFILE_RESTRICTED;
    return profile_decode_members(d, v, members, ARRAY_LEN(members), out);
}

/* The tagged form of `permissions`. */
static int profile_tagged(struct profile_decoder *d, const struct json_node *v) {
    enum { MANAGED, DISABLED, EXTERNAL };
    static const char *const types[] = {"managed", "disabled", "external"};
    static const struct profile_member members[] = {{"file_system", true, false, managed_files},
                                                    {"network", true, false, managed_network}};
    d->buffered = v->type != JSON_OBJECT;
    int type = profile_decode_tag(d, v, "type", "ExecPermissionProfile", types, ARRAY_LEN(types));
    d->buffered = true;
    if (type == MANAGED)
        return profile_decode_members(d, v, members, ARRAY_LEN(members), d->p);
    if (type == EXTERNAL)
        return profile_decode_members(d, v, &members[1], 1, d->p);
    if (type == DISABLED)
        d->p->network = true;
    return MIN(type, 0);
}

/* The members of a context, before policyContext overrides some of them. */
struct profile_wire_context {
    struct profile_path cwd, policy_cwd;
    struct profile_paths roots, policy_roots;
    bool policy_context, has_roots;
};

static int wire_permissions(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    int r = profile_legacy_is_untagged(v) ? profile_legacy_untagged(d, v) : profile_tagged(d, v);
    d->buffered = false;
    return r;
}

static int wire_override(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    static const char *const names[] = {"noOverride", "escalatedSandboxWithRestrictions",
                                        "bypassSandboxFirstAttempt"};
    return MIN(profile_decode_variant(d, v, names, ARRAY_LEN(names)), 0);
}

static int wire_cwd(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_path(d, v, &((struct profile_wire_context *)out)->cwd);
}

static int wire_roots(struct profile_decoder *d, const struct json_node *v, void *out) {
    ((struct profile_wire_context *)out)->has_roots = true;
    return profile_get_paths(d, v, &((struct profile_wire_context *)out)->roots);
}

static int wire_policy_cwd(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_path(d, v, &((struct profile_wire_context *)out)->policy_cwd);
}

static int wire_policy_roots(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_get_paths(d, v, &((struct profile_wire_context *)out)->policy_roots);
}

static int wire_policy(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const struct profile_member members[] = {
        {"cwd", false, true, wire_policy_cwd}, {"workspaceRoots", false, false, wire_policy_roots}};
    if (v->type != JSON_OBJECT)
        return profile_decode_type_error(d, v, "struct WireFileSystemPolicyContext");
    ((struct profile_wire_context *)out)->policy_context = true;
    return profile_decode_members(d, v, members, ARRAY_LEN(members), out);
}

/* Checked for its shape only: it has no effect here. */
static int wire_home(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    struct profile_path ignored;
    return profile_decode_path(d, v, &ignored);
}

static int wire_temporary(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    struct profile_paths ignored;
    return profile_get_paths(d, v, &ignored);
}

int profile_decode_level(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    static const char *const names[] = {"disabled", "restricted-token", "elevated", "mxc"};
    int i = profile_decode_variant(d, v, names, ARRAY_LEN(names));
    d->p->mxc = i == 3;
    return MIN(i, 0);
}

static int wire_proxy_mode(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    static const char *const names[] = {"reconcile", "preserve"};
    return MIN(profile_decode_variant(d, v, names, ARRAY_LEN(names)), 0);
}

int profile_decode_landlock(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    bool ignored;
    return profile_decode_bool(d, v, &ignored);
}

int profile_decode_wire(struct profile_decoder *d, const struct json_node *v) {
    static const struct profile_member members[] = {
        {"permissions", true, false, wire_permissions},
        {"sandboxOverride", false, false, wire_override},
        {"cwd", false, true, wire_cwd},
        {"policyContext", false, true, wire_policy},
        {"workspaceRoots", false, false, wire_roots},
        {"userHomeDir", false, true, wire_home},
        {"temporaryDirectories", false, true, wire_temporary},
        {"windowsSandboxLevel", false, false, profile_decode_level},
        {"windowsSandboxProxySettingsMode", false, true, wire_proxy_mode},
        {"useLegacyLandlock", false, false, profile_decode_landlock}};
    struct profile_wire_context w = {0};
    int r = profile_decode_members(d, v, members, ARRAY_LEN(members), &w);
    if (r < 0)
        return r;
    struct profile_paths roots = w.policy_context ? w.policy_roots : w.roots;
    bool policy_cwd = w.policy_cwd.native != NULL || w.policy_cwd.foreign != NULL;
    d->p->cwd = policy_cwd ? w.policy_cwd : w.cwd;
    d->p->roots = roots.items;
    d->p->root_count = roots.count;
    d->p->cwd_is_root = d->p->cwd_is_root && !w.policy_context && !w.has_roots;
    return 0;
}
