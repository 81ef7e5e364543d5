#pragma once
/*
 * Lines of the audit log about changes of files. Who asked is noted when the request comes, for the
 * connection may be gone when it is done. Without a log nothing is noted, and all of this is free.
 */

#include "base/err.h"

#include <stdint.h>

struct conn;
struct fs_params;
struct report_file;
struct rpc_call;
struct server;

#define REPORT_NO_BYTES (-1) /* the change has no size */

/*
 * A change that a client asks for with `method` (static), of `path` and maybe `destination`
 * (copied; NULL: none). NULL when there is no log, or no memory: the line then counts as dropped.
 */
struct report_file *report_file_new(const struct rpc_call *c, const char *method, const char *path,
                                    const char *destination, int64_t bytes);

/* The same for a request over HTTP. */
struct report_file *report_file_http(const struct conn *c, const char *method, const char *path,
                                     int64_t bytes);

/* From now on it is about another method of the same file; NULL is harmless. */
void report_file_turn(struct report_file *f, const char *method);

/* So many bytes more were written; NULL is harmless. */
void report_file_add(struct report_file *f, uint64_t bytes);

/* Writes the line: done, or not done for this reason. Then it may become another. NULL: nothing. */
void report_file_tell(struct report_file *f, const struct err *why);

/* NULL is allowed. */
void report_file_free(struct report_file *f);
