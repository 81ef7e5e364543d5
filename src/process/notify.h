#pragma once
/* Notifications about processes, built in place in the connection's output queue. */

#include "process/process.h"

/* The receiver: the session's own connection, or one that watches (attach.h). */
struct notify_to {
    struct conn *conn;  /* NULL: nobody listens */
    uint64_t attach_id; /* 0 = the owner */
};

/* The connection the process's session is attached to. */
struct notify_to notify_owner(const struct process *p);

void notify_output(struct notify_to to, const struct process *p, uint64_t seq,
                   enum outlog_stream stream, const char *data, size_t n);
void notify_exited(struct notify_to to, const struct process *p, uint64_t seq);
void notify_closed(struct notify_to to, const struct process *p, uint64_t seq);

/* {"method":METHOD,"params":{["attachId":..,]"processId":ID REST}}; rest starts with a comma. */
void notify_event(struct notify_to to, const struct process *p, const char *method,
                  struct str rest);

/* These have no sequence number and go only to a client that asked for them in `initialize`. */
void notify_started(struct process *p);
void notify_failed(struct process *p, const char *message);

/* "stdout", "stderr" or "pty". */
const char *notify_stream_name(enum outlog_stream stream);
