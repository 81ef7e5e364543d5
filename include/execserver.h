#ifndef EXECSERVER_H
#define EXECSERVER_H
/*
 * libexecserver: runs commands and handles files on an exec-server. C17 and C++17, Linux.
 *
 * Modes. The last argument of an operation is a `struct xs_call *`. NULL: the operation blocks and
 * returns its result. Otherwise it returns 0 at once and call->done reports the result later; or it
 * returns a negative error at once, and then `done` does not run. The caller keeps the call, and
 * every place for a result, until `done` runs.
 *
 * Results are 0 or more, or a negative enum xs_err. xs_client_error() has the details, until the
 * next operation on that client. While `done` runs, it has those of that operation.
 *
 * Waiting. One descriptor tells everything: when xs_client_fd() is readable, call
 * xs_client_process(). Blocking operations do both by themselves.
 *
 * Callbacks run inside xs_client_process(), xs_client_run() or a blocking operation on their
 * client. They may start operations and may free anything, also the object that called them, and
 * the client. A blocking operation, xs_client_process() and xs_client_run() in a callback of their
 * client return XS_EBUSY.
 *
 * Ownership. `_new` and `_free` own, free accepts NULL. What goes in is copied. A pointer to const
 * that comes out is borrowed until the next call on its object. Structs that the library fills for
 * the caller begin with `size`: initialize them with XS_INIT(type). Events and infos are memory of
 * the library and may grow at their end in later versions.
 *
 * Threads. One thread at a time uses a client and its objects; clients are independent. Only
 * xs_client_wake() may come from any thread. After fork(2) the child uses none of them. The library
 * has no global state, no signal handler and no thread, and raises no SIGPIPE.
 *
 * Limits: 1,024 operations in flight for each client, then XS_EBUSY; strings are UTF-8 unless a
 * call says otherwise.
 */

#include <stddef.h>
#include <stdint.h>

/* An empty struct that begins with `size`: struct xs_exit e = XS_INIT(struct xs_exit); */
#ifdef __cplusplus
template <class T> static inline T xs_init_() {
    T v = T();
    v.size = sizeof v;
    return v;
}
#define XS_INIT(type) xs_init_<type>()
#else
#define XS_INIT(type)                                                                              \
    { .size = sizeof(type) }
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#define XS_API __attribute__((visibility("default")))
#else
#define XS_API
#endif

struct xs_bytes;
struct xs_client;
struct xs_error;
struct xs_exec;
struct xs_file;
struct xs_fs;
struct xs_options;
struct xs_process;
struct xs_watch;

/* The library's version, such as "0.2.0". */
XS_API const char *xs_version(void);

/* -- errors -- */

enum xs_err {
    XS_EINVAL = -1,    /* a wrong argument or option; nothing happened */
    XS_ENOMEM = -2,    /* out of memory, here */
    XS_EBUSY = -3,     /* too many operations, a full queue, or blocking inside a callback */
    XS_ETIMEOUT = -4,  /* a time limit of the caller is over; the outcome may be unknown */
    XS_ECANCELED = -5, /* by xs_call_cancel() or a free */
    XS_ECONNECT = -6,  /* never connected */
    XS_EAUTH = -7,     /* the server answered 401 or 403 */
    XS_EPROTO = -8,    /* the peer broke the rules of the protocol */
    XS_ELOST = -9,     /* sent, but the answer is lost: the outcome is unknown */
    XS_EGONE = -10,    /* the session cannot be resumed, or the client is closed */
    XS_EREMOTE = -11,  /* the server answered with an error */
    XS_ENOTSUP = -12,  /* the server cannot do this */
    XS_EGAP = -13,     /* output is lost */
    XS_ELOCAL = -14,   /* a file or descriptor here failed */
};

/* The last failure of an operation on this client. Never NULL. */
XS_API const struct xs_error *xs_client_error(const struct xs_client *c);

XS_API int xs_error_code(const struct xs_error *e); /* enum xs_err; 0: none */
XS_API int xs_error_rpc(const struct xs_error *e);  /* JSON-RPC code of an XS_EREMOTE; 0: none */
XS_API int xs_error_os(const struct xs_error *e);   /* errno, of the server or here; 0: none */
/* One line without a newline: what was tried, and why it failed. */
XS_API const char *xs_error_text(const struct xs_error *e);
/* A general text for an enum xs_err. */
XS_API const char *xs_error_name(int err);

/* -- options -- */

/* A bag of options by key, for clients, starts, copies and exec. What is not set has its default.
 * A key of one operation is ignored by the others. */
XS_API struct xs_options *xs_options_new(void); /* NULL: out of memory */
XS_API void xs_options_free(struct xs_options *o);

/* Sets an option of the kind: text, number, list (adds one element). XS_EINVAL: an unknown key,
 * another kind, or a value out of range; xs_options_error() tells. NULL as a text or element
 * removes the option. */
XS_API int xs_options_str(struct xs_options *o, const char *key, const char *value);
XS_API int xs_options_num(struct xs_options *o, const char *key, int64_t value);
XS_API int xs_options_add(struct xs_options *o, const char *key, const char *value);

/*
 * Sets the options of a client as `xs -H name` does: `name` is an id in environments.toml, "local",
 * or a URL. NULL or "": what the file, or CODEX_EXEC_SERVER_URL, makes the default; XS_EINVAL if
 * nothing does. It reads $CODEX_HOME, $HOME and $CODEX_EXEC_SERVER_URL.
 */
XS_API int xs_options_environment(struct xs_options *o, const char *name);

/* The environments that are known, as JSON without secrets: {"fromFile", "default" (an id or null),
 * "environments": [{"id", "url" or "program"}]}. Reads what xs_options_environment() reads. */
XS_API int xs_options_list_environments(struct xs_options *o, struct xs_bytes *json);

/* The last failure of a call with these options. Never NULL. */
XS_API const struct xs_error *xs_options_error(const struct xs_options *o);

/*
 * Keys of a client. A URL is one of
 *   ws://HOST[:PORT][/PATH]  wss://...  unix:///PATH (WebSocket on it)
 *   stdio:  (PROGRAM with ARGs, lines on its standard streams)
 *   ssh://[USER@]HOST[:PORT][/PROGRAM]  (ssh -T HOST exec-server --listen stdio)
 *   local:  (a private exec-server as a child: PROGRAM, beside this program, or in PATH)
 *   fd:IN[,OUT]  (lines on open descriptors, which are duplicated)
 */
#define XS_OPT_URL "url"
#define XS_OPT_TOKEN "token"           /* sent to wss:, unix: and loopback addresses alone */
#define XS_OPT_TOKEN_FILE "token-file" /* read at each connect; a newline at its end is dropped */
#define XS_OPT_TOKEN_INSECURE "token-insecure" /* number: 1: send it to any ws: too */
#define XS_OPT_CA_FILE "ca-file"               /* PEM, instead of the system's */
#define XS_OPT_NAME "name"                     /* of this client, told to the server */
#define XS_OPT_PROGRAM "program"
#define XS_OPT_ARG "arg"                 /* list */
#define XS_OPT_PROGRAM_ENV "program-env" /* list of NAME=VALUE, added to the environment */
#define XS_OPT_PROGRAM_CWD "program-cwd"
#define XS_OPT_CONNECT_MS "connect-ms" /* number: 10000, to be connected */
#define XS_OPT_INIT_MS "init-ms"       /* number: 10000, for the answer to initialize */
#define XS_OPT_CALL_MS "call-ms"       /* number: 0, for every operation; 0: no limit */
#define XS_OPT_PING_MS "ping-ms"       /* number: 5000 of silence until a ping; 0: never */
#define XS_OPT_DEAD_MS "dead-ms"       /* number: 15000 of silence until the connection is lost */
#define XS_OPT_RESUME_MS "resume-ms"   /* number: 25000, for each outage; 0: never resume */
#define XS_OPT_SESSION_ID "session-id" /* the session to resume */
#define XS_OPT_SESSION_TTL_MS "session-ttl-ms"           /* number: asks for this time to live */
#define XS_OPT_CLOSED_RETENTION_MS "closed-retention-ms" /* number: asks for this time */
#define XS_OPT_WINDOW "window"                           /* number: 1 MiB of output per process */
#define XS_OPT_QUEUE "queue"                             /* number: 8 MiB waiting to be sent */
#define XS_OPT_GAP_FAILS "gap-fails"                     /* number: 1: lost output ends a process */
#define XS_OPT_LOG_WIRE "log-wire"                       /* number: 1: XS_LOG_WIRE lines too */

/* Keys of a start. */
#define XS_OPT_ARGV "argv" /* list */
#define XS_OPT_ARG0 "arg0"
#define XS_OPT_CWD "cwd"                   /* path; relative to the server's */
#define XS_OPT_ENV "env"                   /* list of NAME=VALUE */
#define XS_OPT_INHERIT "inherit"           /* all (default), core or none of the server's */
#define XS_OPT_ENV_EXCLUDE "env-exclude"   /* list of patterns */
#define XS_OPT_ENV_ONLY "env-only"         /* list of patterns */
#define XS_OPT_ENV_PRESET "env-preset"     /* agent: what suits commands of an agent */
#define XS_OPT_TTY "tty"                   /* number: 1: a terminal */
#define XS_OPT_ROWS "rows"                 /* number, of the terminal */
#define XS_OPT_COLS "cols"                 /* number */
#define XS_OPT_STDIN "stdin"               /* number: 1: a pipe instead of /dev/null */
#define XS_OPT_TIMEOUT_MS "timeout-ms"     /* number, of the process */
#define XS_OPT_LIMIT_MEMORY "limit-memory" /* number: bytes */
#define XS_OPT_LIMIT_PIDS "limit-pids"     /* number */
#define XS_OPT_LIMIT_FILES "limit-files"   /* number */
#define XS_OPT_LIMIT_NICE "limit-nice"     /* number */
#define XS_OPT_LIMIT_OOM "limit-oom"       /* number */
#define XS_OPT_LIMIT_CPU "limit-cpu"       /* number: percent of one CPU */
#define XS_OPT_PREPARED "prepared"         /* number: 1: the prepared form of a start */
#define XS_OPT_PROCESS_ID "process-id"     /* default: a random one */
#define XS_OPT_SANDBOX "sandbox"           /* read-only or workspace-write */
#define XS_OPT_WRITABLE "writable"         /* list of paths, with workspace-write */
#define XS_OPT_NETWORK "network"           /* number: 1: network inside the sandbox */
#define XS_OPT_SANDBOX_JSON "sandbox-json" /* the protocol's sandbox object */
#define XS_OPT_THREAD_ID "thread-id"       /* for the server's log */
#define XS_OPT_TOOL_CALL_ID "tool-call-id" /* for the server's log */
#define XS_OPT_START_JSON "start-json"     /* an object: members merged last */

/* Keys of a copy. */
#define XS_OPT_RECURSIVE "recursive" /* number: 1 */
#define XS_OPT_PRESERVE "preserve"   /* number: 1: modes and times */
#define XS_OPT_RESUME "resume"       /* number: 1 (default): continue a part that is there */
#define XS_OPT_ATOMIC "atomic"       /* number: 1 (default): the name appears when all is there */
#define XS_OPT_FSYNC "fsync"         /* number: 0 */
#define XS_OPT_LINKS "links"         /* copy (default), follow or skip */
#define XS_OPT_IN_FLIGHT "in-flight" /* number: blocks in flight */

/* Keys of exec. */
#define XS_OPT_YIELD_MS "yield-ms"       /* number: how long to collect output */
#define XS_OPT_MAX_TOKENS "max-tokens"   /* number: of the output, at most and by default 10000 */
#define XS_OPT_POLL_MAX_MS "poll-max-ms" /* number: the longest poll, 300000 */

/* -- calls and bytes -- */

/* Owned by the caller, from the start of an operation until `done`. `priv` is the library's; start
 * with zeros. `done` may free or reuse the call. */
struct xs_call {
    void (*done)(struct xs_call *call, int result);
    void *user;
    void *priv[6];
};

/* The operation ends with XS_ECANCELED and `done` runs later, unless its result is there already.
 * What was sent may still happen. Harmless on a call that is not in flight. */
XS_API void xs_call_cancel(struct xs_call *call);

/* Bytes of the caller; xs_bytes_free() frees the data. A NUL follows the data. */
struct xs_bytes {
    char *data;
    size_t n;
};
XS_API void xs_bytes_free(struct xs_bytes *b);

/* -- clients -- */

enum xs_state {
    XS_STATE_NEW,
    XS_STATE_CONNECTING,
    XS_STATE_READY,
    XS_STATE_RESUMING, /* the connection is lost; operations wait */
    XS_STATE_FAILED,   /* for good: xs_client_error() tells why */
    XS_STATE_CLOSED,
};

enum xs_log { XS_LOG_ERROR = 1, XS_LOG_WARN, XS_LOG_INFO, XS_LOG_DEBUG, XS_LOG_WIRE };

/* What the server told; a text that it did not tell is NULL, except shell, which is /bin/sh. */
struct xs_info {
    const char *url;     /* without a secret */
    const char *session; /* id */
    const char *version; /* of the server */
    const char *shell;   /* path of the login shell */
    const char *cwd, *home, *tmp;
    const char *sandbox;           /* what enforces a sandbox; NULL: nothing known */
    int resumable;                 /* the transport can resume */
    int limits_told;               /* the next three are the server's, not assumed */
    int64_t session_ttl_ms;        /* 30000 is assumed */
    int64_t closed_retention_ms;   /* 30000 is assumed */
    int64_t retained_output_bytes; /* 1 MiB is assumed */
};

/* A client for a URL; does no I/O. The options are copied. After XS_EINVAL *out is a client in state
 * FAILED, whose error tells why: free it. After other errors it is NULL. */
XS_API int xs_client_new(const struct xs_options *o, struct xs_client **out);

/* Frees it and everything that belongs to it, at once. Calls in flight end without `done`. What
 * runs on the server goes on until the session's time to live is over. A child (stdio:, ssh:,
 * local:) gets the end of its input, SIGTERM, and SIGKILL if it needs more than two seconds. */
XS_API void xs_client_free(struct xs_client *c);

/* Connects and opens, or resumes, a session. Other operations may be started meanwhile; they wait.
 */
XS_API int xs_client_connect(struct xs_client *c, struct xs_call *k);

/* Terminates what runs, ends the connection. Afterwards the client is CLOSED; also after
 * XS_ETIMEOUT, when the server did not answer within XS_OPT_CALL_MS. */
XS_API int xs_client_close(struct xs_client *c, struct xs_call *k);

/* Ends the connection and leaves everything running, for the time that the server granted. The
 * session's id is the value of XS_OPT_SESSION_ID later. XS_ENOTSUP: the transport cannot, or the
 * server grants less than XS_OPT_SESSION_TTL_MS. */
XS_API int xs_client_detach(struct xs_client *c, char session[37], struct xs_call *k);

/* Wait until it is readable, then call xs_client_process(). It never changes. */
XS_API int xs_client_fd(struct xs_client *c);

/* For poll(): milliseconds until xs_client_process() has something to do; -1: never. Optional, the
 * descriptor becomes readable then. */
XS_API int xs_client_timeout_ms(struct xs_client *c);

/* Does what can be done without blocking, callbacks included. 0, or XS_EBUSY. */
XS_API int xs_client_process(struct xs_client *c);

/* Waits up to max_ms (-1: without limit), then as xs_client_process(). */
XS_API int xs_client_run(struct xs_client *c, int max_ms);

/* Makes the descriptor readable, and xs_client_run() return. From any thread, also from a signal
 * handler. */
XS_API void xs_client_wake(struct xs_client *c);

XS_API enum xs_state xs_client_state(const struct xs_client *c);

/* Each replaces an earlier one; NULL: none. */
XS_API void xs_client_on_state(struct xs_client *c,
                               void (*fn)(struct xs_client *c, enum xs_state s, void *user),
                               void *user);
/* Lines for a log, without secrets and data of messages. `level` is an enum xs_log. */
XS_API void xs_client_on_log(struct xs_client *c,
                             void (*fn)(int level, const char *line, void *user), void *user);
/* Replaces the dialling of ws:, wss: and unix:. `fn` returns a connected descriptor, which becomes
 * the library's, or a negative errno: try again later. It runs for each connection. */
XS_API void xs_client_on_dial(struct xs_client *c, int (*fn)(struct xs_client *c, void *user),
                              void *user);

/* What is known of the server. NULL before the first connection. */
XS_API const struct xs_info *xs_client_info(struct xs_client *c);

/* 1 if the server announced a capability of this name, else 0. */
XS_API int xs_client_can(struct xs_client *c, const char *capability);

/* Sends any request. `params` is a JSON object, or NULL. `result` gets the JSON text of the result.
 * After a resume it is not sent again: XS_ELOST. */
XS_API int xs_client_rpc(struct xs_client *c, const char *method, const char *params,
                         struct xs_bytes *result, struct xs_call *k);

/* Tries to resume now instead of at the next turn; nothing in other states. */
XS_API void xs_client_retry(struct xs_client *c);

/* -- processes -- */

enum xs_stream { XS_STDOUT, XS_STDERR, XS_PTY };

struct xs_exit {
    size_t size;
    int exited;                                       /* the program has ended */
    int closed;                                       /* and its output too */
    int code;                                         /* 128+n after signal n; -1: unknown */
    int signal;                                       /* number, or 0 */
    int timed_out;                                    /* XS_OPT_TIMEOUT_MS was over */
    int sandbox_denied;                               /* the sandbox probably refused something */
    uint64_t user_ms, system_ms, wall_ms, peak_bytes; /* 0: unknown */
};

enum xs_ev {
    XS_EV_OUTPUT, /* stream, data, n */
    XS_EV_EXITED, /* exit */
    XS_EV_CLOSED, /* exit; the last event */
    XS_EV_GAP,    /* output seq..gap_to is lost */
    XS_EV_FAILED, /* text; the last event: nothing more can be known */
};

struct xs_event {
    enum xs_ev type;
    enum xs_stream stream;
    uint64_t seq, gap_to;
    const void *data;
    size_t n;
    const struct xs_exit *exit;
    const char *text;
};

/* The beginning and the end of a stream. */
struct xs_part {
    const void *data;
    size_t head, tail; /* data has these bytes, the tail behind the head */
    uint64_t omitted;  /* between them */
    uint64_t total;
};

struct xs_snapshot {
    size_t size;
    struct xs_part *out, *err, *pty; /* NULL: the process has no such stream */
    struct xs_exit *exit;
    void *memory; /* the library's */
};
XS_API void xs_snapshot_fini(struct xs_snapshot *s);

/* Starts a program. It is started once or not at all; XS_ELOST: nobody can tell. */
XS_API int xs_process_start(struct xs_client *c, const struct xs_options *o,
                            struct xs_process **out, struct xs_call *k);

/* A process of the session that was resumed; its events go on after number `after`. */
XS_API int xs_process_adopt(struct xs_client *c, const char *id, uint64_t after,
                            struct xs_process **out, struct xs_call *k);

/* Only looks at a process, of any session (NULL: this one). */
XS_API int xs_process_view(struct xs_client *c, const char *session, const char *id, uint64_t after,
                           struct xs_process **out, struct xs_call *k);

/* The session's processes as JSON: {"processes":[...]}. */
XS_API int xs_process_list(struct xs_client *c, struct xs_bytes *json, struct xs_call *k);

/* Terminates it if it runs; a view only stops looking. Calls in flight end with XS_ECANCELED. */
XS_API void xs_process_free(struct xs_process *p);

XS_API const char *xs_process_id(const struct xs_process *p);

/* Events by callback; NULL: by xs_process_next(). The callback returns 0, or XS_PAUSE: no more
 * until xs_process_unpause(). */
#define XS_PAUSE 1
XS_API void xs_process_on_event(struct xs_process *p,
                                int (*fn)(struct xs_process *p, const struct xs_event *e,
                                          void *user),
                                void *user);
XS_API void xs_process_unpause(struct xs_process *p);

/* The next event: 1, or 0 after the last one. The event lasts until the next call on p. */
XS_API int xs_process_next(struct xs_process *p, const struct xs_event **e, struct xs_call *k);

/* Writes everything to stdin, in the order of the calls, once. The data is copied. */
XS_API int xs_process_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k);
XS_API int xs_process_close_stdin(struct xs_process *p, struct xs_call *k);
XS_API int xs_process_resize(struct xs_process *p, unsigned rows, unsigned cols, struct xs_call *k);

/* Sends a signal, once; XS_ELOST: nobody can tell. */
XS_API int xs_process_signal(struct xs_process *p, int signo, struct xs_call *k);

/* SIGTERM, after grace_ms SIGKILL, to it and everything it started; 0: SIGKILL at once. */
XS_API int xs_process_terminate(struct xs_process *p, int64_t grace_ms, struct xs_call *k);

/* Waits until it has exited (or, if until_closed, its output has ended) or `ms` (-1: no limit) are
 * over: then XS_ETIMEOUT. `e` may be NULL. */
XS_API int xs_process_wait(struct xs_process *p, int until_closed, int64_t ms, struct xs_exit *e,
                           struct xs_call *k);

/* The protocol's process/read: its result as JSON. */
XS_API int xs_process_read(struct xs_process *p, uint64_t after, uint64_t max, uint64_t wait_ms,
                           struct xs_bytes *json, struct xs_call *k);

/* What the server retains, at most max bytes. */
XS_API int xs_process_snapshot(struct xs_process *p, size_t max, struct xs_snapshot *s,
                               struct xs_call *k);

/* Writes `in`, closes stdin, reads everything, waits. Keeps max/2 of the beginning and max/2 of the
 * end of each stream. */
XS_API int xs_process_communicate(struct xs_process *p, const void *in, size_t n, size_t max,
                                  struct xs_snapshot *s, struct xs_call *k);

/*
 * -- unified exec: the tools exec_command and write_stdin of a language model --
 *
 * A command that has not ended when its time is over becomes a session, whose number the result
 * has. 64 sessions are kept: for a further one the least recently used of them ends, those that
 * have exited first, never one of the 8 newest. Windows and texts are those of Codex's client.
 */

struct xs_exec_info {
    int session;         /* 1000..99999 */
    const char *id;      /* of the process */
    const char *call_id; /* XS_OPT_TOOL_CALL_ID of the command, or "" */
    const char *const *argv;
    size_t argc;
    const char *cwd;
};

/* Each may be NULL; what they are given lasts until they return. */
struct xs_exec_events {
    size_t size;
    /* ExecCommandBegin: the command runs. */
    void (*begin)(void *user, const struct xs_exec_info *i);
    /* ExecCommandOutputDelta: at most 8,192 bytes, which split no character; at most 10,000 of a
     * command. */
    void (*delta)(void *user, const struct xs_exec_info *i, enum xs_stream s, const void *data,
                  size_t n);
    /* TerminalInteraction: input was written (n > 0), or a poll found the command running. */
    void (*interaction)(void *user, const struct xs_exec_info *i, const void *input, size_t n);
    /* ExecCommandEnd, once: code -1 if it is unknown. The transcript is the whole output, 512 KiB of
     * its beginning and 512 KiB of its end. */
    void (*end)(void *user, const struct xs_exec_info *i, const struct xs_exit *e,
                const struct xs_part *transcript);
};

/* Memory of the library; xs_exec_result_free(). */
struct xs_exec_result {
    int session;              /* 0: the command has ended */
    struct xs_exit *exit;     /* NULL: it runs */
    double wall_s;            /* how long output was collected */
    const char *chunk_id;     /* 6 hex digits */
    uint64_t original_tokens; /* of the output since the last result, estimated */
    const void *output;       /* the output since then, as UTF-8, truncated to the budget */
    size_t n;
    const char *text; /* the whole text for the model; it ends with the output */
    size_t text_n;    /* its length: the output may have NULs */
};
XS_API void xs_exec_result_free(struct xs_exec_result *r);

/* The events are copied. */
XS_API int xs_exec_new(struct xs_client *c, const struct xs_exec_events *events, void *user,
                       struct xs_exec **out);
/* Terminates what runs, without an event. Calls in flight end with XS_ECANCELED. */
XS_API void xs_exec_free(struct xs_exec *x);

/* Options: those of a start, XS_OPT_YIELD_MS (10000; 250 to 30000), XS_OPT_MAX_TOKENS. Canceled, a
 * command that is no session yet is terminated. */
XS_API int xs_exec_command(struct xs_exec *x, const struct xs_options *o,
                           struct xs_exec_result **out, struct xs_call *k);
/* Writes to a session's terminal; n 0: polls. Without a terminal the byte 3 interrupts, other input
 * is XS_EINVAL, as is an unknown session. Calls of one session take turns. Options: XS_OPT_YIELD_MS
 * (with input 250; 250 to 30000; a poll 5000; 5000 to XS_OPT_POLL_MAX_MS), XS_OPT_MAX_TOKENS. */
XS_API int xs_exec_write_stdin(struct xs_exec *x, int session, const void *data, size_t n,
                               const struct xs_options *o, struct xs_exec_result **out,
                               struct xs_call *k);

/* -- files -- */

/* Paths are absolute, or relative to the server's directory, of any bytes but NUL. */
enum xs_flags {
    XS_NOFOLLOW = 1,  /* the link itself */
    XS_RECURSIVE = 2, /* mkdir: parents too; remove, copy, watch: everything below */
    XS_FORCE = 4,     /* remove: no error if it does not exist */
    XS_ATOMIC = 8,    /* write: the old content or all of the new */
    XS_NOREPLACE = 16 /* rename: an error if the target exists */
};

enum xs_kind { XS_KIND_OTHER, XS_KIND_FILE, XS_KIND_DIRECTORY, XS_KIND_LINK };

struct xs_stat {
    size_t size;
    int kind; /* enum xs_kind */
    int is_link;
    unsigned mode; /* permission bits; ~0u: unknown */
    uint64_t bytes;
    int64_t created_ms, modified_ms; /* since 1970; 0: unknown */
};

struct xs_entry {
    const char *name; /* list: the name; walk: the path below the start */
    size_t name_len;
    int kind;           /* enum xs_kind; of a link its target's, or XS_KIND_LINK */
    const char *target; /* walk with links: of a link; else NULL */
};

struct xs_walk_error {
    const char *path, *text;
};

/* Memory of the library; xs_entries_free(). */
struct xs_entries {
    const struct xs_entry *entries;
    size_t n;
    const struct xs_walk_error *errors; /* what could not be read */
    size_t n_errors;
    int truncated; /* a limit was reached */
};
XS_API void xs_entries_free(struct xs_entries *e);

struct xs_walk {
    size_t size;
    uint64_t max_depth, max_directories, max_entries; /* 0: the most that the server allows */
    int follow;                                       /* links to directories */
    int prune_hidden;
    int links; /* name links too; XS_ENOTSUP if the server cannot */
};

/* File calls, in the sandbox of the options (SANDBOX, WRITABLE, SANDBOX_JSON); NULL: in none. */
XS_API int xs_fs_new(struct xs_client *c, const struct xs_options *sandbox, struct xs_fs **out);
XS_API void xs_fs_free(struct xs_fs *f); /* files and watches of it live on */

XS_API int xs_fs_stat(struct xs_fs *f, const char *path, unsigned flags, struct xs_stat *s,
                      struct xs_call *k);
/* The whole file, at most max bytes: a larger one is XS_EREMOTE or XS_ENOTSUP. */
XS_API int xs_fs_read(struct xs_fs *f, const char *path, unsigned flags, uint64_t max,
                      struct xs_bytes *out, struct xs_call *k);
XS_API int xs_fs_write(struct xs_fs *f, const char *path, const void *data, size_t n,
                       unsigned flags, struct xs_call *k);
XS_API int xs_fs_list(struct xs_fs *f, const char *path, struct xs_entries **out,
                      struct xs_call *k);
XS_API int xs_fs_walk(struct xs_fs *f, const char *path, const struct xs_walk *limits,
                      struct xs_entries **out, struct xs_call *k);
XS_API int xs_fs_mkdir(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k);
XS_API int xs_fs_remove(struct xs_fs *f, const char *path, unsigned flags, struct xs_call *k);
XS_API int xs_fs_chmod(struct xs_fs *f, const char *path, unsigned mode, unsigned flags,
                       struct xs_call *k);
XS_API int xs_fs_copy(struct xs_fs *f, const char *from, const char *to, unsigned flags,
                      struct xs_call *k);
XS_API int xs_fs_rename(struct xs_fs *f, const char *from, const char *to, unsigned flags,
                        struct xs_call *k);
XS_API int xs_fs_set_times(struct xs_fs *f, const char *path, int64_t modified_ms, unsigned flags,
                           struct xs_call *k);
XS_API int xs_fs_canonicalize(struct xs_fs *f, const char *path, struct xs_bytes *out,
                              struct xs_call *k);
XS_API int xs_fs_read_link(struct xs_fs *f, const char *path, struct xs_bytes *out,
                           struct xs_call *k);
XS_API int xs_fs_symlink(struct xs_fs *f, const char *path, const char *target, struct xs_call *k);

/* Changes: paths that changed; `overflow`: anything may have. `failed`: the watch is over. */
struct xs_change {
    const char *const *paths;
    size_t n;
    int overflow;
    const char *failed; /* NULL, or why */
};
typedef void xs_watch_fn(struct xs_watch *w, const struct xs_change *c, void *user);
XS_API int xs_fs_watch(struct xs_fs *f, const char *path, unsigned flags, xs_watch_fn *fn,
                       void *user, struct xs_watch **out, struct xs_call *k);
/* Tells when one of the paths, which do not exist, appears; `paths` ends with NULL. */
XS_API int xs_fs_watch_missing(struct xs_fs *f, const char *const *paths, xs_watch_fn *fn,
                               void *user, struct xs_watch **out, struct xs_call *k);
XS_API void xs_watch_free(struct xs_watch *w);

enum xs_open { XS_OPEN_READ, XS_OPEN_REPLACE, XS_OPEN_UPDATE };
XS_API int xs_fs_open(struct xs_fs *f, const char *path, enum xs_open mode, struct xs_file **out,
                      struct xs_call *k);
/* The bytes read, 0 at the end; at most 1 MiB at a time. */
XS_API int xs_file_read(struct xs_file *f, uint64_t offset, void *buf, size_t n, struct xs_call *k);
/* Writes all, at most 1 MiB at a time. */
XS_API int xs_file_write(struct xs_file *f, uint64_t offset, const void *data, size_t n,
                         struct xs_call *k);
XS_API int xs_file_close(struct xs_file *f, struct xs_call *k); /* and frees it */
XS_API void xs_file_free(struct xs_file *f);                    /* closes without an answer */

/* -- copies -- */

struct xs_progress {
    const char *file; /* being copied; any bytes, as the server named it */
    uint64_t bytes, total;
    uint64_t files, files_total;
    double rate;         /* bytes per second, lately */
    const char *warning; /* NULL, or what was left out or differs: one line */
};
/* At most ten times a second, and for each warning. Not 0: the copy ends with XS_ECANCELED. */
typedef int xs_progress_fn(void *user, const struct xs_progress *p);

/*
 * The second path is the new name: a directory that is there is filled, not copied into, and a file
 * does not replace a directory. The data goes to a part file beside it (`.NAME.xs-part`), which the
 * next copy of the same source goes on with. The result is the number of things left out; each was
 * a warning. What concerns the whole copy ends it.
 */
XS_API int xs_copy_upload(struct xs_client *c, const char *local, const char *remote,
                          const struct xs_options *o, xs_progress_fn *progress, void *user,
                          struct xs_call *k);
XS_API int xs_copy_download(struct xs_client *c, const char *remote, const char *local,
                            const struct xs_options *o, xs_progress_fn *progress, void *user,
                            struct xs_call *k);

/* -- libexecserver-server: exec-server inside this program -- */

/* For a single-threaded process of its own, without children. xs_server_stage() is the first call
 * of main(): the server starts the program again, as the launcher of a sandbox, and then it does
 * not return. Else it returns 0. The library is static: execserver-server.pc. */
XS_API int xs_server_stage(int argc, char **argv);
/* exec-server(8) with these arguments; returns its exit status. It uses standard input, output and
 * signals as the program does. */
XS_API int xs_server_run(int argc, char **argv);

/* Names xs_http_... are reserved. */

#ifdef __cplusplus
}
#endif

#endif
