#pragma once
/*
 * Lines of the audit log about changes of files. Who asked is noted when the request comes, for the
 * connection may be gone when it is done. Without a log nothing is noted, and all of this is free.
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
 * A change that a client asks for with `method` (static), of `path` and maybe `destination`
 * (copied; NULL: none). NULL when there is no log, or no memory: the line then counts as dropped.
 */
struct file_event *file_events_new(const struct rpc_call *c, const char *method, const char *path,
                                   const char *destination, int64_t bytes);

/* The same for a request over HTTP. */
struct file_event *file_events_http(struct files_host *h, const struct conn *c, const char *method,
                                    const char *path, int64_t bytes);

/* From now on it is about another method of the same file; NULL is harmless. */
void file_events_turn(struct file_event *f, const char *method);

/* So many bytes more were written; NULL is harmless. */
void file_events_add(struct file_event *f, uint64_t bytes);

/* Writes the line: done, or not done for this reason. Then it may become another. NULL: nothing. */
void file_events_tell(struct file_event *f, const struct err *why);

/* NULL is allowed. */
void file_events_free(struct file_event *f);
