#pragma once
/*
 * Lines on their way to a file, and the thread that writes them (see audit.h). One other thread
 * makes all calls. Only audit_ring_new() and audit_ring_close() wait for the file.
 */

#include "base/err.h"

#include <stdint.h>

#define AUDIT_RING (1u << 20) /* bytes that wait to be written */
#define AUDIT_RETRY_MS 1000   /* between attempts if the file takes nothing */
#define AUDIT_CLOSE_MS 5000   /* in one system call, until a log that is closed is given up */
#define AUDIT_CLOSE_ROUNDS 48 /* of that time in all: 4 min */
#define AUDIT_TIME_LEN 24     /* "2026-01-02T03:04:05.678Z" */

struct audit_ring;

/*
 * Opens the file (O_APPEND, made with mode 0600) and starts the thread, with all signals blocked.
 * NULL with e set. A FIFO need not have a reader.
 */
struct audit_ring *audit_ring_new(const char *path, struct err *e);

/*
 * Lets the thread write the rest, then frees everything; NULL is allowed. It gives up when the file
 * takes nothing: a call fails, or sleeps in the kernel for AUDIT_CLOSE_MS. A thread that only waits
 * for the CPU does not count as such, up to AUDIT_CLOSE_ROUNDS. Logs how many lines were lost.
 */
void audit_ring_close(struct audit_ring *r);

/* Appends whole lines with their ends. Without room it drops them and counts one. */
void audit_ring_put(struct audit_ring *r, const char *line, size_t n);

/* Counts a line that was lost for want of memory. */
void audit_ring_drop(struct audit_ring *r);

/* Lets the thread open the file again by its name; if that fails it keeps the old one. */
void audit_ring_reopen(struct audit_ring *r);

/* Bytes that wait to be written. */
size_t audit_ring_waiting(struct audit_ring *r);

/* The number of dropped lines so far. */
uint64_t audit_ring_dropped(struct audit_ring *r);

/* The present time in UTC, as in RFC 3339. */
void audit_ring_time(char dst[AUDIT_TIME_LEN + 1]);
