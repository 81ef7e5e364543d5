#pragma once
/* The methods of the protocol. */

#include "rpc/rpc.h"
#include "process/job.h"

extern const struct rpc_method methods_table[];
extern const size_t methods_count;

/* -- helpers of the handlers -- */

/* RPC_DONE. A failed append (r < 0) leaves no result behind: the connection then ends with 1011. */
enum rpc_outcome method_done(struct buf *result, int r);
enum rpc_outcome method_text(struct buf *result, const char *json);

/*
 * The job that a request names, for methods that refuse unknown ids. NULL with e set, also while it
 * is starting.
 */
struct job *method_job(struct rpc_call *c, struct str id, struct err *e);
