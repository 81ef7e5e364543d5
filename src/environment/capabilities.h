#pragma once
/* The method capabilities/discoverV2. */

#include "environment/plugins.h"
#include "json/jsondec.h"
#include "rpc/rpc.h"

#define CAPABILITIES_MAX 2048              /* skills and plugins of an answer */
#define CAPABILITIES_RESULT_MAX (4u << 20) /* bytes of an answer */
#define CAPABILITIES_WARNINGS_MAX 64

struct capabilities_params {
    struct str cwd;
    const struct json_node *sandbox;
};

/* decode and run of the method (rpc/rpc.h). */
MUST_CHECK int capabilities_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome capabilities_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e);
