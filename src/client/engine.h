#pragma once
/* The struct of a client, for the files of the engine. */

#include "client/client_internal.h"
#include "client/link.h"

#define ENGINE_LOGS 64       /* lines that wait for xs_client_on_log(); further ones are dropped */
#define ENGINE_STATES 32     /* states that wait for xs_client_on_state(); then only the last */
#define ENGINE_REPLIES 256   /* answers to requests of the server that wait; more are dropped */
#define ENGINE_REPLY_MAX 512 /* bytes of one; a request with a longer id gets none */
#define ENGINE_HELLO 3

struct engine_log {
    int level;
    char *line; /* owned */
};

/* A message without an answer of its own. */
struct engine_reply {
    struct list node;
    size_t n;
    char text[];
};

struct xs_client {
    struct loop loop;
    struct xs_options *options; /* owned */
    struct target target;
    struct link link;
    struct xs_error error;   /* of xs_client_error() */
    struct xs_error failure; /* sticky, in FAILED and CLOSED */
    enum xs_state state;

    /* the caller */
    struct list notices;
    size_t notice_count;
    bool in_callback;
    bool in_loop; /* an engine function is on the stack */
    bool *gone;   /* set by xs_client_free(); NULL: nobody would see it */
    struct list ops;
    struct loop_io wake; /* an eventfd */
    bool woken;
    struct loop_io clock; /* a timerfd, which makes loop.epfd readable */
    uint64_t clock_at;    /* what it is set to, in nanoseconds; UINT64_MAX: not set */
    bool clock_used;      /* xs_client_fd() was called */
    void (*on_state)(struct xs_client *c, enum xs_state s, void *user);
    void *on_state_user;
    struct notice state_notice;
    enum xs_state states[ENGINE_STATES];
    size_t state_count;
    void (*on_log)(int level, const char *line, void *user);
    void *on_log_user;
    struct notice log_notice;
    struct engine_log logs[ENGINE_LOGS];
    size_t log_at, log_count;
    int (*on_dial)(struct xs_client *c, void *user);
    void *on_dial_user;
    struct notice dial_notice;
    uint64_t dial_limit_ms;

    /* modules */
    struct list parts;
    struct processes *processes;
    struct files *files;
    int live, holds;
    int blocked; /* blocking operations that wait: whoever could empty a full window stands still */

    /* requests: calls.c */
    struct list waiting; /* not yet put, or only a part of it */
    struct list flight;  /* put */
    struct list replies; /* engine_reply */
    size_t reply_count;
    struct list waiters; /* calls_waiter */
    struct loop_task room_task, pump_task;
    size_t calls, patient, urgent; /* in waiting and flight; of them patient and urgent ones */
    size_t queued;                 /* bytes of text in waiting */
    uint64_t next_id;
    const char *put_text; /* being put: whole messages are never mixed */
    size_t put_n, put_at;
    struct calls_request *put_request; /* NULL: a reply, a hello, or a dropped one in `orphan` */
    char *orphan;                      /* owned: the text of a dropped request that was begun */
    struct engine_reply *put_reply;
    struct json_doc doc;

    /* the session: resume.c */
    struct buf hello[ENGINE_HELLO];
    size_t hello_n, hello_at;
    uint64_t hello_id;                    /* of the answer that is awaited; 0: none */
    bool hello_info;                      /* it is environment/info */
    struct json_doc server;               /* the result with environmentInfo */
    char *server_text;                    /* owned: its text */
    const struct json_node *capabilities; /* in `server`, or NULL */
    struct xs_info info;
    char *info_text[8]; /* owned: strings of info */
    char session[64];   /* "" : none yet */
    bool ever;          /* was READY once */
    struct op *connect; /* or NULL */
    struct op *ending;  /* close or detach, or NULL */
    bool detaching, closing_sent;
    struct loop_timer retry;
    uint64_t outage_ms; /* CLOCK_BOOTTIME of its begin; 0: none */
    uint64_t limit_ms;  /* of this outage */
    bool proven;        /* something came behind the handshake of this connection */
    uint64_t opened_ms;
    unsigned malformed, first_tries;
    struct xs_error cause; /* of the outage */
    struct loop_timer init_limit;
};

/* client.c */
int client_init(struct xs_client *c);
void client_fini(struct xs_client *c);
/* Before the engine is entered from outside: brings its clock up to date. */
void client_enter(struct xs_client *c);
/* One turn: waits up to `wait` nanoseconds, serves, tells the caller. 0; 1: the client is freed. */
int client_step(struct xs_client *c, uint64_t wait);
/* Behind a call from outside that may have queued something. */
void client_leave(struct xs_client *c);
void client_set_state(struct xs_client *c, enum xs_state s);
/* Ends everything with an error, which is moved: FAILED or CLOSED. */
void client_stop(struct xs_client *c, enum xs_state s, struct xs_error *e);
/* Reads the socket or not; tells the link what is awaited. */
void client_balance(struct xs_client *c);
void client_random(void *p, size_t n);

/* op.c */
/* As op_new(), also before the client is connected, and without XS_OPT_CALL_MS. */
int op_new_early(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
                 void *out);
/* The same in any state, and without looking at callbacks. */
int op_new_always(struct xs_client *c, struct xs_call *k, size_t size, void (*end)(struct op *op),
                  void *out);
/* Ends it when XS_OPT_CALL_MS are over. 0 or XS_ENOMEM. */
int op_limit(struct op *op);
void op_end_all(struct xs_client *c); /* xs_client_free(): nobody is told */

/* notice.c */
void notice_run_one(struct xs_client *c);

/* calls.c */
void calls_init(struct xs_client *c);
void calls_fini(struct xs_client *c);
void calls_pump(struct xs_client *c);
void calls_message(struct xs_client *c, char *data, size_t n);
/* The connection is gone: what was not sent waits again. */
void calls_cut(struct xs_client *c);
/* The session is back: decides about what was sent. */
void calls_resume(struct xs_client *c);
/* Ends all with an error. */
void calls_end(struct xs_client *c, const struct xs_error *e);

/* resume.c */
void resume_init(struct xs_client *c);
void resume_fini(struct xs_client *c);
void resume_begin(struct xs_client *c); /* the first connection */
void resume_now(struct xs_client *c);
/* The answer with hello_id. */
void resume_answer(struct xs_client *c, const struct json_node *result,
                   const struct json_node *error);
/* A message that breaks the rules: drops the connection; the third time for good. */
void resume_malformed(struct xs_client *c, const char *why);
/* CLOSED, without asking the server. */
void resume_close(struct xs_client *c);
void resume_end(struct xs_client *c); /* calls for `ending` may be complete */
