#pragma once
/* The method capabilityRoots/discoverV1. */

#include "base/arena.h"
#include "environment/discover.h"
#include "json/jsondec.h"
#include "rpc/rpc.h"

#define CAPABILITY_ROOTS_MAX 128
#define CAPABILITY_ROOTS_ARENA_MAX (16u << 20) /* bytes of a request's ids and paths */
/* Bytes of an answer. A root whose files do not fit has an error instead. */
#define CAPABILITY_ROOTS_RESULT_MAX FS_RESULT_MAX

struct capability_roots_params {
    const struct json_node *roots;
};

/* decode and run of the method (rpc/rpc.h). */
MUST_CHECK int capability_roots_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome capability_roots_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e);

/* Appends a file that was read, or null. 0 or as buf_reserve(). */
MUST_CHECK int capability_roots_put_file(struct buf *b, const struct discover_file *f);
