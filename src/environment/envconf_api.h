#pragma once
/* The method environmentConfig/read. */

#include "base/arena.h"
#include "json/jsondec.h"
#include "rpc/rpc.h"

#define ENVCONF_API_ARENA_MAX (8u << 20) /* bytes of a request's paths */

struct envconf_params {
    struct str cwd;
    const struct json_node *config, *requirements; /* arrays of arrays of strings */
    char *native;                                  /* owned; of cwd */
};

/* decode, run and release of the method (rpc/rpc.h). */
MUST_CHECK int envconf_api_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome envconf_api_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e);
void envconf_api_release(void *params);
