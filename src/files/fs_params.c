#include "files/fs_params.h"

#include "base/uri.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>

#define FS_PERMISSIONS_MAX 07777

/* Whether it is a path at all, on this host or another. */
static int fs_check_path(const struct json_node *v, struct err *e) {
    _cleanup_free_ char *native = NULL;
    int r = uri_to_path(json_str(v), &native, e);
    if (r == 0 || (r == -EINVAL && e->code == ERR_INVALID_PARAMS) || r == -ENOMEM)
        return r;
    err_fini(e);
    *e = ERR_INIT;
    return 0;
}

static int fs_check_sandbox(const struct json_node *v, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile;
    return profile_decode(v, PROFILE_FILES, &a, &profile, e);
}

static int fs_check_base64(const struct json_node *v, struct err *e) {
    struct str ignored;
    return conn_message_base64(json_str(v), &ignored, e);
}

static const char *const fs_modes[] = {"read", "replace"};

static int fs_check_mode(const struct json_node *v, struct err *e) {
    return MIN(jsondec_variant(v, fs_modes, ARRAY_LEN(fs_modes), e), 0);
}

/* Fields that several methods have. */
#define FS_URI(member, wire) PARAM_CHECKED(fs_params, member, wire, JSONDEC_STR, fs_check_path)
#define FS_PATH FS_URI(path.text, "path")
#define FS_FOLLOW PARAM_OPT(fs_params, follow, "followSymlinks", JSONDEC_BOOL, JSONDEC_NULLABLE)
#define FS_SANDBOX                                                                                 \
    PARAM_OPT_CHECKED(fs_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE,               \
                      fs_check_sandbox)
#define FS_HANDLE PARAM(fs_params, handle_id, "handleId", JSONDEC_STR)
/* A handle keeps the policy that it was opened with: the object is not looked at. */
#define FS_HANDLE_SANDBOX                                                                          \
    PARAM_OPT(fs_params, handle_sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE)

static const struct jsondec_field read_file_fields[] = {
    FS_PATH,
    FS_FOLLOW,
    FS_SANDBOX,
    /* Extension. */
    PARAM_HAS(fs_params, max_bytes, has_max_bytes, "maxBytes", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct read_file_struct =
    PARAM_STRUCT("WireFsReadFileParams", read_file_fields);

static const struct jsondec_field write_file_fields[] = {
    FS_PATH,
    PARAM(fs_params, base64, "dataBase64", JSONDEC_STR),
    FS_FOLLOW,
    FS_SANDBOX,
    /* Extension. */
    PARAM_OPT(fs_params, atomic, "atomic", JSONDEC_BOOL, JSONDEC_NULLABLE),
};
static const struct jsondec_struct write_file_struct =
    PARAM_STRUCT("WireFsWriteFileParams", write_file_fields);

static const struct jsondec_field open_fields[] = {
    FS_HANDLE,
    FS_PATH,
    FS_SANDBOX,
    PARAM_OPT_CHECKED(fs_params, mode_node, "mode", JSONDEC_NODE, 0, fs_check_mode),
};
static const struct jsondec_struct open_struct = PARAM_STRUCT("WireFsOpenParams", open_fields);

static const struct jsondec_field read_block_fields[] = {
    FS_HANDLE,
    PARAM(fs_params, offset, "offset", JSONDEC_U64),
    PARAM(fs_params, len, "len", JSONDEC_USIZE),
    FS_HANDLE_SANDBOX,
};
static const struct jsondec_struct read_block_struct =
    PARAM_STRUCT("FsReadBlockParams", read_block_fields);

static const struct jsondec_field write_block_fields[] = {
    FS_HANDLE,
    PARAM(fs_params, offset, "offset", JSONDEC_U64),
    PARAM_CHECKED(fs_params, base64, "chunk", JSONDEC_STR, fs_check_base64),
    FS_HANDLE_SANDBOX,
};
static const struct jsondec_struct write_block_struct =
    PARAM_STRUCT("FsWriteBlockParams", write_block_fields);

static const struct jsondec_field close_fields[] = {FS_HANDLE, FS_HANDLE_SANDBOX};
static const struct jsondec_struct close_struct = PARAM_STRUCT("FsCloseParams", close_fields);

static const struct jsondec_field create_directory_fields[] = {
    FS_PATH,
    PARAM_OPT(fs_params, recursive, "recursive", JSONDEC_BOOL, JSONDEC_NULLABLE),
    FS_FOLLOW,
    FS_SANDBOX,
};
static const struct jsondec_struct create_directory_struct =
    PARAM_STRUCT("WireFsCreateDirectoryParams", create_directory_fields);

static const struct jsondec_field get_metadata_fields[] = {FS_PATH, FS_FOLLOW, FS_SANDBOX};
static const struct jsondec_struct get_metadata_struct =
    PARAM_STRUCT("WireFsGetMetadataParams", get_metadata_fields);

static const struct jsondec_field canonicalize_fields[] = {FS_PATH, FS_SANDBOX};
static const struct jsondec_struct canonicalize_struct =
    PARAM_STRUCT("WireFsCanonicalizeParams", canonicalize_fields);
static const struct jsondec_struct read_directory_struct =
    PARAM_STRUCT("WireFsReadDirectoryParams", canonicalize_fields);

static const struct jsondec_field walk_options_fields[] = {
    PARAM(fs_walk, max_depth, "maxDepth", JSONDEC_USIZE),
    PARAM(fs_walk, max_directories, "maxDirectories", JSONDEC_USIZE),
    PARAM(fs_walk, max_entries, "maxEntries", JSONDEC_USIZE),
    PARAM(fs_walk, follow_directory_links, "followDirectorySymlinks", JSONDEC_BOOL),
    PARAM_OPT(fs_walk, prune_hidden, "pruneHiddenDirectories", JSONDEC_BOOL, 0),
};
static const struct jsondec_struct walk_options_struct =
    PARAM_STRUCT("WalkOptions", walk_options_fields);
static const struct jsondec_field walk_fields[] = {
    FS_PATH,
    PARAM_SUB(fs_params, walk, "options", &walk_options_struct, JSONDEC_REQUIRED),
    FS_SANDBOX,
};
static const struct jsondec_struct walk_struct = PARAM_STRUCT("WireFsWalkParams", walk_fields);

static const struct jsondec_field remove_fields[] = {
    FS_PATH,
    PARAM_OPT(fs_params, recursive, "recursive", JSONDEC_BOOL, JSONDEC_NULLABLE),
    PARAM_OPT(fs_params, force, "force", JSONDEC_BOOL, JSONDEC_NULLABLE),
    FS_FOLLOW,
    FS_SANDBOX,
};
static const struct jsondec_struct remove_struct =
    PARAM_STRUCT("WireFsRemoveParams", remove_fields);

static const struct jsondec_field copy_fields[] = {
    FS_URI(path.text, "sourcePath"),
    FS_URI(destination.text, "destinationPath"),
    PARAM(fs_params, recursive, "recursive", JSONDEC_BOOL),
    FS_SANDBOX,
};
static const struct jsondec_struct copy_struct = PARAM_STRUCT("WireFsCopyParams", copy_fields);

/* Extensions. */

static const struct jsondec_field rename_fields[] = {
    FS_URI(path.text, "sourcePath"),
    FS_URI(destination.text, "destinationPath"),
    PARAM_OPT(fs_params, replace, "replace", JSONDEC_BOOL, JSONDEC_NULLABLE),
    FS_SANDBOX,
};
static const struct jsondec_struct rename_struct = PARAM_STRUCT("FsRenameParams", rename_fields);

static const struct jsondec_field set_permissions_fields[] = {
    FS_PATH,
    PARAM(fs_params, mode, "mode", JSONDEC_U64),
    FS_FOLLOW,
    FS_SANDBOX,
};
static const struct jsondec_struct set_permissions_struct =
    PARAM_STRUCT("FsSetPermissionsParams", set_permissions_fields);

/* Finds the native path. That this host cannot have it is said later (fs_params.why). */
static int fs_decode_path(struct fs_params *p, struct fs_path *path, struct err *e) {
    if (path->text.p == NULL)
        return 0;
    int r = uri_to_path(path->text, &path->native, e);
    if (r == 0 || (r == -EINVAL && e->code == ERR_INVALID_PARAMS) || r == -ENOMEM)
        return r;
    if (p->why.code == 0)
        p->why = *e;
    else
        err_fini(e);
    *e = ERR_INIT;
    return 0;
}

static int fs_params_decode(const struct jsondec_struct *s, const struct json_node *params,
                            void *out, struct err *e) {
    struct fs_params *p = out;
    *p = (struct fs_params){.arena = ARENA_INIT(PROFILE_ARENA_MAX)};
    p->follow = p->recursive = p->force = p->replace = true;
    int r = jsondec(s, params, p, e);
    if (r == 0)
        r = sandbox_members_check(params, s, p->path.text.p != NULL ? &p->sandbox : NULL, e);
    if (r < 0)
        return r;
    r = fs_decode_path(p, &p->path, e);
    if (r == 0)
        r = fs_decode_path(p, &p->destination, e);
    if (r == 0 && p->sandbox != NULL)
        r = profile_decode(p->sandbox, PROFILE_FILES, &p->arena, &p->profile, e);
    if (r < 0)
        jsondec_report_first(s, params, e);
    return r;
}

int fs_params_decode_data(struct fs_params *p, struct err *e) {
    return conn_message_base64(p->base64, &p->data, e);
}

int fs_params_keep_data(struct fs_params *p, const struct conn_message *m, struct err *e) {
    if (p->data.n == 0)
        return 0;
    if (conn_message_owns(m) && p->data.p >= m->p && p->data.p < m->p + m->n) {
        p->memory = conn_message_take(m);
        return 0;
    }
    p->memory = BUF_INIT(CONN_MSG_MAX);
    if (buf_put(&p->memory, p->data.p, p->data.n) < 0)
        return err_os(e, ERR_INTERNAL, ENOMEM);
    p->data.p = p->memory.p;
    return 0;
}

void fs_params_release(void *params) {
    struct fs_params *p = params;
    buf_fini(&p->memory);
    free(p->path.native);
    free(p->destination.native);
    buf_fini(&p->uri);
    err_fini(&p->why);
    arena_fini(&p->arena);
}

int fs_read_file_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&read_file_struct, params, out, e);
}

int fs_write_file_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&write_file_struct, params, out, e);
}

int fs_open_decode(const struct json_node *params, void *out, struct err *e) {
    int r = fs_params_decode(&open_struct, params, out, e);
    struct fs_params *p = out;
    if (r == 0 && p->mode_node != NULL)
        r = jsondec_variant(p->mode_node, fs_modes, ARRAY_LEN(fs_modes), e);
    p->replace = r == 1;
    return MIN(r, 0);
}

int fs_read_block_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&read_block_struct, params, out, e);
}

int fs_write_block_decode(const struct json_node *params, void *out, struct err *e) {
    int r = fs_params_decode(&write_block_struct, params, out, e);
    return r < 0 ? r : fs_params_decode_data(out, e);
}

int fs_close_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&close_struct, params, out, e);
}

int fs_create_directory_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&create_directory_struct, params, out, e);
}

int fs_get_metadata_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&get_metadata_struct, params, out, e);
}

int fs_canonicalize_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&canonicalize_struct, params, out, e);
}

int fs_read_directory_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&read_directory_struct, params, out, e);
}

int fs_walk_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&walk_struct, params, out, e);
}

int fs_remove_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&remove_struct, params, out, e);
}

int fs_copy_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&copy_struct, params, out, e);
}

int fs_rename_decode(const struct json_node *params, void *out, struct err *e) {
    return fs_params_decode(&rename_struct, params, out, e);
}

int fs_set_permissions_decode(const struct json_node *params, void *out, struct err *e) {
    int r = fs_params_decode(&set_permissions_struct, params, out, e);
    const struct fs_params *p = out;
    if (r == 0 && p->mode > FS_PERMISSIONS_MAX)
        r = err_set(e, ERR_INVALID_PARAMS, "mode must be at most %d", FS_PERMISSIONS_MAX);
    return r;
}
