#pragma once
/* The parameters of the fs methods: one struct for all, a table of fields for each. */

#include "base/arena.h"
#include "fs/fs_call.h"
#include "fs/fs_walk.h"
#include "json/jsondec.h"
#include "net/conn.h"
#include "sandbox/policy/profile.h"

/* A path of the request, and its native form. */
struct fs_path {
    struct str text;
    char *native; /* owned; NULL: this host cannot have it, and `why` tells the client */
};

struct fs_params {
    enum fs_call_op op; /* the call of fs/open or a method in fs_ops.c; others ignore it */
    struct fs_path path, destination; /* fs/copy and fs/rename: from, to */
    struct str handle_id;
    const struct json_node *mode_node; /* fs/open */
    bool replace;                      /* fs/rename */
    uint64_t offset, len;
    struct str base64; /* as it came */
    bool has_base64;   /* fs/symlink */
    struct str data;   /* base64 decoded, in place, in the message */
    struct buf memory; /* owned; holds data after fs_params_keep_data() */
    bool follow, recursive, force, atomic;
    uint64_t max_bytes;
    bool has_max_bytes;
    uint64_t mode;       /* fs/setPermissions */
    int64_t modified_ms; /* fs/setTimes */
    struct str target;   /* fs/symlink: as it came */
    bool has_target;
    char *target_bytes; /* owned; fs/symlink: what the link is to hold */
    struct fs_walk walk;
    struct buf uri; /* owned; fs/walk: URI of the path, as the client wrote it */
    const struct json_node *sandbox, *handle_sandbox;

    struct err why;      /* the error of a path without a native form */
    struct err bad_data; /* fs/writeFile: the error of base64 that cannot be decoded */
    struct arena arena;
    struct profile *profile; /* in the arena; NULL = no sandbox */
};

/* The `decode` of each method; see rpc_method. */
typedef int fs_params_decode(const struct json_node *params, void *out, struct err *e);
fs_params_decode fs_params_read_file_decode, fs_params_write_file_decode;
fs_params_decode fs_params_open_decode, fs_params_read_block_decode;
fs_params_decode fs_params_write_block_decode, fs_params_close_decode;
fs_params_decode fs_params_create_directory_decode, fs_params_get_metadata_decode;
fs_params_decode fs_params_canonicalize_decode, fs_params_read_directory_decode;
fs_params_decode fs_params_walk_decode, fs_params_remove_decode, fs_params_copy_decode;
fs_params_decode fs_params_rename_decode, fs_params_set_permissions_decode;
fs_params_decode fs_params_set_times_decode, fs_params_read_link_decode;
fs_params_decode fs_params_symlink_decode;

/*
 * Whether a text is a path. 0 or as uri_to_path(); but a path that this host cannot have only sets
 * *foreign: the protocol reports that after all other bad params.
 */
MUST_CHECK int fs_params_check_path(struct str text, bool *foreign, struct err *e);

/* Makes `data` outlast the message: takes its memory over, or copies. 0 or -ENOMEM with e set. */
MUST_CHECK int fs_params_keep_data(struct fs_params *p, const struct conn_message *m,
                                   struct err *e);

/* Frees what decoded params own. */
void fs_params_release(void *params);
