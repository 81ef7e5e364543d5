#pragma once
/* The MCP server and its parts: for the files of src/mcp only. */

#include "escalate/escalate_server.h"
#include "intercept/intercept.h"
#include "mcp/mcp_lines.h"
#include "mcp/mcp_message.h"
#include "mcp/mcp_options.h"
#include "mcp/mcp_output.h"
#include "mcp/mcp_state.h"
#include "mcp/mcp_tools.h"
#include "base/passwd.h"
#include "loop/pool.h"
#include "ops/audit.h"
#include "proc/proc.h"
#include "rules/decide.h"
#include "sandbox/host/remains.h"
#include "sandbox/host/sandbox_host.h"

#define MCP_RUNS_MAX 256         /* commands at a time, those of sessions and leftovers included */
#define MCP_SESSIONS_MAX 64      /* commands that outlive their call */
#define MCP_DRAIN_MS 50          /* of output after the shell has ended */
#define MCP_GRACE_MS 500         /* between SIGTERM and SIGKILL */
#define MCP_STOP_MS 800          /* until the server stops waiting for what it kills */
#define MCP_PARK_MS (600 * 1000) /* that a prompt of 2026-07-28 may wait */
#define MCP_SETTLE_MS 50         /* of output before write_stdin answers */
#define MCP_PROGRESS_MS 1250     /* between two notifications of progress */
#define MCP_LISTENERS_MAX 16     /* open subscriptions/listen */
#define MCP_ID_MAX 4096          /* bytes of an id or progress token as JSON */
#define MCP_EXECS_MAX 256        /* programs of one command that wait for the user */
#define MCP_STRINGS_MAX (64u << 20)
#define MCP_ARGUMENT_MAX (128u << 10) /* bytes of one argument for the kernel, with its NUL */
#define MCP_CONTROL_FD 19             /* the command's number of the wrapper's socket */
#define MCP_SCRIPT_FD 20              /* and of a script that is too long for an argument */

struct mcp;
struct mcp_run;

/* A tools/call that waits for its answer. */
struct mcp_request {
    struct buf id;    /* JSON */
    struct buf token; /* of progress, JSON; empty: none */
    bool modern;      /* of revision 2026-07-28 */
    bool can_ask;     /* the client can ask its user */
    bool is_write;    /* write_stdin */
    uint64_t since;   /* loop time */
};

/* The way back to whoever intercepted a program. */
struct mcp_engine {
    /* Called once, unless the program was withdrawn. `reason` is for DECIDE_DENY. */
    void (*answer)(void *token, enum decide_action action, struct str reason);
    /* Whether the program may leave the sandbox at all; asked only where a rule says so. NULL: as
     * mcp_exec_what says. */
    bool (*may_escalate)(void *token);
};

/* A program that waits for the user. */
struct mcp_exec {
    struct list node; /* in mcp_run.execs */
    struct mcp_run *run;
    const struct mcp_engine *engine;
    void *token;
    enum decide_action accepted;
    uint64_t id;   /* of the question */
    bool sent;     /* as elicitation/create */
    char *message; /* owned */
};

/* A command: a call of `shell`, and what it left running. */
struct mcp_run {
    struct list node; /* in mcp.runs */
    struct mcp *m;
    struct arena strings;
    struct proc proc;
    struct placeholders *placeholders; /* of the sandbox; owned */
    struct plan plan;                  /* if confined; in `strings` */
    bool confined;
    bool launched; /* there is a supervisor */
    bool running;  /* its exec has succeeded */
    bool exited;   /* the shell has ended */
    bool ended;    /* and its output is in: the last answer can be given */
    bool reported; /* the last answer was given, or nobody wants it */
    bool timed_out;
    bool keep;                   /* it may outlive its call */
    bool modern, can_ask;        /* of the call */
    uint64_t session;            /* number; 0: none */
    uint64_t started;            /* loop time */
    uint64_t took;               /* nanoseconds until the end */
    struct mcp_output out, err;  /* err: of --compat */
    struct mcp_request *request; /* owned; NULL: nobody waits */
    struct loop_timer timeout, yield, drain, progress, park;
    struct loop_task free_task, ask_task;
    uint64_t left;    /* nanoseconds of the timeout; UINT64_MAX: none */
    uint64_t armed;   /* loop time since when it runs */
    unsigned stopped; /* reasons for which it does not run */
    struct list execs;
    size_t exec_count;
    struct escalate_server *wrapper; /* of the mode wrapper; owned */
    struct intercept *notify;        /* of the mode notify; owned */
    struct list stubs;               /* of programs that run outside, in the mode notify */
    char state[33];                  /* requestState of a parked call; "": not parked */
    uint8_t digest[32];              /* of name and arguments */
};

struct mcp {
    const struct mcp_options *o;
    enum mcp_options_intercept intercept; /* as chosen */
    struct loop loop;
    struct mcp_lines lines;
    struct loop_io signals;
    struct proc_host procs;
    struct sandbox_host sandbox;
    struct remains remains;
    struct json_doc doc, state_doc;
    struct buf reply; /* scratch for one message */
    struct mcp_state state;
    struct decide *decide;
    struct pool pool;                      /* of the mode notify */
    struct intercept_host *intercept_host; /* NULL: another mode */
    struct audit audit;
    struct passwd_entry passwd;
    char *user_dir;          /* $CODEX_HOME; NULL: none */
    char *shell;             /* path */
    char *wrapper;           /* path of the execve wrapper; NULL: none */
    bool initialized, ready; /* initialize was answered; the client has taken note */
    bool can_ask, form_mode;
    struct list runs;
    size_t run_count, session_count;
    uint64_t next_session, next_ask;
    struct buf listeners[MCP_LISTENERS_MAX]; /* ids, JSON; empty: free */
    bool stopping, input_ended;
    struct loop_timer stop_timer;
    int exit_code;
};

/* -- mcp_send.c -- */

/* Answers with a result, the text of an object; adds what 2026-07-28 wants. */
void mcp_send_result(struct mcp *m, struct str id, bool modern, struct str object);
void mcp_send_error(struct mcp *m, struct str id, int code, struct str message, struct str data);
/* Sends a notification; `params` is an object. */
void mcp_send_notification(struct mcp *m, const char *method, struct str params);
/* The answer to tools/call that holds a text alone. */
void mcp_send_tool_text(struct mcp *m, struct str id, bool modern, struct str text, bool error);
/* Frees a request; NULL is fine. */
void mcp_send_free(struct mcp_request *q);

/* -- mcp_call.c -- */

/* Answers a tools/call, now or later. */
void mcp_call(struct mcp *m, const struct mcp_message *msg, struct str id);

/* Whether a client with these capabilities (NULL: none) can show its user a form. */
bool mcp_call_can_ask(const struct json_node *capabilities);

/* The client cancels the request with that id. Whether it was one of ours. */
bool mcp_call_cancel(struct mcp *m, struct str id);

/* -- mcp_run.c -- */

/*
 * Starts a command for a request and takes the request over. 0; or -errno with e set and the
 * request untouched.
 */
MUST_CHECK int mcp_run_start(struct mcp *m, const struct mcp_tools_args *args,
                             const struct mcp_state *state, const uint8_t digest[32],
                             struct mcp_request *q, struct err *e);

/* The session of that number, or NULL. */
struct mcp_run *mcp_run_session(struct mcp *m, uint64_t number);

/* Lets a request wait for a session until the time is over. Takes the request over. */
void mcp_run_wait(struct mcp_run *r, struct mcp_request *q, uint64_t ms);

/* Stops (+1) or continues (-1) the clock of the timeout. */
void mcp_run_clock(struct mcp_run *r, int change);

/* A request goes on with a parked call; waits at most `ms` (UINT64_MAX: until the end). Takes the
 * request over. */
void mcp_run_resume(struct mcp_run *r, struct mcp_request *q, uint64_t ms);

/* Ends it without an answer. */
void mcp_run_cancel(struct mcp_run *r);

/* Kills every command. */
void mcp_run_kill_all(struct mcp *m);

/* Detaches the request, which the caller answers; the run goes on. */
struct mcp_request *mcp_run_take_request(struct mcp_run *r);

/* -- mcp_result.c -- */

/* Answers the request of a run with its state and output so far, and frees the request. */
void mcp_result_send(struct mcp_run *r);

/* -- mcp_exec.c -- */

#define MCP_EXEC_INTERPRETERS 5 /* of a script, of its interpreter, ... */

/* What a `#!` line starts. */
struct mcp_exec_interpreter {
    const char *path; /* as in the line */
    const char *file; /* symbolic links followed; NULL: as in the line */
    const char *arg;  /* or NULL */
};

/* A program about to start below a run. Strings are borrowed. */
struct mcp_exec_what {
    const char *file;     /* as given, absolute */
    const char *resolved; /* symbolic links followed; NULL: as given */
    const struct mcp_exec_interpreter *interpreters;
    size_t interpreter_count; /* at most MCP_EXEC_INTERPRETERS */
    const char *memfd;        /* the name of the memfd it is; or NULL */
    char *const *argv;
    size_t argc;
    const char *cwd;
    bool may_escalate; /* else an `allow` only runs it */
};

/* Decides, and answers through the engine, now or after the user has. */
void mcp_exec_decide(struct mcp_run *r, const struct mcp_exec_what *w,
                     const struct mcp_engine *engine, void *token);

/* Nobody waits for the answer any more. */
void mcp_exec_withdraw(struct mcp_run *r, const void *token);

/* -- mcp_ask.c -- */

void mcp_ask_init(struct mcp_run *r);

/* Asks the user about a program. Takes `message` over. */
void mcp_ask(struct mcp_run *r, const struct mcp_engine *engine, void *token, char *message,
             enum decide_action accepted);

/* The client's answer to a question; others are ignored. */
void mcp_ask_response(struct mcp *m, const struct mcp_message *msg);

/* Withdraws one question, or all of a run. */
void mcp_ask_withdraw(struct mcp_exec *x);
void mcp_ask_withdraw_all(struct mcp_run *r);

/* Answers the request of a run with its open questions, for 2026-07-28, and parks the run. */
void mcp_ask_park(struct mcp_run *r);

/* Goes on with a parked call. False: there is none like that. Takes the request over if true. `ms`
 * as of mcp_run_resume(). */
bool mcp_ask_resume(struct mcp *m, const struct mcp_message *msg, const uint8_t digest[32],
                    struct mcp_request *q, uint64_t ms);

/* -- mcp_notify.c -- */

/* Prepares the interception of every exec, for all commands. 0, or -errno with e set. */
MUST_CHECK int mcp_notify_init(struct mcp *m, struct err *e);
void mcp_notify_fini(struct mcp *m);

/* That of one command; *start is for its start. 0 or -errno. */
MUST_CHECK int mcp_notify_new(struct mcp_run *r, struct execfilter_start *start);

/* Ends it: no program below the command starts any more, and what runs outside is killed. */
void mcp_notify_end(struct mcp_run *r);

/* After the rules have changed. */
void mcp_notify_rules(struct mcp *m);

/* -- mcp_wrapper.c -- */

/* The interception by a patched Bash. */
MUST_CHECK int mcp_wrapper_new(struct mcp_run *r, int *fd);
