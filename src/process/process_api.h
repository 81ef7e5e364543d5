#pragma once
/* The process methods, except process/start: a decode and a run step for each (rpc/rpc.h). */

#include "rpc/rpc.h"

#define PROCESS_API_METHOD(name)                                                                   \
    int name##_decode(const struct json_node *params, void *out, struct err *e);                   \
    enum rpc_outcome name##_run(struct rpc_call *c, void *params, struct buf *result, struct err *e)

/* process_api.c */
PROCESS_API_METHOD(process_api_read);
PROCESS_API_METHOD(process_api_wait);
PROCESS_API_METHOD(process_api_write);
PROCESS_API_METHOD(process_api_close_stdin);
PROCESS_API_METHOD(process_api_resize);
PROCESS_API_METHOD(process_api_ack);

/* process_end.c */
PROCESS_API_METHOD(process_end_signal);
PROCESS_API_METHOD(process_end_terminate);

/* process_view.c */
PROCESS_API_METHOD(process_view_snapshot);
enum rpc_outcome process_view_list_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e);
