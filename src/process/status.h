#pragma once
/* The state of a process as JSON members, the same in every answer and notification. */

#include "base/buf.h"
#include "proc/resources.h"
#include "process/job.h"

/*
 * "exited":..,"exitCode":..,"closed":..,"sandboxDenied":.. and what status_put_extra() adds.
 * `timed_out` is the name of the member that tells that the process's own time was up.
 */
MUST_CHECK int status_put(const struct job *j, const char *timed_out, struct buf *b);

/* ,"signal":..,TIMED_OUT:true: each where it applies. */
MUST_CHECK int status_put_extra(const struct proc *p, const char *timed_out, struct buf *b);

/* {"userTimeMs":..,"systemTimeMs":..,"peakMemoryBytes":..,"wallTimeMs":..} */
MUST_CHECK int status_put_resources(const struct proc *p, struct buf *b);

/* "starting", "running", "exited" or "closed". */
const char *status_word(const struct proc *p);

/* What confines it, in the words that clients know: "none" or "linuxSeccomp". */
const char *status_sandbox(const struct job *j);
