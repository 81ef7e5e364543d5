#pragma once
/* The notifications of processes: built in place in the connection's output queue. */

#include "server/job.h"

/* Each goes to the connection the session is attached to, if any. */
void notify_output(struct job *j, uint64_t seq, enum outlog_stream stream, const char *data,
                   size_t n);
void notify_exited(struct job *j, uint64_t seq);
void notify_closed(struct job *j, uint64_t seq);

/* Appends a process id as JSON text. */
MUST_CHECK int notify_put_id(struct buf *b, struct str id);

/* "stdout", "stderr" or "pty". */
const char *notify_stream_name(enum outlog_stream stream);
