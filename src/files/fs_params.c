#include "files/fs_params.h"

#include "base/uri.h"
#include "fs/fs_link.h"
#include "json/base64.h"
#include "process/params.h"
#include "process/sandbox_members.h"

#include <errno.h>

#define FS_PERMISSIONS_MAX 07777

/* Whether uri_to_path() failed because this host cannot have the path. */
static bool params_is_foreign(int r, const struct err *e) {
    return r < 0 && e->code == ERR_INVALID_REQUEST;
}

int fs_params_check_path(struct str text, bool *foreign, struct err *e) {
    _cleanup_free_ char *native = NULL;
    int r = uri_to_path(text, &native, e);
    if (!params_is_foreign(r, e))
        return r;
    err_fini(e);
    *foreign = true;
    return 0;
}

static int params_check_path(const struct json_node *v, struct err *e) {
    bool foreign;
    return fs_params_check_path(json_str(v), &foreign, e);
}

static int params_check_sandbox(const struct json_node *v, struct err *e) {
    _cleanup_arena_ struct arena a = ARENA_INIT(PROFILE_ARENA_MAX);
    struct profile *profile;
    return profile_decode(v, PROFILE_FILES, &a, &profile, e);
}

static int params_check_base64(const struct json_node *v, struct err *e) {
    struct str ignored;
    return conn_message_base64(json_str(v), &ignored, e);
}

/* The call for a mode of fs/open; or -EINVAL with e set. */
static int params_open_mode(const struct json_node *v, struct err *e) {
    static const char *const modes[] = {"read", "replace"};
    static const enum fs_call_op ops[] = {FS_CALL_READ, FS_CALL_REPLACE};
    /* An extension: the texts about other values do not name it. */
    if (v->type == JSON_STRING && str_eqz(json_str(v), "update"))
        return FS_CALL_UPDATE;
    int i = jsondec_variant(v, modes, ARRAY_LEN(modes), e);
    return i < 0 ? i : (int)ops[i];
}

static int params_check_mode(const struct json_node *v, struct err *e) {
    return MIN(params_open_mode(v, e), 0);
}

/* Fields that several methods have. */
#define FS_URI(member, wire) PARAM_CHECKED(fs_params, member, wire, JSONDEC_STR, params_check_path)
#define FS_PATH FS_URI(path.text, "path")
#define FS_RECURSIVE PARAM_OPT(fs_params, recursive, "recursive", JSONDEC_BOOL, JSONDEC_NULLABLE)
#define FS_FOLLOW PARAM_OPT(fs_params, follow, "followSymlinks", JSONDEC_BOOL, JSONDEC_NULLABLE)
#define FS_SANDBOX                                                                                 \
    PARAM_OPT_CHECKED(fs_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE,               \
                      params_check_sandbox)
#define FS_HANDLE PARAM(fs_params, handle_id, "handleId", JSONDEC_STR)
/* Ignored: a handle keeps the policy that it was opened with. */
#define FS_HANDLE_SANDBOX                                                                          \
    PARAM_OPT(fs_params, handle_sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE)

/* The fields of a method's params; and its decoder, if decoding them is all it does. */
#define FS_STRUCT(name, wire, ...)                                                                 \
    static const struct jsondec_field name##_fields[] = {__VA_ARGS__};                             \
    static const struct jsondec_struct name##_struct = PARAM_STRUCT(wire, name##_fields)
#define FS_DECODE(name, code)                                                                      \
    int fs_params_##name##_decode(const struct json_node *params, void *out, struct err *e) {      \
        return params_decode(&name##_struct, code, params, out, e);                                \
    }

/* Finds the native path. A path that this host cannot have is an error only later: p->why. */
static int params_decode_path(struct fs_params *p, struct fs_path *path, struct err *e) {
    if (path->text.p == NULL)
        return 0;
    int r = uri_to_path(path->text, &path->native, e);
    if (!params_is_foreign(r, e))
        return r;
    if (p->why.code == 0)
        p->why = *e;
    else
        err_fini(e);
    *e = ERR_INIT;
    return 0;
}

static int params_decode(const struct jsondec_struct *s, enum fs_call_op op,
                         const struct json_node *params, void *out, struct err *e) {
    struct fs_params *p = out;
    *p = (struct fs_params){.op = op, .arena = ARENA_INIT(PROFILE_ARENA_MAX)};
    p->follow = p->recursive = p->force = p->replace = true;
    int r = jsondec(s, params, p, e);
    if (r == 0)
        r = sandbox_members_check(params, s, p->path.text.p != NULL ? &p->sandbox : NULL, e);
    if (r < 0)
        return r;
    r = params_decode_path(p, &p->path, e);
    if (r == 0)
        r = params_decode_path(p, &p->destination, e);
    if (r == 0 && p->sandbox != NULL)
        r = profile_decode(p->sandbox, PROFILE_FILES, &p->arena, &p->profile, e);
    if (r < 0)
        jsondec_report_first(s, params, e);
    return r;
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
        return fs_fail(e, ENOMEM);
    p->data.p = p->memory.p;
    return 0;
}

void fs_params_release(void *params) {
    struct fs_params *p = params;
    buf_fini(&p->memory);
    free(p->path.native);
    free(p->destination.native);
    free(p->target_bytes);
    buf_fini(&p->uri);
    err_fini(&p->why);
    err_fini(&p->bad_data);
    arena_fini(&p->arena);
}

/* -- the methods -- */

FS_STRUCT(read_file, "WireFsReadFileParams", FS_PATH, FS_FOLLOW, FS_SANDBOX,
          /* Extension. */
          PARAM_HAS(fs_params, max_bytes, has_max_bytes, "maxBytes", JSONDEC_U64,
                    JSONDEC_NULLABLE));
FS_DECODE(read_file, FS_CALL_READ)

FS_STRUCT(write_file, "WireFsWriteFileParams", FS_PATH,
          PARAM(fs_params, base64, "dataBase64", JSONDEC_STR), FS_FOLLOW, FS_SANDBOX,
          /* Extension. */
          PARAM_OPT(fs_params, atomic, "atomic", JSONDEC_BOOL, JSONDEC_NULLABLE));

/* Decodes the data here, where a thread does it for a large message. Bad data is no bad parameter:
 * `run` reports it. */
int fs_params_write_file_decode(const struct json_node *params, void *out, struct err *e) {
    int r = params_decode(&write_file_struct, FS_CALL_WRITE, params, out, e);
    struct fs_params *p = out;
    if (r == 0)
        (void)!conn_message_base64(p->base64, &p->data, &p->bad_data);
    return r;
}

FS_STRUCT(open, "WireFsOpenParams", FS_HANDLE, FS_PATH, FS_SANDBOX,
          PARAM_OPT_CHECKED(fs_params, mode_node, "mode", JSONDEC_NODE, 0, params_check_mode));

int fs_params_open_decode(const struct json_node *params, void *out, struct err *e) {
    int r = params_decode(&open_struct, FS_CALL_READ, params, out, e);
    struct fs_params *p = out;
    if (r < 0 || p->mode_node == NULL)
        return r;
    r = params_open_mode(p->mode_node, e);
    if (r >= 0)
        p->op = (enum fs_call_op)r;
    return MIN(r, 0);
}

FS_STRUCT(read_block, "FsReadBlockParams", FS_HANDLE,
          PARAM(fs_params, offset, "offset", JSONDEC_U64),
          PARAM(fs_params, len, "len", JSONDEC_USIZE), FS_HANDLE_SANDBOX);
FS_DECODE(read_block, FS_CALL_READ)

FS_STRUCT(write_block, "FsWriteBlockParams", FS_HANDLE,
          PARAM(fs_params, offset, "offset", JSONDEC_U64),
          PARAM_CHECKED(fs_params, base64, "chunk", JSONDEC_STR, params_check_base64),
          FS_HANDLE_SANDBOX);

int fs_params_write_block_decode(const struct json_node *params, void *out, struct err *e) {
    int r = params_decode(&write_block_struct, FS_CALL_WRITE, params, out, e);
    struct fs_params *p = out;
    return r < 0 ? r : conn_message_base64(p->base64, &p->data, e);
}

FS_STRUCT(close, "FsCloseParams", FS_HANDLE, FS_HANDLE_SANDBOX);
FS_DECODE(close, FS_CALL_READ)

FS_STRUCT(create_directory, "WireFsCreateDirectoryParams", FS_PATH, FS_RECURSIVE, FS_FOLLOW,
          FS_SANDBOX);
FS_DECODE(create_directory, FS_CALL_MKDIR)

FS_STRUCT(get_metadata, "WireFsGetMetadataParams", FS_PATH, FS_FOLLOW, FS_SANDBOX);
FS_DECODE(get_metadata, FS_CALL_METADATA)

FS_STRUCT(canonicalize, "WireFsCanonicalizeParams", FS_PATH, FS_SANDBOX);
FS_DECODE(canonicalize, FS_CALL_CANONICALIZE)

FS_STRUCT(read_directory, "WireFsReadDirectoryParams", FS_PATH, FS_SANDBOX);
FS_DECODE(read_directory, FS_CALL_LIST)

FS_STRUCT(walk_options, "WalkOptions", PARAM(fs_walk, max_depth, "maxDepth", JSONDEC_USIZE),
          PARAM(fs_walk, max_directories, "maxDirectories", JSONDEC_USIZE),
          PARAM(fs_walk, max_entries, "maxEntries", JSONDEC_USIZE),
          PARAM(fs_walk, follow_directory_links, "followDirectorySymlinks", JSONDEC_BOOL),
          PARAM_OPT(fs_walk, prune_hidden, "pruneHiddenDirectories", JSONDEC_BOOL, 0),
          /* Extension. */
          PARAM_OPT(fs_walk, links, "links", JSONDEC_BOOL, JSONDEC_NULLABLE));
FS_STRUCT(walk, "WireFsWalkParams", FS_PATH,
          PARAM_SUB(fs_params, walk, "options", &walk_options_struct, JSONDEC_REQUIRED),
          FS_SANDBOX);
FS_DECODE(walk, FS_CALL_WALK)

FS_STRUCT(remove, "WireFsRemoveParams", FS_PATH, FS_RECURSIVE,
          PARAM_OPT(fs_params, force, "force", JSONDEC_BOOL, JSONDEC_NULLABLE), FS_FOLLOW,
          FS_SANDBOX);
FS_DECODE(remove, FS_CALL_REMOVE)

FS_STRUCT(copy, "WireFsCopyParams", FS_URI(path.text, "sourcePath"),
          FS_URI(destination.text, "destinationPath"),
          PARAM(fs_params, recursive, "recursive", JSONDEC_BOOL), FS_SANDBOX);
FS_DECODE(copy, FS_CALL_COPY)

/* Extensions. */

FS_STRUCT(rename, "FsRenameParams", FS_URI(path.text, "sourcePath"),
          FS_URI(destination.text, "destinationPath"),
          PARAM_OPT(fs_params, replace, "replace", JSONDEC_BOOL, JSONDEC_NULLABLE), FS_SANDBOX);
FS_DECODE(rename, FS_CALL_RENAME)

FS_STRUCT(set_permissions, "FsSetPermissionsParams", FS_PATH,
          PARAM(fs_params, mode, "mode", JSONDEC_U64), FS_FOLLOW, FS_SANDBOX);

int fs_params_set_permissions_decode(const struct json_node *params, void *out, struct err *e) {
    int r = params_decode(&set_permissions_struct, FS_CALL_CHMOD, params, out, e);
    const struct fs_params *p = out;
    if (r == 0 && p->mode > FS_PERMISSIONS_MAX)
        r = err_set(e, ERR_INVALID_PARAMS, "mode must be at most %d", FS_PERMISSIONS_MAX);
    return r;
}

FS_STRUCT(set_times, "FsSetTimesParams", FS_PATH,
          PARAM(fs_params, modified_ms, "modifiedAtMs", JSONDEC_I64), FS_FOLLOW, FS_SANDBOX);
FS_DECODE(set_times, FS_CALL_TIMES)

FS_STRUCT(read_link, "FsReadLinkParams", FS_PATH, FS_SANDBOX);
FS_DECODE(read_link, FS_CALL_READ_LINK)

FS_STRUCT(symlink, "FsSymlinkParams", FS_PATH,
          PARAM_HAS(fs_params, target, has_target, "target", JSONDEC_STR, JSONDEC_NULLABLE),
          PARAM_HAS(fs_params, base64, has_base64, "targetBase64", JSONDEC_STR, JSONDEC_NULLABLE),
          FS_SANDBOX);

/* Sets p->target to the bytes of targetBase64, decoded in `out`. 0 or -EINVAL with e set. */
static int params_decode_target(struct fs_params *p, char *out, struct err *e) {
    ssize_t n = base64_decode(out, p->base64.p, p->base64.n, e);
    if (n < 0)
        return (int)n;
    p->target = (struct str){out, (size_t)n};
    return 0;
}

static int params_check_target(struct str target, struct err *e) {
    if (target.n < 1 || target.n > FS_LINK_TARGET_MAX)
        return err_set(e, ERR_INVALID_PARAMS, "target must have 1 to %d bytes", FS_LINK_TARGET_MAX);
    return str_has_nul(target) ? err_set(e, ERR_INVALID_PARAMS, "target contains a NUL byte") : 0;
}

/* A target that is no text comes as Base64, and that counts. */
int fs_params_symlink_decode(const struct json_node *params, void *out, struct err *e) {
    struct fs_params *p = out;
    char bytes[FS_LINK_TARGET_MAX + 3]; /* as many as the longest allowed Base64 gives, or more */
    int r = params_decode(&symlink_struct, FS_CALL_SYMLINK, params, out, e);
    if (r == 0 && !p->has_target && !p->has_base64)
        r = err_set(e, ERR_INVALID_PARAMS, "missing field `target`");
    if (r == 0 && p->has_base64 && base64_decoded_max(p->base64.n) > sizeof bytes)
        r = params_check_target((struct str){NULL, SIZE_MAX}, e);
    if (r == 0 && p->has_base64)
        r = params_decode_target(p, bytes, e);
    if (r == 0)
        r = params_check_target(p->target, e);
    if (r == 0 && (p->target_bytes = str_dup(p->target)) == NULL)
        r = fs_fail(e, ENOMEM);
    p->target = (struct str){0};
    return r;
}
