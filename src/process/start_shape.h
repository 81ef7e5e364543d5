#pragma once
/* What we add to the params of a start: the notes' shapes `direct`, `prepared`, `io`; `limits`. */

#include "process/start.h"

/* Which shape the params have; *inner becomes the object that holds the start's own fields. */
enum start_shape start_shape_of(const struct json_node *params, const struct json_node **inner);

/* {processId, request: {command, cwd, env, arg0?}, io, limits?, timeoutMs?}. 0, or -EINVAL. */
MUST_CHECK int start_shape_prepared(const struct json_node *v, struct start_params *p,
                                    struct err *e);

/*
 * Turns p->io ({"type":"pty","rows":r,"cols":c} or {"type":"pipe","stdin":"open"|"closed"}, in any
 * form of variant.h) into tty, pipe_stdin and size; a contradiction to those members is an error.
 */
MUST_CHECK int start_shape_io(struct start_params *p, struct err *e);

/* Reads p->limits_node into p->limits; unknown limits are refused, never ignored. */
MUST_CHECK int start_shape_limits(struct start_params *p, struct err *e);
