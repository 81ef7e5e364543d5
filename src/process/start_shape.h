#pragma once
/* Our additions to the params of a start: the shapes `direct`, `prepared` and `io`; `limits`. */

#include "process/start.h"

/* The shape of the params; *inner becomes the object with the start's own fields. */
enum start_shape start_shape_of(const struct json_node *params, const struct json_node **inner);

/* {processId, request: {command, cwd, env, arg0?}, io, limits?, timeoutMs?}. 0, or -EINVAL. */
MUST_CHECK int start_shape_prepared(const struct json_node *v, struct start_params *p,
                                    struct err *e);

/* Turns p->io ({"type":"pty","rows":r,"cols":c} or {"type":"pipe","stdin":"open"|"closed"}, in any
 * form of variant.h) into tty, pipe_stdin and size. Refuses what contradicts those members. */
MUST_CHECK int start_shape_io(struct start_params *p, struct err *e);

/* Reads p->limits_node into p->limits; refuses unknown limits, never ignores them. */
MUST_CHECK int start_shape_limits(struct start_params *p, struct err *e);
