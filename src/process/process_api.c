#include "process/process_api.h"

#include "process/process_retain.h"
#include "process/process_wait.h"
#include "process/process_write.h"
#include "process/params.h"
#include "process/events.h"
#include "process/start.h"
#include "process/variant.h"

#include <errno.h>
#include <inttypes.h>

/* -- process/read, process/wait -- */

struct read_params {
    struct str process_id;
    uint64_t after, max_bytes, wait_ms;
    bool limited;
};

static const struct jsondec_field read_fields[] = {
    PARAM(read_params, process_id, "processId", JSONDEC_STR),
    PARAM_OPT(read_params, after, "afterSeq", JSONDEC_U64, JSONDEC_NULLABLE),
    PARAM_HAS(read_params, max_bytes, limited, "maxBytes", JSONDEC_USIZE, JSONDEC_NULLABLE),
    PARAM_OPT(read_params, wait_ms, "waitMs", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct read_struct = PARAM_STRUCT("ReadParams", read_fields);

int process_api_read_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct read_params *)out = (struct read_params){.max_bytes = UINT64_MAX};
    return jsondec(&read_struct, params, out, e);
}

/* Answers now, or on the first event that the query waits for, or when the time is up. */
static enum rpc_outcome query_run(struct rpc_call *c, struct str id, const struct process_query *q,
                                  uint64_t wait_ms, struct buf *result, struct err *e) {
    struct process *p = process_of_call(c, id, e);
    if (p == NULL)
        return RPC_ERROR;
    bool ready = process_wait_ready(p, q);
    if (wait_ms == 0 || ready)
        return rpc_done(result, process_wait_put_answer(p, q, !ready, result));
    return process_wait_for(p, c, q, wait_ms, e) < 0 ? RPC_ERROR : RPC_LATER;
}

enum rpc_outcome process_api_read_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e) {
    const struct read_params *p = params;
    struct process_query q = {PROCESS_UNTIL_NEWS, p->after, p->max_bytes, p->limited};
    return query_run(c, p->process_id, &q, p->wait_ms, result, e);
}

struct wait_params {
    struct str process_id;
    const struct json_node *until_node;
    uint64_t wait_ms;
    enum process_until until;
};

static const struct jsondec_field wait_fields[] = {
    PARAM(wait_params, process_id, "processId", JSONDEC_STR),
    PARAM_OPT(wait_params, until_node, "until", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_OPT(wait_params, wait_ms, "waitMs", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct wait_struct = PARAM_STRUCT("WaitParams", wait_fields);

int process_api_wait_decode(const struct json_node *params, void *out, struct err *e) {
    static const char *const names[] = {"closed", "exited"};
    static const struct variant_set events = {"WaitUntil", names, ARRAY_LEN(names)};
    struct wait_params *p = out;
    *p = (struct wait_params){.wait_ms = UINT64_MAX, .until = PROCESS_UNTIL_CLOSED};
    int r = jsondec(&wait_struct, params, out, e);
    if (r < 0 || p->until_node == NULL)
        return r;
    r = variant_name(p->until_node, &events, e);
    if (r == 1)
        p->until = PROCESS_UNTIL_EXITED;
    return MIN(r, 0);
}

enum rpc_outcome process_api_wait_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e) {
    const struct wait_params *p = params;
    struct process_query q = {.until = p->until};
    return query_run(c, p->process_id, &q, p->wait_ms, result, e);
}

/* -- process/write, process/closeStdin -- */

struct write_params {
    struct str process_id, write_id;
    struct str chunk; /* as it came */
    struct str data;  /* decoded in place */
    bool has_write_id, close;
};

static int write_check_chunk(const struct json_node *v, struct err *e) {
    struct str ignored;
    return conn_message_base64(json_str(v), &ignored, e);
}

static const struct jsondec_field write_fields[] = {
    PARAM(write_params, process_id, "processId", JSONDEC_STR),
    PARAM_CHECKED(write_params, chunk, "chunk", JSONDEC_STR, write_check_chunk),
    PARAM_HAS(write_params, write_id, has_write_id, "writeId", JSONDEC_STR, 0),
    PARAM_OPT(write_params, close, "closeStdin", JSONDEC_BOOL, JSONDEC_NULLABLE),
};
static const struct jsondec_struct write_struct = PARAM_STRUCT("WriteParams", write_fields);

int process_api_write_decode(const struct json_node *params, void *out, struct err *e) {
    struct write_params *p = out;
    *p = (struct write_params){0};
    int r = jsondec(&write_struct, params, out, e);
    return r < 0 ? r : conn_message_base64(p->chunk, &p->data, e);
}

static const struct jsondec_field close_stdin_fields[] = {
    PARAM(write_params, process_id, "processId", JSONDEC_STR),
    PARAM_HAS(write_params, write_id, has_write_id, "writeId", JSONDEC_STR, JSONDEC_NULLABLE),
};
static const struct jsondec_struct close_stdin_struct =
    PARAM_STRUCT("CloseStdinParams", close_stdin_fields);

int process_api_close_stdin_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct write_params *)out = (struct write_params){.close = true};
    return jsondec(&close_stdin_struct, params, out, e);
}

static enum rpc_outcome input_run(struct rpc_call *c, const struct write_params *args,
                                  struct buf *result, struct err *e) {
    static const char *const answers[] = {
        [PROCESS_WRITE_ACCEPTED] = "{\"status\":\"accepted\"}",
        [PROCESS_WRITE_STDIN_CLOSED] = "{\"status\":\"stdinClosed\"}",
        [PROCESS_WRITE_STARTING] = "{\"status\":\"starting\"}",
    };
    static const char *const words[] = {
        [PROCESS_WRITE_ACCEPTED] = "accepted", [PROCESS_WRITE_STDIN_CLOSED] = "stdinClosed",
        [PROCESS_WRITE_STARTING] = "starting", [PROCESS_WRITE_FAILED] = "failed",
        [PROCESS_WRITE_WAITING] = "waiting",
    };
    if (args->has_write_id && args->write_id.n == 0) {
        err_set(e, ERR_INVALID_PARAMS, "writeId must not be empty");
        return RPC_ERROR;
    }
    struct process *p = process_find(session_of_call(c), args->process_id);
    if (p == NULL)
        return rpc_done_text(result, "{\"status\":\"unknownProcess\"}");
    struct process_input in = {.data = args->data, .close = args->close};
    if (args->has_write_id)
        in.write_id = args->write_id;
    enum process_write_status s = process_write(p, c, &in, e);
    events_write(c, p, args->data.n, args->close, words[s]);
    if (s == PROCESS_WRITE_FAILED)
        return RPC_ERROR;
    return s == PROCESS_WRITE_WAITING ? RPC_LATER : rpc_done_text(result, answers[s]);
}

enum rpc_outcome process_api_write_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    return input_run(c, params, result, e);
}

enum rpc_outcome process_api_close_stdin_run(struct rpc_call *c, void *params, struct buf *result,
                                             struct err *e) {
    return input_run(c, params, result, e);
}

/* -- process/resize -- */

struct resize_params {
    struct str process_id;
    struct start_size size;
};

static const struct jsondec_field resize_fields[] = {
    PARAM(resize_params, process_id, "processId", JSONDEC_STR),
    PARAM_SUB(resize_params, size, "size", &start_size_struct, JSONDEC_REQUIRED),
};
static const struct jsondec_struct resize_struct = PARAM_STRUCT("ResizeParams", resize_fields);

int process_api_resize_decode(const struct json_node *params, void *out, struct err *e) {
    struct resize_params *p = out;
    *p = (struct resize_params){0};
    int r = jsondec(&resize_struct, params, out, e);
    return r < 0 ? r : start_check_size(&p->size, e);
}

enum rpc_outcome process_api_resize_run(struct rpc_call *c, void *params, struct buf *result,
                                        struct err *e) {
    const struct resize_params *in = params;
    struct process *p = process_of_call(c, in->process_id, e);
    if (p == NULL)
        return RPC_ERROR;
    int r = proc_resize(&p->proc, in->size.rows, in->size.cols);
    if (r == 0) {
        process_resized(p, in->size.rows, in->size.cols);
        events_resize(c, p, in->size.rows, in->size.cols);
        return rpc_done_text(result, "{}");
    }
    if (r == -ENOTTY)
        err_about(e, ERR_INVALID_PARAMS, "process ", p->id, " is not attached to a PTY");
    else
        err_os(e, ERR_INTERNAL, -r);
    return RPC_ERROR;
}

/* -- process/ack -- */

struct ack_params {
    struct str process_id;
    uint64_t seq;
    bool hold, has_hold;
};

static const struct jsondec_field ack_fields[] = {
    PARAM(ack_params, process_id, "processId", JSONDEC_STR),
    PARAM(ack_params, seq, "seq", JSONDEC_U64),
    PARAM_HAS(ack_params, hold, has_hold, "hold", JSONDEC_BOOL, JSONDEC_NULLABLE),
};
static const struct jsondec_struct ack_struct = PARAM_STRUCT("AckParams", ack_fields);

int process_api_ack_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct ack_params *)out = (struct ack_params){0};
    return jsondec(&ack_struct, params, out, e);
}

/* Takes a process that is starting: it has no events, but can be told not to hold. */
enum rpc_outcome process_api_ack_run(struct rpc_call *c, void *params, struct buf *result,
                                     struct err *e) {
    const struct ack_params *in = params;
    struct process *p = process_find(session_of_call(c), in->process_id);
    if (p == NULL) {
        err_about(e, ERR_INVALID_REQUEST, "unknown process id ", in->process_id, "");
        return RPC_ERROR;
    }
    if (in->seq >= p->proc.next_seq) {
        err_set(e, ERR_INVALID_PARAMS, "seq %" PRIu64 " is above the last event, %" PRIu64, in->seq,
                p->proc.next_seq - 1);
        return RPC_ERROR;
    }
    proc_ack(&p->proc, in->seq);
    if (in->has_hold)
        proc_keep_unacked(&p->proc, in->hold);
    process_retain_note_ack(p);
    return rpc_done_text(result, "{}");
}
