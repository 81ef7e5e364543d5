#pragma once
/* What the files of interception share. */

#include "base/arena.h"
#include "base/list.h"
#include "intercept/intercept.h"
#include "intercept/intercept_look.h"
#include "intercept/intercept_trace.h"
#include "intercept/stub.h"
#include "loop/pool.h"

#include <linux/seccomp.h>
#include <sys/wait.h>

#define INTERCEPT_ARENA_MAX (4 * INTERCEPT_STRINGS_MAX) /* bytes of one ask */
#define INTERCEPT_WATCH_MS 200 /* between looks whether the callers of open asks still live */
#define INTERCEPT_GLANCE_MS 1  /* between looks at a program that somebody else traces */
#define INTERCEPT_GLANCES 200

extern const unsigned char intercept_stub_program[];
extern const size_t intercept_stub_size;

/* The life of an ask. */
enum intercept_state {
    INTERCEPT_UNREAD,   /* too many others are open */
    INTERCEPT_LOOKING,  /* a thread looks for the file */
    INTERCEPT_OPEN,     /* the owner decides */
    INTERCEPT_LOADING,  /* RUN: the call goes on; it stops before the program's first instruction */
    INTERCEPT_GLANCING, /* the same, but somebody else traces the caller: we look now and then */
    INTERCEPT_REOPENED, /* the owner decides about what was loaded; the program is stopped */
    INTERCEPT_REFUSING, /* DENY: the call has failed; the caller is about to stop */
    INTERCEPT_PRINTING, /* DENY: it writes the reason */
    INTERCEPT_FAILED,   /* ESCALATE: the call has failed; the caller is about to stop */
    INTERCEPT_ENTERING, /* ESCALATE: it is about to execute the stub */
    INTERCEPT_ENTERED,  /* ESCALATE: it executes the stub */
    INTERCEPT_STANDING, /* ESCALATE: it is the stub */
    INTERCEPT_OVER,     /* to be freed */
};

struct intercept_host {
    struct loop *loop;
    struct intercept_known known[INTERCEPT_KNOWN];
    struct pool *pool;
    struct list traced; /* asks with a tracee */
    struct list lost;   /* asks of ended commands, while a thread has them */
    int stub;           /* memfd of the stub's program */
    uint64_t stub_dev, stub_ino;
    size_t notif_size, resp_size; /* of the kernel's structs */
    struct seccomp_notif *notif;
    struct seccomp_notif_resp *resp;
};

struct intercept_stub {
    struct loop_io io; /* our end of the socket; fd -1: none */
    bool told;         /* the owner knows it */
    int err;           /* a copy of its stderr, from escalate() on; else -1 */
    pid_t pid;
    uint64_t ignored, blocked;
    mode_t umask;
};

struct intercept_ask {
    struct list node;    /* of its command, or in host->lost */
    struct list traced;  /* in host->traced */
    struct intercept *x; /* NULL: its command has ended */
    struct intercept_host *host;
    enum intercept_state state;
    bool counted; /* in x->unread */
    bool in_pool; /* a thread may have it */
    size_t bytes; /* of strings read so far */
    int looked;   /* result of that thread */

    uint64_t id; /* of the notification */
    pid_t tid, tgid;
    uint32_t arch;
    int nr;
    uint64_t args[6];

    struct arena arena;
    struct intercept_exec e;
    struct intercept_look look;
    struct pool_job job;

    char *reason; /* of DENY; in the arena */
    struct loop_timer glance;
    unsigned glances;
    uint64_t before_dev, before_ino; /* the caller's program, while we glance */
    int stub_fd, stub_sock;          /* numbers in the target */
    struct trace_state saved;        /* registers before the injection */
    unsigned steps;
    struct intercept_stub stub;
    struct loop_task free_task;
};

struct intercept {
    struct intercept_host *host;
    struct intercept_options o;
    uint64_t mark;           /* 0: a later exec was seen */
    struct loop_io channel;  /* for the listener; -1 when it has come */
    struct loop_io listener; /* -1: not yet, or no process is left */
    bool ended;              /* no process is left */
    bool dead;               /* intercept_free() was called, inside a callback */
    unsigned busy;           /* callbacks and loops that still use it */
    struct list asks;        /* the oldest first */
    size_t open;             /* of them LOOKING, OPEN, REOPENED or GLANCING */
    size_t unread;
    size_t stubs;
    struct loop_timer watch;
    struct loop_task next; /* reads more asks */
    pid_t first;           /* the command's first process; 0: none yet */
    bool shell_known;
    uint64_t shell_dev, shell_ino;
};

/* intercept.c: answers the kernel. 0, or -errno: the caller is gone. */
int intercept_respond(struct intercept_ask *a, int error);
int intercept_continue(struct intercept_ask *a);
/* Around what may call the owner, who may free the command: false: touch nothing of it any more. */
void intercept_enter(struct intercept *x);
bool intercept_leave(struct intercept *x);
void intercept_watch(struct intercept *x); /* now and then, as long as an ask is open */

/* intercept_ask.c: its life. Over: freed soon. Drop: the same, and the owner hears of it. */
struct intercept_ask *intercept_ask_new(struct intercept *x, const struct seccomp_notif *n);
void intercept_ask_set(struct intercept_ask *a, enum intercept_state s);
bool intercept_ask_is_open(const struct intercept_ask *a);
void intercept_ask_read(struct intercept_ask *a);
int intercept_ask_environment(struct intercept_ask *a);
bool intercept_ask_is_by_shell(struct intercept_ask *a);
void intercept_ask_over(struct intercept_ask *a);
void intercept_ask_drop(struct intercept_ask *a);
void intercept_ask_free(struct intercept_ask *a);
void intercept_ask_next(struct loop_task *t);

/* intercept_run.c: what follows an answer. */
void intercept_run_go(struct intercept_ask *a);
void intercept_run_loaded(struct intercept_ask *a, enum intercept_verdict v);
void intercept_run_stopped(struct intercept_ask *a, int status);

/* intercept_deny.c */
void intercept_deny_go(struct intercept_ask *a);
void intercept_deny_stopped(struct intercept_ask *a, int status);

/* intercept_stub.c */
void intercept_stub_go(struct intercept_ask *a);
bool intercept_stub_enters(struct intercept_ask *a, const struct seccomp_notif *n);
void intercept_stub_stop(struct intercept_ask *a, int status);
void intercept_stub_fini(struct intercept_ask *a);
