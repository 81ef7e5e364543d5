#pragma once
/*
 * Metrics in Prometheus text format 0.0.4. The loop's thread increments plain counters; GET
 * /metrics gathers everything else.
 */

#include "base/buf.h"
#include "rpc/rpc.h"

/* Why a connection or an HTTP request was turned away. */
enum metrics_refusal {
    METRICS_ORIGIN,   /* 403: from a web page */
    METRICS_HOST,     /* 403: /metrics by an unknown name, or from a browser */
    METRICS_AUTH,     /* 401 */
    METRICS_CAPACITY, /* 503: --max-connections */
    METRICS_USER,     /* another user on a Unix socket */
    METRICS_REFUSALS
};

enum metrics_exit { METRICS_SUCCESS, METRICS_FAILURE, METRICS_SIGNAL, METRICS_EXITS };

#define METRICS_DECISIONS 3

#define METRICS_TOKENS 64 /* names of tokens that are told apart; more count together */

/* Connections that showed a token with a name. */
struct metrics_token {
    char *name; /* owned; NULL = free */
    uint64_t logins;
};

/* Counters; all zero at first. */
struct metrics {
    uint64_t connections; /* ever accepted */
    uint64_t refused[METRICS_REFUSALS];
    uint64_t starts;         /* commands that ran */
    uint64_t starts_failed;  /* commands that did not start */
    uint64_t starts_refused; /* starts that the server refused */
    uint64_t exits[METRICS_EXITS];
    uint64_t timeouts; /* exits by the command's own time limit */
    uint64_t output_bytes, input_bytes;
    uint64_t network[METRICS_DECISIONS]; /* of proxies, by enum proxy_answer */
    struct metrics_token tokens[METRICS_TOKENS];
    uint64_t other_logins; /* with tokens beyond METRICS_TOKENS */
};

#define METRICS_STATES 4 /* of enum proc_state */

/* Values gathered for one page. */
struct metrics_now {
    double uptime, started, cpu; /* seconds; started: Unix time */
    uint64_t connections, attached, detached;
    uint64_t processes[METRICS_STATES];
    uint64_t supervisors;
    uint64_t retained_open, retained_closed;                        /* bytes of output */
    uint64_t output_queue, request_queue, stdin_queue, write_queue; /* bytes */
    uint64_t queued_requests, yielded_calls;
    uint64_t memory, fds, max_fds;
    uint64_t audit_dropped, log_dropped; /* lines, ever */
};

/* Counts a connection with a token of that name. */
void metrics_login(struct metrics *m, const char *name);
void metrics_fini(struct metrics *m);

/* Adds the values of the server's own process. */
void metrics_look(struct metrics_now *now);

/* Appends the text. 0 or as buf_reserve(). */
MUST_CHECK int metrics_format(const struct metrics *m, const struct metrics_now *now,
                              const struct rpc_host *rpc, struct buf *b);
