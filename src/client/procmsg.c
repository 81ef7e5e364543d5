#include "client/procmsg.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* -- members -- */

/* The member, or NULL if it is missing or null. */
static const struct json_node *procmsg_get(const struct json_node *o, const char *key) {
    const struct json_node *v = json_get(o, key);
    return v != NULL && v->type != JSON_NULL ? v : NULL;
}

static int procmsg_str(const struct json_node *o, const char *key, struct str *out) {
    const struct json_node *v = procmsg_get(o, key);
    if (v == NULL || v->type != JSON_STRING)
        return -EPROTO;
    *out = json_str(v);
    return 0;
}

static int procmsg_u64(const struct json_node *o, const char *key, uint64_t *out) {
    const struct json_node *v = procmsg_get(o, key);
    return v != NULL && json_u64(v, out) == 0 ? 0 : -EPROTO;
}

/* A missing one is 0. */
static int procmsg_u64_or_0(const struct json_node *o, const char *key, uint64_t *out) {
    *out = 0;
    return procmsg_get(o, key) == NULL ? 0 : procmsg_u64(o, key, out);
}

/* A missing one is false. */
static int procmsg_bool(const struct json_node *o, const char *key, bool *out) {
    const struct json_node *v = procmsg_get(o, key);
    if (v != NULL && v->type != JSON_TRUE && v->type != JSON_FALSE)
        return -EPROTO;
    *out = v != NULL && v->type == JSON_TRUE;
    return 0;
}

/* -- signals -- */

static const struct {
    int number;
    const char *word, *name;
} procmsg_signals[] = {
    {SIGINT, "interrupt", "INT"},  {SIGTERM, "terminate", "TERM"}, {SIGKILL, "kill", "KILL"},
    {SIGHUP, "hangup", "HUP"},     {SIGQUIT, "quit", "QUIT"},      {SIGUSR1, "usr1", "USR1"},
    {SIGUSR2, "usr2", "USR2"},     {SIGWINCH, "winch", "WINCH"},   {SIGSTOP, "stop", "STOP"},
    {SIGCONT, "continue", "CONT"}, {SIGABRT, NULL, "ABRT"},        {SIGALRM, NULL, "ALRM"},
    {SIGBUS, NULL, "BUS"},         {SIGCHLD, NULL, "CHLD"},        {SIGFPE, NULL, "FPE"},
    {SIGILL, NULL, "ILL"},         {SIGIO, NULL, "POLL"},          {SIGPIPE, NULL, "PIPE"},
    {SIGPROF, NULL, "PROF"},       {SIGPWR, NULL, "PWR"},          {SIGSEGV, NULL, "SEGV"},
    {SIGSTKFLT, NULL, "STKFLT"},   {SIGSYS, NULL, "SYS"},          {SIGTRAP, NULL, "TRAP"},
    {SIGTSTP, NULL, "TSTP"},       {SIGTTIN, NULL, "TTIN"},        {SIGTTOU, NULL, "TTOU"},
    {SIGURG, NULL, "URG"},         {SIGVTALRM, NULL, "VTALRM"},    {SIGXCPU, NULL, "XCPU"},
    {SIGXFSZ, NULL, "XFSZ"},
};

const char *procmsg_signal_word(int signo) {
    for (size_t i = 0; i < ARRAY_LEN(procmsg_signals); i++) {
        if (procmsg_signals[i].number == signo)
            return procmsg_signals[i].word;
    }
    return NULL;
}

/* "RTMIN+N" and "34": numbers of real-time signals. */
static int procmsg_signal_rt(struct str s) {
    int base = 0, n = 0;
    if (s.n > 6 && memcmp(s.p, "RTMIN+", 6) == 0) {
        base = SIGRTMIN;
        str_take(&s, 6);
    }
    if (s.n == 0 || s.n > 2)
        return 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        n = n * 10 + (s.p[i] - '0');
    }
    return base + n <= SIGRTMAX ? base + n : 0;
}

int procmsg_signal_number(struct str name) {
    if (name.n > 3 && memcmp(name.p, "SIG", 3) == 0)
        str_take(&name, 3);
    for (size_t i = 0; i < ARRAY_LEN(procmsg_signals); i++) {
        if (str_eqz(name, procmsg_signals[i].name))
            return procmsg_signals[i].number;
    }
    return procmsg_signal_rt(name);
}

/* -- ends -- */

static int procmsg_resources(const struct json_node *o, struct procmsg_exit *e) {
    const struct json_node *v = procmsg_get(o, "resources");
    if (v == NULL)
        return 0;
    if (v->type != JSON_OBJECT || procmsg_u64_or_0(v, "userTimeMs", &e->user_ms) < 0 ||
        procmsg_u64_or_0(v, "systemTimeMs", &e->system_ms) < 0 ||
        procmsg_u64_or_0(v, "wallTimeMs", &e->wall_ms) < 0 ||
        procmsg_u64_or_0(v, "peakMemoryBytes", &e->peak_bytes) < 0)
        return -EPROTO;
    e->resources = true;
    return 0;
}

/* The members that notifications and answers share. */
static int procmsg_exit(const struct json_node *o, struct procmsg_exit *e) {
    *e = (struct procmsg_exit){.code = -1};
    int64_t code = -1;
    const struct json_node *v = procmsg_get(o, "exitCode");
    if (v != NULL && (json_i64(v, &code) < 0 || code < INT32_MIN || code > INT32_MAX))
        return -EPROTO;
    e->code = (int)code;
    v = procmsg_get(o, "signal");
    if (v != NULL && v->type != JSON_STRING)
        return -EPROTO;
    if (v != NULL)
        e->signal = procmsg_signal_number(json_str(v));
    if (procmsg_bool(o, "sandboxDenied", &e->sandbox_denied) < 0 ||
        procmsg_bool(o, "timedOut", &e->timed_out) < 0)
        return -EPROTO;
    return procmsg_resources(o, e);
}

/* -- notifications -- */

static int procmsg_chunk(const struct json_node *o, struct evqueue_chunk *c) {
    static const char *const names[] = {"stdout", "stderr", "pty"};
    struct str stream;
    if (o->type != JSON_OBJECT || procmsg_u64(o, "seq", &c->seq) < 0 ||
        procmsg_str(o, "stream", &stream) < 0 || procmsg_str(o, "chunk", &c->base64) < 0)
        return -EPROTO;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqz(stream, names[i])) {
            c->stream = (enum evqueue_stream)i;
            return 0;
        }
    }
    return -EPROTO;
}

static enum procmsg_type procmsg_type(struct str method) {
    static const struct {
        const char *name;
        enum procmsg_type type;
    } types[] = {
        {"process/output", PROCMSG_OUTPUT},     {"process/exited", PROCMSG_EXITED},
        {"process/closed", PROCMSG_CLOSED},     {"process/attachGap", PROCMSG_GAP},
        {"process/detached", PROCMSG_DETACHED},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (str_eqz(method, types[i].name))
            return types[i].type;
    }
    return PROCMSG_OTHER;
}

int procmsg_note(struct str method, const struct json_node *params, struct procmsg_note *out) {
    *out = (struct procmsg_note){.type = procmsg_type(method)};
    if (out->type == PROCMSG_OTHER)
        return 0;
    if (params == NULL || params->type != JSON_OBJECT ||
        procmsg_str(params, "processId", &out->id) < 0)
        return -EPROTO;
    out->viewed = procmsg_get(params, "attachId") != NULL;
    if (out->viewed && procmsg_u64(params, "attachId", &out->attach) < 0)
        return -EPROTO;
    if (out->type == PROCMSG_DETACHED)
        return out->viewed ? 0 : -EPROTO;
    if (out->type == PROCMSG_GAP) {
        if (!out->viewed || procmsg_u64(params, "fromSeq", &out->seq) < 0 ||
            procmsg_u64(params, "toSeq", &out->to) < 0)
            return -EPROTO;
        return out->seq > 0 && out->to >= out->seq && out->to < UINT64_MAX ? 0 : -EPROTO;
    }
    if (procmsg_u64(params, "seq", &out->seq) < 0)
        return -EPROTO;
    if (out->type == PROCMSG_OUTPUT)
        return procmsg_chunk(params, &out->chunk);
    return out->type == PROCMSG_EXITED ? procmsg_exit(params, &out->exit) : 0;
}

/* -- answers -- */

void procmsg_page_fini(struct procmsg_page *p) {
    free(p->chunks);
    *p = (struct procmsg_page){0};
}

static int procmsg_page_chunks(const struct json_node *list, struct procmsg_page *out) {
    if (list->count == 0)
        return 0;
    out->chunks = calloc(list->count, sizeof(*out->chunks));
    if (out->chunks == NULL)
        return -ENOMEM;
    json_for_each(v, list) {
        if (procmsg_chunk(v, &out->chunks[out->count]) < 0)
            return -EPROTO;
        out->count++;
    }
    return 0;
}

int procmsg_page(const struct json_node *result, struct procmsg_page *out) {
    *out = (struct procmsg_page){0};
    if (result->type != JSON_OBJECT)
        return -EPROTO;
    const struct json_node *list = procmsg_get(result, "chunks");
    if (list == NULL || list->type != JSON_ARRAY ||
        procmsg_u64(result, "nextSeq", &out->next_seq) < 0 ||
        procmsg_bool(result, "exited", &out->exited) < 0 ||
        procmsg_bool(result, "closed", &out->closed) < 0 || procmsg_exit(result, &out->exit) < 0)
        return -EPROTO;
    int r = procmsg_page_chunks(list, out);
    if (r < 0)
        procmsg_page_fini(out);
    return r;
}

bool procmsg_list_find(const struct json_node *result, struct str id, struct procmsg_exit *exit) {
    const struct json_node *list =
        result != NULL && result->type == JSON_OBJECT ? procmsg_get(result, "processes") : NULL;
    if (list == NULL || list->type != JSON_ARRAY)
        return false;
    json_for_each(v, list) {
        struct str name;
        if (v->type != JSON_OBJECT || procmsg_str(v, "processId", &name) < 0 || !str_eq(name, id))
            continue;
        return procmsg_exit(v, exit) == 0;
    }
    return false;
}

static int procmsg_part(const struct json_node *result, const char *name,
                        struct procmsg_part *part) {
    const struct json_node *streams = procmsg_get(result, "streams");
    const struct json_node *v =
        streams != NULL && streams->type == JSON_OBJECT ? procmsg_get(streams, name) : NULL;
    if (v == NULL || v->type != JSON_OBJECT || procmsg_str(result, name, &part->base64) < 0 ||
        procmsg_u64(v, "headBytes", &part->head) < 0 ||
        procmsg_u64(v, "tailBytes", &part->tail) < 0 ||
        procmsg_u64(v, "omittedBytes", &part->omitted) < 0 ||
        procmsg_u64(v, "totalBytes", &part->total) < 0)
        return -EPROTO;
    return 0;
}

int procmsg_snapshot(const struct json_node *result, struct procmsg_snapshot *out) {
    static const char *const names[] = {"stdout", "stderr", "terminal"};
    *out = (struct procmsg_snapshot){.exited = false};
    if (result->type != JSON_OBJECT || procmsg_bool(result, "exited", &out->exited) < 0 ||
        procmsg_bool(result, "closed", &out->closed) < 0)
        return -EPROTO;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int r = procmsg_part(result, names[i], &out->parts[i]);
        if (r < 0)
            return r;
    }
    return procmsg_exit(result, &out->exit);
}

int procmsg_status(const struct json_node *result, enum procmsg_status *out) {
    static const char *const names[] = {"accepted", "stdinClosed", "starting", "unknownProcess"};
    struct str s;
    if (result->type != JSON_OBJECT || procmsg_str(result, "status", &s) < 0)
        return -EPROTO;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqz(s, names[i])) {
            *out = (enum procmsg_status)i;
            return 0;
        }
    }
    return -EPROTO;
}
