#pragma once
/*
 * Figures for an operator. Counters are plain numbers that the loop's thread increments; everything
 * else is gathered when somebody asks (GET /metrics), in Prometheus text format 0.0.4.
 */

#include "base/buf.h"
#include "rpc/rpc.h"

/* Why a connection or an HTTP request was turned away. */
enum metrics_refusal {
    METRICS_ORIGIN,   /* 403: it came from a web page */
    METRICS_HOST,     /* 403: /metrics by an unknown name, or from a browser */
    METRICS_AUTH,     /* 401 */
    METRICS_CAPACITY, /* 503: --max-connections */
    METRICS_USER,     /* a Unix socket, and another user */
    METRICS_REFUSALS
};

enum metrics_exit { METRICS_SUCCESS, METRICS_FAILURE, METRICS_SIGNAL, METRICS_EXITS };

/* What is counted as it happens; all zero at first. */
struct metrics {
    uint64_t connections; /* ever accepted */
    uint64_t refused[METRICS_REFUSALS];
    uint64_t starts;         /* commands that ran */
    uint64_t starts_failed;  /* that could not be run */
    uint64_t starts_refused; /* that were not even tried */
    uint64_t exits[METRICS_EXITS];
    uint64_t timeouts; /* of those, by their own time limit */
    uint64_t output_bytes, input_bytes;
};

#define METRICS_STATES 4 /* of enum proc_state */

/* What is looked up when asked for. */
struct metrics_now {
    double uptime, started, cpu; /* seconds; started: Unix time */
    uint64_t connections, attached, detached;
    uint64_t processes[METRICS_STATES];
    uint64_t supervisors;
    uint64_t retained_open, retained_closed;                        /* bytes of output */
    uint64_t output_queue, request_queue, stdin_queue, write_queue; /* bytes */
    uint64_t queued_requests, parked_calls;
    uint64_t memory, fds, max_fds;
    uint64_t audit_dropped, log_dropped; /* lines, ever */
};

/* Adds the figures of the process itself. */
void metrics_look(struct metrics_now *now);

/* Appends the text. 0 or as buf_reserve(). */
MUST_CHECK int metrics_format(const struct metrics *m, const struct metrics_now *now,
                              const struct rpc_host *rpc, struct buf *b);
