#pragma once
/*
 * What the operator sees: counters (metrics.h) and the audit log (audit.h). The rooms above report
 * their events here; this room knows none of their types.
 */

#include "base/log.h"
#include "loop/loop.h"
#include "ops/audit.h"
#include "ops/metrics.h"
#include "ops/refusals.h"

#define OPS_TEXT_MAX 1024    /* bytes of a reason, a path or a name */
#define OPS_FIELDS_MAX 6     /* of a line in the log, without those of ops_who */
#define OPS_SESSION_LOGGED 8 /* characters of a session id that logs show: the id is a secret */

struct ops {
    struct loop *loop;
    struct metrics metrics;
    struct audit audit;
    struct refusals refusals;
    struct loop_timer refusals_timer; /* runs while counted refusals wait for their line */
};

/* Who asked for something; borrowed. Each may be NULL or empty. */
struct ops_who {
    const char *peer;    /* address */
    const char *session; /* id; the log gets only OPS_SESSION_LOGGED characters */
    const char *client;  /* name that the client gave */
    const char *subject; /* of the token */
    bool console;        /* somebody at the console */
};

/* `path` is the audit log, or NULL. 0, or -errno with e set. */
MUST_CHECK int ops_init(struct ops *o, struct loop *loop, const char *path, struct err *e);

/* Writes the rest of the log, in a bounded time. */
void ops_fini(struct ops *o);

/* Adds the members of `who` to the line in the making. */
void ops_put_who(struct ops *o, const struct ops_who *who);

/*
 * Writes a line to the log: `message` with the fields, at most OPS_FIELDS_MAX, and those of `who`.
 * Empty fields are left out.
 */
void ops_log(enum log_level level, const char *message, const struct log_field *fields,
             size_t count, const struct ops_who *who);

/* A connection or an HTTP request was turned away; status 0: without an answer. */
void ops_turned_away(struct ops *o, enum metrics_refusal why, const char *peer, int status,
                     const char *reason);
