#pragma once
/* The methods of the console: the table, the login, and what the files console_*.c answer. */

#include "rpc/rpc.h"

extern const struct rpc_method console_methods_table[];
extern const size_t console_methods_count;

/* The two steps of a method (struct rpc_method). */
#define CONSOLE_METHOD(name)                                                                       \
    int name##_decode(const struct json_node *params, void *out, struct err *e);                   \
    enum rpc_outcome name##_run(struct rpc_call *c, void *params, struct buf *result, struct err *e)

/* console_list.c: sessions and processes, all or what has changed. */
CONSOLE_METHOD(console_list);

/* console_usage.c: CPU time and memory of some processes. */
CONSOLE_METHOD(console_usage);

/* console_audit.c */
CONSOLE_METHOD(console_audit);

/* console_control.c: what a client may do with a process of its own. */
CONSOLE_METHOD(console_control_snapshot);
CONSOLE_METHOD(console_control_write);
CONSOLE_METHOD(console_control_close_stdin);
CONSOLE_METHOD(console_control_resize);
CONSOLE_METHOD(console_control_signal);
CONSOLE_METHOD(console_control_terminate);
CONSOLE_METHOD(console_control_start);
