#pragma once
/*
 * Events for the operator. Each one counts in the metrics and, if there is one, goes to the audit
 * log. The log never has input, output or the environment of a command. It names a session by the
 * first characters of its id only, because the whole id lets a client resume the session.
 */

#include "ops/ops.h"
#include "process/process.h"
#include "process/session.h"
#include "process/start.h"

/* Identifies the client of a connection and a session; each may be NULL. */
struct ops_who events_who(const struct conn *c, const struct session *s);

/* -- connections -- */

/* A client has got a new session, or resumed one. */
void events_session(const struct session *s, bool resumed);

void events_connected(struct ops *o, const struct conn *c);
void events_disconnected(struct ops *o, const struct conn *c);

/* Somebody has logged in at the console, who may only look, or `control`. */
void events_login(const struct session *s, bool control);

/* A page has asked for a link for another one. */
void events_link(const struct rpc_call *c);

/* -- processes -- */

/* The server refused a start before it tried anything. */
void events_refused(const struct rpc_call *c, const struct start_params *p, const struct err *e);

/* The command runs. The strings of its start must still be there. */
void events_started(struct process *p);

/* The command did not start. The strings of its start must still be there. */
void events_failed(struct process *p, const char *reason);

/* The leader has ended. Only the first call for a process counts. */
void events_exited(struct process *p);

void events_signal(const struct rpc_call *c, const struct process *p, int signo);

/* The server is about to terminate a process. */
void events_terminate(const struct rpc_call *c, const struct process *p, uint64_t grace_ms);

/* A client wrote n bytes to stdin, and `closing` ends it. `status` goes to the client, too. */
void events_write(const struct rpc_call *c, const struct process *p, size_t n, bool closing,
                  const char *status);

/* Somebody at the console has changed the size of a terminal; a client's own changes are not
 * logged. */
void events_resize(const struct rpc_call *c, const struct process *p, unsigned rows, unsigned cols);

/* The proxy of a process has decided about a request. */
void events_network(const struct process *p, const struct proxy_decision *d);

/* A connection watches a process from now on. */
void events_attach(const struct rpc_call *c, const struct process *p);
