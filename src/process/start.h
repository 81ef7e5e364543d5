#pragma once
/* process/start: its parameters and how they become a running process. */

#include "json/jsondec.h"
#include "proc/env.h"
#include "proc/limits.h"
#include "process/network_params.h"
#include "process/sandbox_params.h"
#include "rpc/rpc.h"

/* The two forms of a start; params without `direct` or `prepared` around them count as direct. */
enum start_shape { START_DIRECT, START_PREPARED };

/* The decoded parameters; slices and nodes borrow from the message. start_release() frees the rest.
 * */
struct start_params {
    struct str process_id;
    struct start_metadata {
        struct str thread_id, tool_call_id;
        bool has_thread_id, has_tool_call_id;
    } metadata;
    bool has_metadata;
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
    } snapshot;
    bool has_snapshot;
    const struct json_node *env;
    bool tty, pipe_stdin;
    bool has_tty, has_pipe_stdin;
    struct str arg0;
    bool has_arg0;
    const struct json_node *sandbox; /* NULL = none; the params, if they hold a sandboxPolicy */
    bool enforce_managed_network;
    const struct json_node *managed_network;
    const struct json_node *network_proxy; /* NULL = none */
    struct network_params network;         /* its members */
    char thread_id[40];                    /* the thread id in canonical form */
    /* Extensions. */
    enum start_shape shape;
    const struct json_node *io;
    struct start_size {
        uint16_t rows, cols;
    } size;
    bool has_size;
    uint64_t timeout_ms;
    bool has_timeout;
    const struct json_node *limits_node;
    struct limits limits;
    struct arena arena; /* of the policy and its plan */
    struct sandbox_policy policy;
};

#define START_ROWS 24
#define START_COLS 80
#define START_STRINGS_MAX (8u << 20) /* bytes of argv and environment; Linux takes 6 MiB */
#define START_ARGV_JSON_MAX 4096     /* bytes of the command kept for process/list */

extern const struct jsondec_struct start_size_struct;

/* rows and cols must be at least 1. 0, or -EINVAL with e set. */
MUST_CHECK int start_check_size(const struct start_size *size, struct err *e);

/* Decodes an envPolicy. The result borrows from the node. 0, or -EINVAL with e set. */
MUST_CHECK int start_env_policy(const struct json_node *v, struct env_policy *out, struct err *e);

/* Decodes and checks the shape. 0, or -EINVAL with e set. */
int start_decode(const struct json_node *params, void *out, struct err *e);

/* Frees what decoded params own. */
void start_release(void *params);

/* Starts the process; answers when exec has succeeded or failed. */
enum rpc_outcome start_run(struct rpc_call *c, void *params, struct buf *result, struct err *e);
