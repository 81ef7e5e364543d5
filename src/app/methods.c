#include "app/methods.h"

#include "app/server.h"
#include "process/attach.h"
#include "files/fs_api.h"
#include "files/fs_watch_api.h"
#include "files/fs_params.h"
#include "app/envinfo.h"
#include "environment/capabilities.h"
#include "environment/capability_roots.h"
#include "environment/envconf_api.h"
#include "process/params.h"
#include "process/process_api.h"
#include "process/events.h"
#include "process/sandbox_members.h"
#include "process/start.h"
#include "web/web_params.h"
#include "web/web_request.h"

#include <errno.h>
#include <inttypes.h>

static int decode_none(const struct json_node *params, void *out, struct err *e) {
    (void)out;
    return jsondec_unit(params, e);
}

/* -- initialize, environment -- */

struct initialize_params {
    struct str client_name, resume;
    bool has_resume;
    const struct json_node *notifications; /* extension: names of those to send */
    bool output_ack;                       /* extension */
    struct session_ask ask;                /* extension */
};

static const struct jsondec_field initialize_fields[] = {
    PARAM(initialize_params, client_name, "clientName", JSONDEC_STR),
    PARAM_HAS(initialize_params, resume, has_resume, "resumeSessionId", JSONDEC_STR,
              JSONDEC_NULLABLE),
    PARAM_OPT(initialize_params, notifications, "notifications", JSONDEC_STRS, JSONDEC_NULLABLE),
    PARAM_OPT(initialize_params, output_ack, "outputAck", JSONDEC_BOOL, JSONDEC_NULLABLE),
    PARAM_HAS(initialize_params, ask.ttl_ms, ask.has_ttl, "sessionTtlMs", JSONDEC_U64,
              JSONDEC_NULLABLE),
    PARAM_HAS(initialize_params, ask.closed_retention_ms, ask.has_closed_retention,
              "closedRetentionMs", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct initialize_struct =
    PARAM_STRUCT("InitializeParams", initialize_fields);

static int initialize_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct initialize_params *)out = (struct initialize_params){0};
    int r = jsondec(&initialize_struct, params, out, e);
    return r < 0 ? r : sandbox_members_check(params, &initialize_struct, NULL, e);
}

/* Whether the client asked for an optional notification. */
static bool initialize_wants(const struct initialize_params *p, const char *name) {
    if (p->notifications == NULL)
        return false;
    json_for_each(v, p->notifications) {
        if (str_eqz(json_str(v), name))
            return true;
    }
    return false;
}

/* The limits, for a client that asked for one of them, or that must know when to acknowledge. */
static int initialize_put_limits(const struct initialize_params *p, const struct session *s,
                                 struct buf *b) {
    if (!p->output_ack && !p->ask.has_ttl && !p->ask.has_closed_retention)
        return 0;
    return buf_putf(b,
                    ",\"limits\":{\"sessionTtlMs\":%" PRIu64 ",\"closedRetentionMs\":%" PRIu64
                    ",\"retainedOutputBytes\":%zu}",
                    s->ttl_ms, s->closed_retention_ms, s->host->settings.retained_output);
}

static enum rpc_outcome initialize_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    const struct initialize_params *p = params;
    struct server *srv = server_of_peer(c->peer);
    if (c->peer->life != RPC_NEW) {
        err_set(e, ERR_INVALID_REQUEST, "initialize may only be sent once per connection");
        return RPC_ERROR;
    }
    struct session *s = p->has_resume ? session_resume(&srv->processes, p->resume, c->peer, e)
                                      : session_new(&srv->processes, c->peer, e);
    if (s == NULL)
        return RPC_ERROR;
    s->wants_started = initialize_wants(p, "process/started");
    s->wants_failed = initialize_wants(p, "process/failed");
    session_keep_unacked(s, p->output_ack);
    session_grant(s, &p->ask);
    c->peer->life = RPC_GREETED;
    conn_proof_accept(c->peer->conn);
    session_named(s, p->client_name);
    events_session(s, p->has_resume);
    int r = buf_putf(result, "{\"sessionId\":\"%s\",\"environmentInfo\":", s->id);
    if (r == 0)
        r = envinfo_put(srv, result);
    if (r == 0)
        r = initialize_put_limits(p, s, result);
    return rpc_done(result, r < 0 ? r : buf_putc(result, '}'));
}

static enum rpc_outcome info_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)params;
    (void)e;
    return rpc_done(result, envinfo_put(server_of_peer(c->peer), result));
}

static enum rpc_outcome status_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)c;
    (void)params;
    (void)e;
    return rpc_done_text(result, "{\"status\":\"ready\"}");
}

/* Their params own memory. */
#define FS_METHOD(name, key, control, params, run, base64)                                         \
    {                                                                                              \
        name, "filesystem", key, control, fs_params_##params##_decode, run, fs_params_release,     \
            base64                                                                                 \
    }

const struct rpc_method methods_table[] = {
    /* The first METHODS_WEB: a server without the HTTP program has none of them. */
    {"http/request", "http", NULL, false, web_params_decode, web_request_run, NULL, "bodyBase64"},
    {"initialize", NULL, NULL, false, initialize_decode, initialize_run, NULL, NULL},
    {"environment/info", "environment info", NULL, true, decode_none, info_run, NULL, NULL},
    {"environment/status", "environment status", NULL, true, decode_none, status_run, NULL, NULL},
    {"environmentConfig/read", "environment config", NULL, false, envconf_api_decode,
     envconf_api_run, envconf_api_release, NULL},
    {"capabilityRoots/discoverV1", "capability discovery", NULL, false, capability_roots_decode,
     capability_roots_run, NULL, NULL},
    {"capabilities/discoverV2", "capability discovery", NULL, false, capabilities_decode,
     capabilities_run, NULL, NULL},
    {"process/start", "exec", "processId", false, start_decode, start_run, start_release, NULL},
    {"process/read", "exec", "processId", false, process_api_read_decode, process_api_read_run,
     NULL, NULL},
    {"process/write", "exec", "processId", false, process_api_write_decode, process_api_write_run,
     NULL, "chunk"},
    {"process/signal", "exec", "processId", true, process_end_signal_decode, process_end_signal_run,
     NULL, NULL},
    {"process/terminate", "exec", "processId", true, process_end_terminate_decode,
     process_end_terminate_run, NULL, NULL},
    FS_METHOD("fs/readFile", NULL, false, read_file, fs_read_run, NULL),
    FS_METHOD("fs/open", "handleId", false, open, fs_handles_open_run, NULL),
    FS_METHOD("fs/readBlock", "handleId", false, read_block, fs_handles_read_block_run, NULL),
    FS_METHOD("fs/writeBlock", "handleId", false, write_block, fs_handles_write_block_run, "chunk"),
    FS_METHOD("fs/close", "handleId", true, close, fs_handles_close_run, NULL),
    FS_METHOD("fs/writeFile", NULL, false, write_file, fs_ops_write_file_run, "dataBase64"),
    FS_METHOD("fs/createDirectory", NULL, false, create_directory, fs_ops_run, NULL),
    FS_METHOD("fs/getMetadata", NULL, false, get_metadata, fs_ops_get_metadata_run, NULL),
    FS_METHOD("fs/canonicalize", NULL, false, canonicalize, fs_ops_run, NULL),
    FS_METHOD("fs/readDirectory", NULL, false, read_directory, fs_ops_run, NULL),
    FS_METHOD("fs/walk", NULL, false, walk, fs_ops_walk_run, NULL),
    FS_METHOD("fs/remove", NULL, false, remove, fs_ops_run, NULL),
    FS_METHOD("fs/copy", NULL, false, copy, fs_ops_run, NULL),
    {"fs/watchMissing", "filesystem", NULL, false, fs_missing_api_decode, fs_missing_api_run, NULL,
     NULL},
    /* Extensions. */
    {"process/closeStdin", "exec", "processId", false, process_api_close_stdin_decode,
     process_api_close_stdin_run, NULL, NULL},
    {"process/resize", "exec", "processId", false, process_api_resize_decode,
     process_api_resize_run, NULL, NULL},
    {"process/ack", "exec", "processId", true, process_api_ack_decode, process_api_ack_run, NULL,
     NULL},
    {"process/wait", "exec", "processId", false, process_api_wait_decode, process_api_wait_run,
     NULL, NULL},
    {"process/snapshot", "exec", "processId", false, process_view_snapshot_decode,
     process_view_snapshot_run, NULL, NULL},
    {"process/list", "exec", NULL, false, decode_none, process_view_list_run, NULL, NULL},
    {"process/attach", "exec", NULL, false, attach_decode, attach_run, NULL, NULL},
    {"process/detach", "exec", NULL, false, attach_detach_decode, attach_detach_run, NULL, NULL},
    FS_METHOD("fs/rename", NULL, false, rename, fs_ops_run, NULL),
    FS_METHOD("fs/setPermissions", NULL, false, set_permissions, fs_ops_run, NULL),
    FS_METHOD("fs/setTimes", NULL, false, set_times, fs_ops_run, NULL),
    FS_METHOD("fs/readLink", NULL, false, read_link, fs_ops_run, NULL),
    FS_METHOD("fs/symlink", NULL, false, symlink, fs_ops_run, NULL),
    {"fs/watch", "filesystem", NULL, false, fs_watch_api_decode, fs_watch_api_run, NULL, NULL},
    {"fs/unwatch", "filesystem", NULL, false, fs_watch_api_end_decode, fs_watch_api_end_run, NULL,
     NULL},
};
const size_t methods_count = ARRAY_LEN(methods_table);

_Static_assert(ARRAY_LEN(methods_table) <= RPC_METHODS_MAX, "every method has its tally");
_Static_assert(sizeof(struct web_params) <= RPC_PARAMS_MAX, "params fit the dispatcher's space");
_Static_assert(sizeof(struct start_params) <= RPC_PARAMS_MAX, "params fit the dispatcher's space");
_Static_assert(sizeof(struct fs_params) <= RPC_PARAMS_MAX, "params fit the dispatcher's space");
