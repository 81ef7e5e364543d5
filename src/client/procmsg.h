#pragma once
/*
 * What a server says about processes: notifications and answers, as JSON nodes. Unknown members
 * are ignored; a member of a wrong type, or a missing one that every server sends, is -EPROTO.
 */

#include "client/evqueue.h"
#include "json/json.h"

/* How a process ended. */
struct procmsg_exit {
    int code;   /* -1: not told */
    int signal; /* number on this host, 0: none */
    bool timed_out, sandbox_denied;
    bool resources; /* the next four were told */
    uint64_t user_ms, system_ms, wall_ms, peak_bytes;
};

enum procmsg_type {
    PROCMSG_OTHER, /* no notification of a process */
    PROCMSG_OUTPUT,
    PROCMSG_EXITED,
    PROCMSG_CLOSED,
    PROCMSG_GAP,      /* numbers seq..to are lost to a view */
    PROCMSG_DETACHED, /* the view is over */
};

struct procmsg_note {
    enum procmsg_type type;
    struct str id; /* borrowed, as all below */
    bool viewed;   /* attach is set */
    uint64_t attach, seq, to;
    struct evqueue_chunk chunk; /* OUTPUT */
    struct procmsg_exit exit;   /* EXITED */
};

/* 0, or -EPROTO. */
MUST_CHECK int procmsg_note(struct str method, const struct json_node *params,
                            struct procmsg_note *out);

/* An answer of process/read. */
struct procmsg_page {
    struct evqueue_chunk *chunks; /* owned: procmsg_page_fini(); their text is borrowed */
    size_t count;
    uint64_t next_seq;
    bool exited, closed;
    struct procmsg_exit exit;
};
/* 0, -EPROTO, -ENOMEM. */
MUST_CHECK int procmsg_page(const struct json_node *result, struct procmsg_page *out);
void procmsg_page_fini(struct procmsg_page *p);

/* Fills in what process/list tells about the process `id`. Whether it is there. */
bool procmsg_list_find(const struct json_node *result, struct str id, struct procmsg_exit *exit);

/* One stream in an answer of process/snapshot. */
struct procmsg_part {
    struct str base64;
    uint64_t head, tail, omitted, total;
};
struct procmsg_snapshot {
    struct procmsg_part parts[EVQUEUE_STREAMS];
    bool exited, closed;
    struct procmsg_exit exit;
};
MUST_CHECK int procmsg_snapshot(const struct json_node *result, struct procmsg_snapshot *out);

/* The status of a write. */
enum procmsg_status {
    PROCMSG_ACCEPTED,
    PROCMSG_STDIN_CLOSED,
    PROCMSG_STARTING,
    PROCMSG_UNKNOWN, /* no such process */
};
/* 0, or -EPROTO. */
MUST_CHECK int procmsg_status(const struct json_node *result, enum procmsg_status *out);

/* Signals by their numbers and the words of process/signal; NULL and 0: none. */
const char *procmsg_signal_word(int signo);
int procmsg_signal_number(struct str name);
