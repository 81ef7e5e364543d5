#pragma once
/*
 * What an operator hears of: each event is counted (metrics.h) and, where there is an audit log,
 * written there. Nothing of what a command reads or writes appears, and no environment; a session
 * is named by the first characters of its id only, for the id is all it takes to resume it.
 */

#include "ops/ops.h"
#include "process/process.h"
#include "process/session.h"
#include "process/start.h"

/* Who is behind a connection and a session; each may be NULL. */
struct ops_who events_who(const struct conn *c, const struct session *s);

/* -- connections -- */

/* A client has a session, a new one or one that it resumed. */
void events_session(const struct session *s, bool resumed);

void events_connected(struct ops *o, const struct conn *c);
void events_disconnected(struct ops *o, const struct conn *c);

/* -- processes -- */

/* A start was refused before anything was tried. */
void events_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e);

/* The command runs; call while the strings of its start are there. */
void events_started(struct process *p);

/* The command could not be run; as above. */
void events_failed(struct process *p, const char *reason);

/* Its leader has ended; further calls for the same process do nothing. */
void events_exited(struct process *p);

void events_signal(const struct rpc_call *c, const struct process *p, int signo);

/* A terminate is about to be carried out. */
void events_terminate(const struct rpc_call *c, const struct process *p, uint64_t grace_ms);

/* n bytes for its stdin; `closing`: it is to end behind them. `status` as the client hears it. */
void events_write(const struct rpc_call *c, const struct process *p, size_t n, bool closing,
                  const char *status);

/* A connection begins to watch a process. */
void events_attach(const struct rpc_call *c, const struct process *p);
