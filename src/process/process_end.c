#include "process/params.h"
#include "process/process_api.h"
#include "process/events.h"
#include "process/variant.h"

#include <errno.h>
#include <signal.h>

/* -- process/signal -- */

struct signal_params {
    struct str process_id;
    const struct json_node *name;
    int signo;
};

/* Words first, then the POSIX names in the same order. */
static const char *const signal_names[] = {
    "interrupt", "terminate", "kill",     "hangup",   "quit",    "usr1",    "usr2",
    "winch",     "stop",      "continue", "SIGINT",   "SIGTERM", "SIGKILL", "SIGHUP",
    "SIGQUIT",   "SIGUSR1",   "SIGUSR2",  "SIGWINCH", "SIGSTOP", "SIGCONT",
};
static const int signal_numbers[] = {SIGINT,  SIGTERM, SIGKILL,  SIGHUP,  SIGQUIT,
                                     SIGUSR1, SIGUSR2, SIGWINCH, SIGSTOP, SIGCONT};
_Static_assert(ARRAY_LEN(signal_names) == 2 * ARRAY_LEN(signal_numbers), "two names a signal");

static int signal_check(const struct json_node *v, struct err *e) {
    return MIN(jsondec_variant(v, signal_names, ARRAY_LEN(signal_names), e), 0);
}

static const struct jsondec_field signal_fields[] = {
    PARAM(signal_params, process_id, "processId", JSONDEC_STR),
    PARAM_CHECKED(signal_params, name, "signal", JSONDEC_NODE, signal_check),
};
static const struct jsondec_struct signal_struct = PARAM_STRUCT("SignalParams", signal_fields);

int process_end_signal_decode(const struct json_node *params, void *out, struct err *e) {
    struct signal_params *p = out;
    *p = (struct signal_params){0};
    int r = jsondec(&signal_struct, params, out, e);
    if (r == 0)
        r = jsondec_variant(p->name, signal_names, ARRAY_LEN(signal_names), e);
    if (r >= 0)
        p->signo = signal_numbers[(size_t)r % ARRAY_LEN(signal_numbers)];
    return MIN(r, 0);
}

enum rpc_outcome process_end_signal_run(struct rpc_call *c, void *params, struct buf *result,
                                        struct err *e) {
    (void)e;
    const struct signal_params *in = params;
    struct process *p = process_find(session_of_call(c), in->process_id);
    if (p != NULL) {
        events_signal(c, p, in->signo);
        proc_signal(&p->proc, in->signo);
    }
    return rpc_done_text(result, "{}");
}

/* -- process/terminate -- */

struct terminate_params {
    struct str process_id;
    const struct json_node *mode;
    uint64_t grace_ms; /* 0 = at once */
};

static const struct jsondec_field terminate_fields[] = {
    PARAM(terminate_params, process_id, "processId", JSONDEC_STR),
    PARAM_OPT(terminate_params, mode, "mode", JSONDEC_NODE, JSONDEC_NULLABLE),
};
static const struct jsondec_struct terminate_struct =
    PARAM_STRUCT("TerminateParams", terminate_fields);

struct mode_params {
    uint64_t timeout_ms;
};

static const struct jsondec_field mode_fields[] = {
    PARAM_OPT(mode_params, timeout_ms, "timeoutMs", JSONDEC_U64, JSONDEC_NULLABLE),
    PARAM_OPT(mode_params, timeout_ms, "timeout_ms", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct mode_struct = PARAM_STRUCT("TerminateMode", mode_fields);

static int terminate_decode_mode(struct terminate_params *p, struct err *e) {
    static const char *const names[] = {"force", "graceful"};
    static const struct variant_set modes = {"struct TerminateMode", names, ARRAY_LEN(names)};
    struct mode_params m = {.timeout_ms = PROC_GRACE_MS};
    const struct json_node *members;
    int mode = variant_value(p->mode, &modes, &members, e);
    if (mode < 0)
        return mode;
    int r = members != NULL ? jsondec(&mode_struct, members, &m, e) : 0;
    p->grace_ms = mode == 1 ? m.timeout_ms : 0;
    return r;
}

int process_end_terminate_decode(const struct json_node *params, void *out, struct err *e) {
    struct terminate_params *p = out;
    *p = (struct terminate_params){0};
    int r = jsondec(&terminate_struct, params, out, e);
    return r < 0 || p->mode == NULL ? r : terminate_decode_mode(p, e);
}

enum rpc_outcome process_end_terminate_run(struct rpc_call *c, void *params, struct buf *result,
                                           struct err *e) {
    (void)e;
    const struct terminate_params *in = params;
    struct process *p = process_find(session_of_call(c), in->process_id);
    if (p != NULL)
        events_terminate(c, p, in->grace_ms);
    bool running = p != NULL && process_terminate(p, in->grace_ms);
    return rpc_done_text(result, running ? "{\"running\":true}" : "{\"running\":false}");
}
