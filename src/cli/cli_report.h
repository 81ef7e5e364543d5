#pragma once
/* How a command ended, for --status-fd: one JSON line that tells one status 255 from another. */

#include "cli/cli.h"

enum cli_report_kind {
    CLI_REPORT_EXITED,
    CLI_REPORT_SIGNALED,
    CLI_REPORT_TIMED_OUT,
    CLI_REPORT_CANNOT_RUN, /* the start failed: 126, 127 */
    CLI_REPORT_NOT_CONNECTED,
    CLI_REPORT_LOST, /* the session, or the knowledge of it */
    CLI_REPORT_OUTPUT_LOST,
    CLI_REPORT_INTERRUPTED, /* xs got a signal */
    CLI_REPORT_LEFT,        /* ~. */
    CLI_REPORT_READER_GONE,
    CLI_REPORT_OUTPUT_FAILED,
    CLI_REPORT_DETACHED,
};

/*
 * Checks the descriptor of --status-fd before xs opens one of its own, and keeps it from programs
 * that xs starts. 0 or an exit status.
 */
int cli_report_open(struct cli *c);

/* Writes the line if --status-fd was given; `exit`, `error` and `name` may be NULL. Returns
 * `status`, the exit status that it tells. */
int cli_report(struct cli *c, int status, enum cli_report_kind kind, const struct xs_exit *exit,
               const char *error, const char *name);
