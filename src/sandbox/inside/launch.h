#pragma once
/*
 * The launcher: a stage of this program, started afresh for every sandbox.
 *
 *     server ── supervisor ── launcher ── init (pid 1 inside) ── command
 *
 * It is exec'ed (execveat of a descriptor of our own executable) with argv launch_argv, an empty
 * environment, signals unblocked, as the leader of a process group, with these descriptors and no
 * others:
 *
 *     0, 1, 2   of the command
 *     3         the request (launch_request_memfd())
 *     4         one end of a SOCK_SEQPACKET pair, the control channel
 *     5         a memfd of PLACEHOLDERS_BYTES, zeroed (base/placeholders.h); may be missing
 *     6         an empty network namespace to share (backend_network()); may be missing
 *
 * To the server goes a packet, a struct launch_report: the command runs (its exec has succeeded),
 * or why not. In a pid namespace of its own another may follow, a struct launch_outcome: the
 * command has ended, nothing it started lives, and what held places on the host is removed. From
 * the server come packets of signal numbers, a byte each, for the process group of the command.
 * With LAUNCH_HELPER the channel is the helper's after the report. LAUNCH_PROBE ends after it;
 * `error` of its report is EXDEV if the /proc inside is that of the container. LAUNCH_NETWORK does
 * nothing but send a descriptor along with its report, LAUNCH_CALLS has its answer in `error`.
 *
 * The launcher ends as the command ends: with its exit status or by its signal. When it is killed,
 * everything inside is killed with it; the placeholder directories in the list are then to be
 * removed by whoever shares it, when all its children are gone. When its parent dies, or on
 * SIGTERM, it kills everything inside, removes them itself, and ends.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"
#include "sandbox/inside/layout.h"

#define LAUNCH_REQUEST_FD 3
#define LAUNCH_CONTROL_FD 4
#define LAUNCH_PLACEHOLDERS_FD 5
#define LAUNCH_NETWORK_FD 6

enum launch_report_kind {
    LAUNCH_RUNNING = 1,
    LAUNCH_FAILED = 2,
    LAUNCH_ENDED = 3, /* of a struct launch_outcome */
};

/*
 * A report. Of a failed one `text` (not NUL-terminated on the wire: the rest of the packet) is what
 * to tell the user; with FAULT_CWD and FAULT_EXEC it is the text of errno `error` alone.
 */
struct launch_report {
    uint32_t kind; /* enum launch_report_kind */
    uint32_t step; /* enum fault_step */
    int32_t error; /* errno, or 0 */
    char text[FAULT_TEXT_MAX];
};

/* How the command ended. */
struct launch_outcome {
    uint32_t kind;       /* LAUNCH_ENDED */
    int32_t status;      /* as of wait() */
    struct rusage usage; /* of the command and what it waited for */
    bool peak_known;     /* usage.ru_maxrss is not of our own memory, which it had until its exec */
};

/* What to run instead of a command: its result is the exit status. */
typedef int launch_helper_fn(const struct layout *l, int channel);

/* The arguments that make this program a launcher. */
extern char *const launch_argv[];

/*
 * A descriptor (close-on-exec, clear of the numbers above) of our own executable to start launchers
 * from, or -errno: replacing the file does not change what a running server starts. Until its exec
 * the command is a process that runs this file, and what it executes first may be /proc/self/exe
 * (or a script of that): a name of the file that leads past all mounts, and Landlock knows nothing
 * of modes. If the file or its mode could be changed that way, it is a sealed copy.
 */
MUST_CHECK int launch_open_self(void);

/* Whether it was started as one; to be asked before anything else. */
bool launch_is_stage(int argc, char **argv);

/* Does it; `helper` is for LAUNCH_HELPER. Does not return. */
_Noreturn void launch_main(launch_helper_fn *helper);
