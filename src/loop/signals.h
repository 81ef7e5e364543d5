#pragma once
/* The signals that a program with a loop takes as events. */

/* Blocks SIGCHLD, SIGHUP, SIGINT and SIGTERM. Returns a nonblocking descriptor that reads them
 * (struct signalfd_siginfo), which the caller closes; or -errno. Ignores SIGPIPE, and undoes an
 * inherited SIG_IGN for SIGCHLD, which would lose exit codes. */
int signals_open(void);
