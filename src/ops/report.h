#pragma once
/*
 * What an operator hears of: each event is counted (metrics.h) and, where there is an audit log,
 * written there. Nothing of what a command reads or writes appears, and no environment; a session
 * is named by the first characters of its id only, for the id is all it takes to resume it.
 */

#include "process/job.h"
#include "ops/metrics.h"
#include "process/session.h"
#include "process/start.h"

#define REPORT_TEXT_MAX 1024 /* bytes of a reason, a path or a name */

/* Who asks for something that is told of later; owned. */
struct report_asker {
    char peer[SOCK_PEER_MAX];
    char session[SESSION_LOGGED + 1]; /* empty: none */
    char *client, *subject;           /* NULL: none */
};

void report_asker_init(struct report_asker *w, const struct conn *c, const struct session *s);
void report_asker_put(struct audit *a, const struct report_asker *w);
void report_asker_fini(struct report_asker *w);

/* -- connections -- */

/* A client has a session, a new one or one that it resumed. */
void report_session(const struct session *s, bool resumed);

/* Tells in sums of the refusals that have no line of their own (refusals.h). */
void report_refusals(struct server *s);

void report_connected(const struct conn *c);
void report_disconnected(const struct conn *c);

/* A connection or an HTTP request was turned away; status 0: without an answer. */
void report_turned_away(struct server *s, enum metrics_refusal why, const char *peer, int status,
                        const char *reason);

/* -- processes -- */

/* A start was refused before anything was tried. */
void report_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e);

/* The command runs; call while the strings of its start are there. */
void report_started(struct job *j);

/* The command could not be run; as above. */
void report_failed(struct job *j, const char *reason);

/* Its leader has ended; further calls for the same job do nothing. */
void report_exited(struct job *j);

void report_signal(const struct rpc_call *c, const struct job *j, int signo);

/* A terminate is about to be carried out. */
void report_terminate(const struct rpc_call *c, const struct job *j, uint64_t grace_ms);

/* n bytes for its stdin; `closing`: it is to end behind them. `status` as the client hears it. */
void report_write(const struct rpc_call *c, const struct job *j, size_t n, bool closing,
                  const char *status);

/* A connection begins to watch a process. */
void report_attach(const struct rpc_call *c, const struct job *j);
