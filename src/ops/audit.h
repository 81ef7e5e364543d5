#pragma once
/*
 * The audit log: one JSON line per event, appended to a file.
 *
 * The loop never waits for the file. It appends lines to a ring of AUDIT_RING bytes; one thread
 * writes the ring out. While the ring is full, the log drops and counts lines, and puts
 * {"ts":..,"event":"dropped","count":N} in their place. If the file takes nothing (a full disk),
 * the thread retries every AUDIT_RETRY_MS. A file that blocks (a FIFO without a reader) blocks only
 * the thread.
 */

#include "base/buf.h"
#include "ops/audit_ring.h"
#include "ops/audit_tail.h"
#include "ops/redact.h"

#define AUDIT_LINE_MAX (128u << 10) /* bytes of a line; a longer one counts as dropped */
#define AUDIT_ARGV_MAX 4096         /* bytes of a command line */

struct audit {
    struct audit_ring *ring; /* owned; NULL: there is no file */
    struct audit_tail *tail; /* borrowed; NULL: nobody watches */
    struct buf line;         /* the line in the making */
    bool bad;                /* the line is too long, or memory is short */
};

/* An argv in the making. */
struct audit_argv {
    struct redact redact;
    size_t room;
    bool cut;
};

/* Opens the log. 0, or -errno with e set. */
MUST_CHECK int audit_open(struct audit *a, const char *path, struct err *e);

/* Lines go to this tail too, even if there is no file; NULL ends that. */
void audit_watch(struct audit *a, struct audit_tail *tail);

/* Writes the rest of the ring, in a bounded time. Harmless if there is no log. */
void audit_close(struct audit *a);

/* After the file was moved away: opens a new one of that name. */
void audit_reopen(struct audit *a);

/*
 * Whether there is room for lines that anybody can cause. They get an eighth of the ring, so that
 * they never displace others.
 */
bool audit_has_share(const struct audit *a);

/* Counts a line that was lost for want of memory. */
void audit_lost(struct audit *a);

/* The number of dropped lines so far. */
uint64_t audit_dropped(const struct audit *a);

static inline bool audit_has_file(const struct audit *a) {
    return a->ring != NULL;
}

/* Whether lines are wanted. */
static inline bool audit_enabled(const struct audit *a) {
    return a->ring != NULL || a->tail != NULL;
}

/*
 * Between audit_begin() and audit_end() the caller adds members to a line; lines must be wanted.
 * Texts may hold any bytes and are cut at `max`; invalid UTF-8 is replaced. Names are literals.
 */
void audit_begin(struct audit *a, const char *event);
void audit_text(struct audit *a, const char *name, struct str value, size_t max);
void audit_json(struct audit *a, const char *name, struct str json);
void audit_number(struct audit *a, const char *name, int64_t value);
void audit_flag(struct audit *a, const char *name, bool value);
void audit_end(struct audit *a);

/* Adds "argv":[..] argument by argument, without secrets, cut at AUDIT_ARGV_MAX. */
void audit_argv_begin(struct audit *a, struct audit_argv *v);
void audit_argv_add(struct audit *a, struct audit_argv *v, struct str arg);
void audit_argv_end(struct audit *a, struct audit_argv *v);
