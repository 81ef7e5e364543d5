#pragma once
/*
 * Retention of closed processes. The server bounds their output and their entries; sessions share
 * each bound fairly (retention.h), and output that clients already have goes first. A process that
 * loses its output keeps its entry, and process/read tells the client.
 *
 * An event counts as seen once the socket of its session's connection has taken it, or an answer to
 * process/read that covers it. When the connection ends, bytes that the peer has not acknowledged
 * count as not seen. Output that must be acknowledged (proc_keep_unacked()) counts as not seen
 * until it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process;
struct session;

/* A process has closed: keeps its output and its entry for a time, within the bounds. */
void process_retain(struct process *p);

/* Undoes process_retain(); harmless without one. */
void process_retain_drop(struct process *p);

/* The owner, if there is one, has just been sent event `seq`. */
void process_retain_note_event(struct process *p, uint64_t seq);

/* The owner is about to be sent an answer of n bytes with all events up to `seq`. */
void process_retain_note_read(struct process *p, uint64_t seq, size_t n);

/* The client has acknowledged events, or need not any more. */
void process_retain_note_ack(struct process *p);

/* The session's connection is gone; s->peer still names it. */
void process_retain_note_detach(struct session *s);

/* Whether output with a sequence number above `after` was evicted. */
bool process_retain_has_lost(const struct process *p, uint64_t after);
