#pragma once
/*
 * Lines of the audit log about changes of files. An event remembers at the request who asked: the
 * connection may be gone when the change is done. Without a log there are no events.
 */

#include "base/err.h"

#include <stdint.h>

struct conn;
struct fs_params;
struct file_event;
struct rpc_call;
struct files_host;

#define FILE_EVENTS_NO_BYTES (-1) /* the change has no size */

/*
 * A client asks for a change with `method` (static), of `path` and maybe `destination` (copied;
 * NULL: none). The event is the caller's. NULL without a log, or without memory: then the log
 * counts the line as dropped.
 */
struct file_event *file_events_new(const struct rpc_call *c, const char *method, const char *path,
                                   const char *destination, int64_t bytes);

/* Like file_events_new(), for a request over HTTP. */
struct file_event *file_events_http(struct files_host *h, const struct conn *c, const char *method,
                                    const char *path, int64_t bytes);

/* Turns the event to another method on its file; NULL is harmless. */
void file_events_turn(struct file_event *f, const char *method);

/* Adds to the bytes written; NULL is harmless. */
void file_events_add(struct file_event *f, uint64_t bytes);

/* Writes the line: done, or failed for the reason `why`. NULL is harmless. */
void file_events_tell(struct file_event *f, const struct err *why);

/* NULL is harmless. */
void file_events_free(struct file_event *f);
