#pragma once
/*
 * How a process comes into the table.
 *
 * A start runs once. If its answer is lost, the server is asked for the id, which nothing else
 * uses: known, the process is adopted; unknown, the start is sent again, unless so much time has
 * passed that the process could have run and been forgotten.
 */

#include "client/prochub.h"

int procstart_start(struct xs_client *c, const struct xs_options *o, struct xs_process **out,
                    struct xs_call *k);
int procstart_adopt(struct xs_client *c, const char *id, uint64_t after, struct xs_process **out,
                    struct xs_call *k);
int procstart_view(struct xs_client *c, const char *session, const char *id, uint64_t after,
                   struct xs_process **out, struct xs_call *k);

/* Attaches a view, again if it was: its events go on after the last one. */
void procstart_attach(struct xs_process *view);

/* Stops looking. */
void procstart_detach(struct xs_process *view);
