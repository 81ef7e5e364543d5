#include "sandbox/policy/profile_internal.h"

#include "json/jsondec.h"

#include <errno.h>

/* Shapes of April 2026 and earlier: permissions without a tag, and contexts with a `sandboxPolicy`.
 * Their only workspace root is the cwd. */

static int legacy_add(struct profile_decoder *d, enum profile_target target,
                      enum plan_access access, const char *subpath) {
    return profile_decode_add(
        d, (struct profile_entry){.target = target, .access = access, .text = str_of(subpath)});
}

/* One entry per path of a list. */
static int legacy_list(struct profile_decoder *d, const struct json_node *v,
                       enum plan_access access) {
    if (v->type != JSON_ARRAY)
        return profile_decode_type_error(d, v, "a sequence");
    json_for_each(item, v) {
        struct profile_entry entry = {.target = PROFILE_PATH, .access = access};
        int r = profile_decode_path(d, item, &entry.path);
        if (r == 0)
            r = profile_decode_add(d, entry);
        if (r < 0)
            return r;
    }
    return 0;
}

static int legacy_read(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    return legacy_list(d, v, PLAN_READ);
}

static int legacy_write(struct profile_decoder *d, const struct json_node *v, void *out) {
    (void)out;
    return legacy_list(d, v, PLAN_WRITE);
}

static int untagged_files(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const struct profile_member members[] = {
        {"entries", false, true, profile_decode_entries},
        {"glob_scan_max_depth", false, true, profile_decode_depth},
        {"read", false, true, legacy_read},
        {"write", false, true, legacy_write}};
    if (v->type != JSON_OBJECT)
        return profile_decode_type_error(d, v, "struct FileSystemPermissions");
    return profile_decode_members(d, v, members, ARRAY_LEN(members), out);
}

static int untagged_enabled(struct profile_decoder *d, const struct json_node *v, void *out) {
    bool enabled = false;
    int r = profile_decode_bool(d, v, &enabled);
    ((struct profile *)out)->network |= enabled;
    return r;
}

static int untagged_network(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const struct profile_member members[] = {{"enabled", false, true, untagged_enabled}};
    if (v->type != JSON_OBJECT)
        return profile_decode_type_error(d, v, "struct NetworkPermissions");
    return profile_decode_members(d, v, members, ARRAY_LEN(members), out);
}

static const struct profile_member untagged_members[] = {
    {"network", false, true, untagged_network}, {"file_system", false, true, untagged_files}};

/* Absent, null, or an object without a tag. */
static bool legacy_is_plain(const struct json_node *v) {
    return v == NULL || v->type == JSON_NULL ||
           (v->type == JSON_OBJECT && json_get(v, "type") == NULL);
}

bool profile_legacy_is_untagged(const struct json_node *permissions) {
    if (permissions->type != JSON_OBJECT || json_get(permissions, "type") != NULL)
        return false;
    const struct json_node *network = json_get(permissions, "network");
    const struct json_node *files = json_get(permissions, "file_system");
    return (network != NULL || files != NULL) && legacy_is_plain(network) && legacy_is_plain(files);
}

int profile_legacy_untagged(struct profile_decoder *d, const struct json_node *v) {
    d->p->kind = PROFILE_RESTRICTED;
    d->p->cwd_is_root = true;
    return profile_decode_members(d, v, untagged_members, ARRAY_LEN(untagged_members), d->p);
}

/* The members that all old policies share. */
struct legacy_policy {
    bool network, no_tmpdir, no_slash_tmp;
    const struct json_node *access; /* not NULL: lists the readable paths */
};

static int policy_network(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_bool(d, v, &((struct legacy_policy *)out)->network);
}

static int policy_external_network(struct profile_decoder *d, const struct json_node *v,
                                   void *out) {
    return profile_decode_network(d, v, &((struct legacy_policy *)out)->network);
}

static int policy_no_tmpdir(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_bool(d, v, &((struct legacy_policy *)out)->no_tmpdir);
}

static int policy_no_slash_tmp(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_bool(d, v, &((struct legacy_policy *)out)->no_slash_tmp);
}

static int access_defaults(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_bool(d, v, out);
}

/* The readable paths: all, or a list plus, unless denied, the platform's directories. */
static int policy_access(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const types[] = {"restricted", "full-access"};
    static const struct profile_member members[] = {
        {"include_platform_defaults", false, false, access_defaults},
        {"readable_roots", false, false, legacy_read}};
    ((struct legacy_policy *)out)->access = v;
    bool defaults = true;
    int type = profile_decode_tag(d, v, "type", "ReadOnlyAccess", types, ARRAY_LEN(types));
    if (type < 0)
        return type;
    if (type == 1)
        return legacy_add(d, PROFILE_ROOT, PLAN_READ, NULL);
    int r = profile_decode_members(d, v, members, ARRAY_LEN(members), &defaults);
    return r < 0 || !defaults ? r : legacy_add(d, PROFILE_MINIMAL, PLAN_READ, NULL);
}

static int policy_read_only(struct profile_decoder *d, const struct json_node *v,
                            struct legacy_policy *policy) {
    static const struct profile_member members[] = {
        {"network_access", false, false, policy_network}, {"access", false, false, policy_access}};
    d->p->kind = PROFILE_RESTRICTED;
    int r = profile_decode_members(d, v, members, ARRAY_LEN(members), policy);
    if (r == 0 && policy->access == NULL)
        r = legacy_add(d, PROFILE_ROOT, PLAN_READ, NULL);
    return r;
}

static int policy_workspace(struct profile_decoder *d, const struct json_node *v,
                            struct legacy_policy *policy) {
    static const struct profile_member members[] = {
        {"writable_roots", false, false, legacy_write},
        {"read_only_access", false, false, policy_access},
        {"network_access", false, false, policy_network},
        {"exclude_tmpdir_env_var", false, false, policy_no_tmpdir},
        {"exclude_slash_tmp", false, false, policy_no_slash_tmp}};
    d->p->kind = PROFILE_RESTRICTED;
    int r = profile_decode_members(d, v, members, ARRAY_LEN(members), policy);
    if (r == 0 && policy->access == NULL)
        r = legacy_add(d, PROFILE_ROOT, PLAN_READ, NULL);
    if (r == 0)
        r = legacy_add(d, PROFILE_PROJECT_ROOTS, PLAN_WRITE, NULL);
    if (r == 0 && !policy->no_slash_tmp)
        r = legacy_add(d, PROFILE_SLASH_TMP, PLAN_WRITE, NULL);
    if (r == 0 && !policy->no_tmpdir)
        r = legacy_add(d, PROFILE_TMPDIR, PLAN_WRITE, NULL);
    return r;
}

static int legacy_policy(struct profile_decoder *d, const struct json_node *v, void *out) {
    enum { FULL_ACCESS, READ_ONLY, EXTERNAL, WORKSPACE };
    static const char *const types[] = {"danger-full-access", "read-only", "external-sandbox",
                                        "workspace-write"};
    static const struct profile_member external[] = {
        {"network_access", false, false, policy_external_network}};
    (void)out;
    struct legacy_policy policy = {0};
    int type = profile_decode_tag(d, v, "type", "SandboxPolicy", types, ARRAY_LEN(types));
    if (type < 0)
        return type;
    int r = 0;
    if (type == READ_ONLY)
        r = policy_read_only(d, v, &policy);
    else if (type == WORKSPACE)
        r = policy_workspace(d, v, &policy);
    else if (type == EXTERNAL)
        r = profile_decode_members(d, v, external, ARRAY_LEN(external), &policy);
    d->p->network = policy.network || type == FULL_ACCESS;
    return r;
}

static int files_kind(struct profile_decoder *d, const struct json_node *v, void *out) {
    static const char *const kinds[] = {"restricted", "unrestricted", "external-sandbox"};
    int i = profile_decode_variant(d, v, kinds, ARRAY_LEN(kinds));
    if (i > 0)
        ((struct profile *)out)->kind = PROFILE_OPEN;
    return MIN(i, 0);
}

/* `fileSystemSandboxPolicy` replaces the file rules of `sandboxPolicy`. */
static int legacy_files(struct profile_decoder *d, const struct json_node *v) {
    static const struct profile_member members[] = {
        {"kind", false, false, files_kind},
        {"glob_scan_max_depth", false, true, profile_decode_depth},
        {"entries", false, false, profile_decode_entries}};
    if (v->type != JSON_OBJECT)
        return profile_decode_type_error(d, v, "struct FileSystemSandboxPolicy");
    d->p->kind = PROFILE_RESTRICTED;
    d->p->entry_count = 0;
    return profile_decode_members(d, v, members, ARRAY_LEN(members), d->p);
}

static int legacy_cwd(struct profile_decoder *d, const struct json_node *v, void *out) {
    return profile_decode_path(d, v, &((struct profile *)out)->cwd);
}

static const struct json_node *legacy_member(const struct json_node *v, const char *name) {
    const struct json_node *member = json_get(v, name);
    return member != NULL && member->type == JSON_NULL ? NULL : member;
}

bool profile_legacy_is(const struct json_node *v) {
    return json_get(v, "permissions") == NULL &&
           (json_get(v, "sandboxPolicy") != NULL || json_get(v, "fileSystemSandboxPolicy") != NULL);
}

int profile_legacy(struct profile_decoder *d, const struct json_node *v) {
    static const struct profile_member members[] = {
        {"sandboxPolicy", true, false, legacy_policy},
        {"sandboxPolicyCwd", false, true, legacy_cwd},
        {"windowsSandboxLevel", false, false, profile_decode_level},
        {"useLegacyLandlock", false, false, profile_decode_landlock}};
    d->p->cwd_is_root = true;
    int r = profile_decode_members(d, v, members, ARRAY_LEN(members), d->p);
    const struct json_node *files = legacy_member(v, "fileSystemSandboxPolicy");
    if (r == 0 && files != NULL)
        r = legacy_files(d, files);
    /* Grants of the user on top; no effect if everything is granted already. */
    const struct json_node *more = legacy_member(v, "additionalPermissions");
    if (r == 0 && more != NULL)
        r = more->type == JSON_OBJECT
                ? profile_decode_members(d, more, untagged_members, ARRAY_LEN(untagged_members),
                                         d->p)
                : profile_decode_type_error(d, more, "struct PermissionProfile");
    return r;
}
