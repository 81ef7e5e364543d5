#include "ops/metrics.h"

#include "base/log.h"
#include "base/scan.h"
#include "proc/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* -- text -- */

/* A text under construction; the first failure sticks. */
struct metrics_text {
    struct buf *b;
    int r;
};

#define METRICS_ADD(t, ...)                                                                        \
    do {                                                                                           \
        if ((t)->r == 0)                                                                           \
            (t)->r = buf_putf((t)->b, __VA_ARGS__);                                                \
    } while (0)

static void metrics_head(struct metrics_text *t, const char *name, const char *type,
                         const char *help) {
    METRICS_ADD(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_one(struct metrics_text *t, const char *name, const char *type,
                        const char *help, uint64_t value) {
    metrics_head(t, name, type, help);
    METRICS_ADD(t, "%s %" PRIu64 "\n", name, value);
}

static void metrics_seconds(struct metrics_text *t, const char *name, const char *type,
                            const char *help, double value) {
    metrics_head(t, name, type, help);
    METRICS_ADD(t, "%s %.3f\n", name, value);
}

/* One value of a family with one label. */
static void metrics_labelled(struct metrics_text *t, const char *name, const char *label,
                             const char *word, uint64_t value) {
    METRICS_ADD(t, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, word, value);
}

static void metrics_family(struct metrics_text *t, const char *name, const char *label,
                           const char *const *words, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        metrics_labelled(t, name, label, words[i], values[i]);
}

/* The buckets of a histogram count what is at most their bound. */
static void metrics_latency(struct metrics_text *t, const char *name, const char *help,
                            const struct rpc_latency *l) {
    uint64_t count = 0;
    metrics_head(t, name, "histogram", help);
    for (size_t i = 0; i < RPC_BUCKETS; i++) {
        count += l->buckets[i];
        METRICS_ADD(t, "%s_bucket{le=\"%.10g\"} %" PRIu64 "\n", name,
                    (double)rpc_bucket_ns[i] / 1e9, count);
    }
    count += l->buckets[RPC_BUCKETS];
    METRICS_ADD(t, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
    METRICS_ADD(t, "%s_sum %.6f\n%s_count %" PRIu64 "\n", name, (double)l->sum / 1e9, name, count);
}

static void metrics_logins(struct metrics_text *t, const struct metrics *m) {
    static const char name[] = "exec_server_token_logins_total";
    metrics_head(t, name, "counter", "Connections by the name of their token.");
    for (size_t i = 0; i < METRICS_TOKENS && m->tokens[i].name != NULL; i++)
        metrics_labelled(t, name, "token", m->tokens[i].name, m->tokens[i].logins);
    if (m->other_logins > 0)
        metrics_labelled(t, name, "token", "", m->other_logins);
}

static void metrics_connections(struct metrics_text *t, const struct metrics *m,
                                const struct metrics_now *now) {
    static const char refused[] = "exec_server_refusals_total";
    static const char *const reasons[METRICS_REFUSALS] = {[METRICS_ORIGIN] = "origin",
                                                          [METRICS_HOST] = "host",
                                                          [METRICS_AUTH] = "auth",
                                                          [METRICS_CAPACITY] = "capacity",
                                                          [METRICS_USER] = "user"};
    static const char sessions[] = "exec_server_sessions";
    metrics_one(t, "exec_server_connections", "gauge", "Connections now.", now->connections);
    metrics_one(t, "exec_server_connections_accepted_total", "counter",
                "Connections ever accepted.", m->connections);
    metrics_head(t, refused, "counter", "Connections and HTTP requests turned away.");
    metrics_family(t, refused, "reason", reasons, m->refused, METRICS_REFUSALS);
    metrics_logins(t, m);
    metrics_head(t, sessions, "gauge", "Sessions, with and without a connection.");
    metrics_labelled(t, sessions, "state", "attached", now->attached);
    metrics_labelled(t, sessions, "state", "detached", now->detached);
}

static void metrics_processes(struct metrics_text *t, const struct metrics *m,
                              const struct metrics_now *now) {
    static const char states[] = "exec_server_processes";
    static const char *const state_words[METRICS_STATES] = {[PROC_STARTING] = "starting",
                                                            [PROC_RUNNING] = "running",
                                                            [PROC_EXITED] = "exited",
                                                            [PROC_CLOSED] = "closed"};
    static const char failures[] = "exec_server_process_start_failures_total";
    static const char decisions[] = "exec_server_network_decisions_total";
    static const char *const decision_words[METRICS_DECISIONS] = {"allow", "deny", "ask"};
    static const char exits[] = "exec_server_process_exits_total";
    static const char *const exit_words[METRICS_EXITS] = {
        [METRICS_SUCCESS] = "success", [METRICS_FAILURE] = "failure", [METRICS_SIGNAL] = "signal"};
    metrics_head(t, states, "gauge", "Processes in the tables of sessions.");
    metrics_family(t, states, "state", state_words, now->processes, METRICS_STATES);
    metrics_one(t, "exec_server_supervisors", "gauge",
                "Supervisors: one for each command of which something is alive.", now->supervisors);
    metrics_one(t, "exec_server_process_starts_total", "counter", "Processes started.", m->starts);
    metrics_head(t, failures, "counter", "Starts that were refused, or failed.");
    metrics_labelled(t, failures, "reason", "refused", m->starts_refused);
    metrics_labelled(t, failures, "reason", "failed", m->starts_failed);
    metrics_head(t, exits, "counter", "Ends of processes: exit code 0, another code, a signal.");
    metrics_family(t, exits, "kind", exit_words, m->exits, METRICS_EXITS);
    metrics_head(t, decisions, "counter", "Decisions of the proxies of processes.");
    metrics_family(t, decisions, "decision", decision_words, m->network, METRICS_DECISIONS);
    metrics_one(t, "exec_server_process_timeouts_total", "counter",
                "Processes ended by their time limit.", m->timeouts);
}

static void metrics_requests(struct metrics_text *t, const struct rpc_host *rpc) {
    static const char name[] = "exec_server_requests_total";
    metrics_head(t, name, "counter",
                 "Requests by method and outcome; dropped: the connection ended first.");
    for (size_t i = 0; i <= rpc->method_count; i++) {
        const char *method = i < rpc->method_count ? rpc->methods[i].name : "unknown";
        const struct rpc_tally *n = &rpc->tallies[i];
        METRICS_ADD(t, "%s{method=\"%s\",outcome=\"result\"} %" PRIu64 "\n", name, method,
                    n->results);
        METRICS_ADD(t, "%s{method=\"%s\",outcome=\"error\"} %" PRIu64 "\n", name, method,
                    n->errors);
        METRICS_ADD(t, "%s{method=\"%s\",outcome=\"dropped\"} %" PRIu64 "\n", name, method,
                    n->dropped);
    }
    metrics_latency(t, "exec_server_start_seconds", "Time from a start to its answer.",
                    &rpc->latency[RPC_TIMED_START]);
    metrics_latency(t, "exec_server_file_call_seconds", "Time from a file call to its answer.",
                    &rpc->latency[RPC_TIMED_FILES]);
    metrics_one(t, "exec_server_malformed_messages_total", "counter",
                "Messages that could not be parsed.", rpc->malformed);
}

static void metrics_bytes(struct metrics_text *t, const struct metrics *m,
                          const struct metrics_now *now) {
    static const char retained[] = "exec_server_retained_output_bytes";
    static const char queues[] = "exec_server_queue_bytes";
    static const char *const queue_words[] = {"output", "requests", "stdin", "writes"};
    const uint64_t queue_bytes[] = {now->output_queue, now->request_queue, now->stdin_queue,
                                    now->write_queue};
    metrics_one(t, "exec_server_output_bytes_total", "counter", "Bytes read from processes.",
                m->output_bytes);
    metrics_one(t, "exec_server_input_bytes_total", "counter",
                "Bytes accepted for the stdin of processes.", m->input_bytes);
    metrics_head(t, retained, "gauge", "Output kept for later reading.");
    metrics_labelled(t, retained, "state", "open", now->retained_open);
    metrics_labelled(t, retained, "state", "closed", now->retained_closed);
    metrics_head(t, queues, "gauge",
                 "Bytes that wait: output to clients, requests not begun, input to processes, "
                 "writes that stepped aside.");
    metrics_family(t, queues, "queue", queue_words, queue_bytes, ARRAY_LEN(queue_words));
    metrics_one(t, "exec_server_queued_requests", "gauge", "Requests not begun.",
                now->queued_requests);
    metrics_one(t, "exec_server_parked_calls", "gauge", "Requests that stepped aside to wait.",
                now->yielded_calls);
}

static void metrics_self(struct metrics_text *t, const struct metrics_now *now) {
    metrics_one(t, "exec_server_audit_lines_dropped_total", "counter",
                "Lines missing in the audit log.", now->audit_dropped);
    metrics_one(t, "exec_server_log_lines_dropped_total", "counter",
                "Lines missing in the log on standard error.", now->log_dropped);
    metrics_one(t, "process_resident_memory_bytes", "gauge", "Resident memory of the server.",
                now->memory);
    metrics_one(t, "process_open_fds", "gauge", "Open descriptors of the server.", now->fds);
    metrics_one(t, "process_max_fds", "gauge", "Its limit of open descriptors.", now->max_fds);
    metrics_seconds(t, "process_cpu_seconds_total", "counter",
                    "CPU time of the server without its commands.", now->cpu);
    metrics_seconds(t, "process_start_time_seconds", "gauge", "Unix time of its start.",
                    now->started);
}

int metrics_format(const struct metrics *m, const struct metrics_now *now,
                   const struct rpc_host *rpc, struct buf *b) {
    struct metrics_text t = {.b = b};
    metrics_head(&t, "exec_server_build_info", "gauge", "The version, as a label.");
    metrics_labelled(&t, "exec_server_build_info", "version", EXEC_SERVER_VERSION, 1);
    metrics_seconds(&t, "exec_server_uptime_seconds", "gauge", "Time since the start.",
                    now->uptime);
    metrics_connections(&t, m, now);
    metrics_processes(&t, m, now);
    metrics_requests(&t, rpc);
    metrics_bytes(&t, m, now);
    metrics_self(&t, now);
    return t.r;
}

void metrics_login(struct metrics *m, const char *name) {
    for (size_t i = 0; i < METRICS_TOKENS; i++) {
        struct metrics_token *t = &m->tokens[i];
        if (t->name == NULL)
            t->name = strdup(name);
        if (t->name != NULL && strcmp(t->name, name) == 0) {
            t->logins++;
            return;
        }
    }
    m->other_logins++;
}

void metrics_fini(struct metrics *m) {
    for (size_t i = 0; i < METRICS_TOKENS; i++)
        free(m->tokens[i].name);
}

/* -- figures -- */

static uint64_t metrics_memory(void) {
    char text[128];
    unsigned long pages = 0;
    _cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (!scan_word(text, 1, &pages))
        return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t metrics_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    uint64_t n = 0;
    if (d == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* without the descriptor of this directory */
}

static double metrics_cpu(void) {
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void metrics_look(struct metrics_now *now) {
    struct rlimit nofile;
    now->cpu = metrics_cpu();
    now->memory = metrics_memory();
    now->fds = metrics_fds();
    now->log_dropped = log_dropped_total();
    if (getrlimit(RLIMIT_NOFILE, &nofile) == 0)
        now->max_fds = nofile.rlim_cur;
}
