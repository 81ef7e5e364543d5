#pragma once
/* The server's request to the launcher: the plan, the command and how to confine it. The encoded
 * form lies in a sealed memfd; the launcher maps it, and decoded strings point into the mapping. */

#include "base/arena.h"
#include "base/buf.h"
#include "sandbox/policy/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define LAUNCH_BYTES_MAX (PLAN_BYTES_MAX + (8u << 20)) /* bytes of an encoded request */
#define LAUNCH_STRINGS_MAX 65536                       /* arguments, and as many variables */
#define LAUNCH_LIMITS_MAX 16
#define LAUNCH_GIVEN_LIMIT 64        /* their numbers in the command are below this */
#define LAUNCH_GIVEN 2               /* descriptors that a command can get beyond 0, 1 and 2 */
#define LAUNCH_ARENA_MAX (64u << 20) /* bytes the launcher may allocate */

enum launch_mode {
    LAUNCH_COMMAND, /* run a program */
    LAUNCH_HELPER,  /* run a function of ours (sandbox/inside/launch.h) */
    LAUNCH_PROBE,   /* set up, report, and end */
    LAUNCH_NETWORK, /* make an empty network namespace, send it with the report, and end */
    LAUNCH_CALLS,   /* report which system calls are filtered (cause_try_calls()), and end */
};

/* The mechanism that enforces the plan, in order of preference. */
enum launch_backend {
    LAUNCH_USERNS,   /* namespaces made by a user namespace */
    LAUNCH_ROOT,     /* namespaces made with the capabilities we have */
    LAUNCH_LANDLOCK, /* no namespaces: Landlock and seccomp alone */
};
#define LAUNCH_BACKENDS 3

struct launch_limit {
    int32_t resource; /* RLIMIT_... */
    uint64_t soft, hard;
};

struct launch_request {
    enum launch_mode mode;
    enum launch_backend backend;
    uint32_t landlock_max; /* newest Landlock ABI to use; 0: none */
    const char *advice;    /* follows the refusal of a policy beyond this backend; or NULL */
    bool tty;              /* descriptor 0 becomes the controlling terminal */
    struct plan plan;
    /* LAUNCH_COMMAND: */
    const char *program;
    const char *search; /* PATH to look `program` up in, or NULL: take it as it is */
    char **argv;        /* NULL-terminated */
    char **envp;
    const struct launch_limit *limits; /* set just before exec */
    size_t limit_count;
    int32_t given[LAUNCH_GIVEN]; /* its numbers for LAUNCH_GIVEN_FD + i; below 3: none */
    bool linger;   /* what it leaves behind lives on; else everything inside ends with it */
    uint64_t mark; /* of intercepted execs (base/execfilter.h); 0: nobody watches them */
};

/* Appends the encoded request. 0; -ENOBUFS above a maximum; or as buf_reserve(). */
MUST_CHECK int launch_request_encode(const struct launch_request *r, struct buf *b);

/* Decodes; strings point into `bytes`, arrays come from `a`. 0, -EINVAL, -ENOMEM. */
MUST_CHECK int launch_request_decode(struct str bytes, struct arena *a, struct launch_request *r);

/* A sealed memfd (close-on-exec) with the encoded request, for LAUNCH_REQUEST_FD; or -errno. */
MUST_CHECK int launch_request_memfd(const struct launch_request *r);
