#pragma once
/* The sandbox object of the protocol, from the options SANDBOX, WRITABLE, NETWORK, SANDBOX_JSON. */

#include "client/client_internal.h"

/*
 * Appends the member `sandbox`, or nothing if the options ask for none. `cwd`: the directory that
 * workspace-write makes writable; NULL: the server's. 0; XS_EINVAL with *e.
 */
MUST_CHECK int sandboxparams_put(struct params *p, const struct xs_client *c,
                                 const struct xs_options *o, const char *cwd, struct xs_error *e);
