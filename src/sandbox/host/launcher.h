#pragma once
/*
 * How the server talks to the launcher: a stage of this program, started afresh for every sandbox.
 *
 *     server ── supervisor ── launcher ── init (pid 1 inside) ── command
 *
 * The supervisor execs it (execveat of a descriptor of our own executable) with argv
 * launcher_argv, an empty environment, signals unblocked, as the leader of a process group, with
 * these descriptors and no others:
 *
 *     0, 1, 2   the command's
 *     3         the request (launch_request_memfd())
 *     4         one end of a SOCK_SEQPACKET pair, the control channel
 *     5         a memfd of PLACEHOLDERS_BYTES, zeroed (base/placeholders.h); may be missing
 *     6         an empty network namespace to share (backend_network()); for a plan with ports of
 *               the proxy one end of a SOCK_SEQPACKET pair; may be missing
 *     7, 8      descriptors for the command (launch_request.given); may be missing
 *     9         a socket for the listener of execs (base/execfilter.h); only with a mark in the
 *               request
 *
 * The launcher sends one packet, a struct launch_report: the command runs (its exec has
 * succeeded), or why it does not. In its own pid namespace a second packet may follow, a struct
 * launch_outcome: the command has ended, nothing it started lives, and its placeholder
 * directories are gone; with launch_request.linger only that the command has ended. The server
 * sends packets of signal numbers, a byte each, for the command's process group.
 *
 * For a port of the proxy the launcher sends a packet over descriptor 6: the port (uint16_t), and
 * with it a listener inside the sandbox.
 *
 * With LAUNCH_HELPER the helper owns the channel after the report. LAUNCH_PROBE ends after its
 * report, whose `error` is EXDEV if the sandbox sees the container's /proc. LAUNCH_NETWORK only
 * sends a descriptor with its report; LAUNCH_CALLS puts its answer in `error`.
 *
 * The launcher ends as the command ends: with its exit status or by its signal. Killing the
 * launcher kills everything inside. A process that shares the list of placeholder directories then
 * removes them, once all its children are gone. When its parent dies, or on SIGTERM, the launcher
 * kills everything inside, removes the directories itself, and ends.
 */

#include "sandbox/host/launch_request.h"
#include "sandbox/policy/fault.h"

#define LAUNCH_REQUEST_FD 3
#define LAUNCH_CONTROL_FD 4
#define LAUNCH_PLACEHOLDERS_FD 5
#define LAUNCH_NETWORK_FD 6
#define LAUNCH_GIVEN_FD 7
#define LAUNCH_INTERCEPT_FD 9

enum launch_report_kind {
    LAUNCH_RUNNING = 1,
    LAUNCH_FAILED = 2,
    LAUNCH_ENDED = 3, /* of a struct launch_outcome */
};

/*
 * A report. If the launch failed, `text` tells the user why (on the wire it is the rest of the
 * packet, without a NUL); with FAULT_CWD and FAULT_EXEC it is the text of errno `error` alone.
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
    struct rusage usage; /* of the command and the children it waited for */
    bool peak_known;     /* usage.ru_maxrss counts no memory that the command shared with us */
};

/* The arguments that make this program a launcher. */
extern char *const launcher_argv[];

/* Whether this process was started as a launcher; main() asks before anything else. */
bool launcher_is_stage(int argc, char **argv);

/*
 * A descriptor of our own executable to start launchers from, close-on-exec and clear of the
 * numbers above; or -errno. Replacing the file does not change what a running server starts.
 *
 * Until its exec the command runs this file, and it may exec /proc/self/exe (or a script of that):
 * a name that leads past all mounts, and Landlock ignores modes. If the command could change the
 * file or its mode that way, the descriptor is of a sealed copy.
 */
MUST_CHECK int launcher_open_self(void);
