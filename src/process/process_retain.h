#pragma once
/*
 * What is kept of closed processes, and which of it their clients already have. Two bounds of the
 * server, each shared fairly by its sessions (retention.h): output, and the entries themselves. A
 * process that loses its output keeps its entry, and says so in process/read.
 *
 * An event counts as seen when the socket of its session's connection has taken it, or an answer of
 * process/read that covers it. When the connection ends, what the peer's host has not confirmed
 * counts as not seen.
 */

#include "process/process.h"

/* A process has closed: keeps its output and its entry for their time, within the bounds. */
void process_retain(struct process *p);

/* Takes back what process_retain() did; harmless otherwise. */
void process_retain_drop(struct process *p);

/* Event `seq` was just sent to the owner, if there is one. */
void process_retain_note_event(struct process *p, uint64_t seq);

/* An answer of n bytes that tells all events up to `seq` is about to be sent to the owner. */
void process_retain_note_read(struct process *p, uint64_t seq, size_t n);

/* The session's connection is gone; it is still s->peer. */
void process_retain_note_detach(struct session *s);

/* Whether output with a sequence number above `after` had to go. */
static inline bool process_has_lost(const struct process *p, uint64_t after) {
    return p->lost_seq > after;
}
