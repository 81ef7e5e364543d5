#pragma once
/* process/start: its parameters and how they become a running process. */

#include "proc/env.h"
#include "rpc/rpc.h"

/* The decoded parameters; slices and nodes borrow from the message. */
struct start_params {
    struct str process_id;
    struct start_metadata {
        struct str thread_id, tool_call_id;
        bool has_thread_id, has_tool_call_id;
    } metadata;
    const struct json_node *argv;
    struct str cwd;
    struct start_env_policy {
        const struct json_node *inherit_node;
        bool ignore_default_excludes;
        const struct json_node *exclude, *set, *include_only;
    } env_policy;
    bool has_env_policy;
    enum env_inherit inherit;
    struct start_snapshot {
        struct str scope_id;
        struct start_shell {
            struct str name, path;
        } shell;
    } snapshot; /* checked, not used */
    const struct json_node *env;
    bool tty, pipe_stdin;
    struct str arg0;
    bool has_arg0;
    const struct json_node *sandbox; /* NULL = none */
    bool enforce_managed_network;
    const struct json_node *managed_network;
    const struct json_node *network_proxy;
    char thread_id[40]; /* the thread id in canonical form */
};

/* Decodes and checks the shape. 0, or -EINVAL with e set. */
int start_decode(const struct json_node *params, void *out, struct err *e);

/* Starts the process; the answer follows when exec is decided. */
enum rpc_outcome start_run(struct rpc_call *c, void *params, struct buf *result, struct err *e);
