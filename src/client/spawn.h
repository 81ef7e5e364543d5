#pragma once
/*
 * A child that serves on its standard input and output, which are one socket. It leads a group of
 * its own; the lines of its standard error go to the log.
 *
 * The caller of the library may wait for all its children and so take ours away; the child is then
 * taken as gone.
 */

#include "client/client_internal.h"

#define SPAWN_GRACE_MS 2000 /* from SIGTERM to SIGKILL */
#define SPAWN_LINE_MAX 1024 /* bytes of a line of its standard error; longer ones are cut */

struct spawn {
    struct xs_client *client; /* borrowed, for its loop and log */
    pid_t pid;                /* 0: none */
    struct loop_io pidfd;     /* fd -1: none */
    struct loop_io stderr_io;
    struct loop_timer kill;
    int signal, status; /* how it ended, once it is gone: a signal, or 0 and the exit status */
    /* Called inside the loop when it is reaped. Set by the owner. */
    void (*gone)(struct spawn *s);
    size_t line_len;
    char line[SPAWN_LINE_MAX];
};

void spawn_init(struct spawn *s, struct xs_client *c, void (*gone)(struct spawn *s));

/* Starts argv (its first word is looked up in PATH). `env`: NAME=VALUE, added to the environment;
 * `cwd` NULL: unchanged. Our end of the socket, which does not block; or XS_ELOCAL, XS_ENOMEM. */
MUST_CHECK int spawn_start(struct spawn *s, const char *const *argv, const char *const *env,
                           const char *cwd, struct xs_error *e);

/* Asks it to end: SIGTERM to its group now, SIGKILL after the grace. `gone` follows. */
void spawn_end(struct spawn *s);

/* Ends it as spawn_end() and waits for that. Closes everything. */
void spawn_fini(struct spawn *s);
