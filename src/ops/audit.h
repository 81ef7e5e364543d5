#pragma once
/*
 * The audit log: one JSON line per event, appended to a file.
 *
 * The loop never waits for the file. It appends lines to a ring of AUDIT_RING bytes; one thread
 * writes the ring out. While the ring is full lines are dropped and counted, and a line
 * {"ts":..,"event":"dropped","count":N} stands where they are missing. A file that takes nothing (a
 * full disk) is tried again every AUDIT_RETRY_MS; a file that blocks (a FIFO that nobody reads)
 * holds up the thread alone.
 */

#include "base/buf.h"
#include "ops/audit_ring.h"
#include "ops/redact.h"

#define AUDIT_LINE_MAX (128u << 10) /* bytes of a line; a longer one counts as dropped */
#define AUDIT_ARGV_MAX 4096         /* bytes of a command line */

struct audit {
    struct audit_ring *ring; /* owned; NULL: there is no log */
    struct buf line;         /* the one being put together */
    bool bad;                /* it is too long, or memory is short */
};

/* An argv on its way into a line. */
struct audit_argv {
    struct redact redact;
    size_t room;
    bool cut;
};

/* Opens the log. 0, or -errno with e set. */
MUST_CHECK int audit_open(struct audit *a, const char *path, struct err *e);

/* Writes what is left, in a bounded time. Harmless if there is no log. */
void audit_close(struct audit *a);

/* The file was moved away: goes on in a new one of the same name. */
void audit_reopen(struct audit *a);

/*
 * Whether lines that anybody can cause may be written: they have an eighth of the ring, so that
 * they never take the place of others.
 */
bool audit_has_share(const struct audit *a);

/* Counts a line that could not be made. */
void audit_lost(struct audit *a);

/* Lines that were ever dropped. */
uint64_t audit_dropped(const struct audit *a);

static inline bool audit_enabled(const struct audit *a) {
    return a->ring != NULL;
}

/*
 * A line is put together between audit_begin() and audit_end(), in a log that is open. Texts may
 * hold any bytes and are cut at `max`; what is not UTF-8 is replaced. Member names are literals.
 */
void audit_begin(struct audit *a, const char *event);
void audit_text(struct audit *a, const char *name, struct str value, size_t max);
void audit_json(struct audit *a, const char *name, struct str json);
void audit_number(struct audit *a, const char *name, int64_t value);
void audit_flag(struct audit *a, const char *name, bool value);
void audit_end(struct audit *a);

/* "argv":[..] in such a line, argument by argument: secrets taken out, cut at AUDIT_ARGV_MAX. */
void audit_argv_begin(struct audit *a, struct audit_argv *v);
void audit_argv_add(struct audit *a, struct audit_argv *v, struct str arg);
void audit_argv_end(struct audit *a, struct audit_argv *v);
