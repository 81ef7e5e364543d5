#pragma once
/* The state of a process as JSON members, alike in every answer and notification. */

#include "base/util.h"

struct buf;
struct proc;
struct process;

/*
 * "exited":..,"exitCode":..,"closed":..,"sandboxDenied":.. and process_json_put_extra().
 * `timed_out` names the member that tells that the process's own timeout ended it.
 */
MUST_CHECK int process_json_put(const struct process *p, const char *timed_out, struct buf *b);

/* ,"signal":..,TIMED_OUT:true, each only if it applies. */
MUST_CHECK int process_json_put_extra(const struct proc *p, const char *timed_out, struct buf *b);

/* {"userTimeMs":..,"systemTimeMs":..,"peakMemoryBytes":..,"wallTimeMs":..} */
MUST_CHECK int process_json_put_resources(const struct proc *p, struct buf *b);

/* "starting", "running", "exited" or "closed". */
const char *process_json_word(const struct proc *p);

/* The sandbox, in words that clients know: "none" or "linuxSeccomp". */
const char *process_json_sandbox(const struct process *p);
