#pragma once
/*
 * ptrace of a process for the moment of one exec. The thread that seizes is the tracer; if it dies,
 * so does the tracee (PTRACE_O_EXITKILL). Registers of x86-64 and aarch64.
 */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct trace_state {
    struct user_regs_struct regs;
    uint64_t mask; /* blocked signals */
};

/* Seizes a process that waits in the kernel, and makes it stop as soon as the call returns or a new
 * program is loaded. 0 or -errno. */
MUST_CHECK int intercept_trace_seize(pid_t tid);

/* Makes it stop again when the call that it is in returns. */
MUST_CHECK int intercept_trace_interrupt(pid_t tid);

/* Lets go of a stopped process; it gets `signo`, if that is not 0. */
void intercept_trace_let_go(pid_t tid, int signo);

/* Continues a stopped process; with `calls` up to the start or end of its next system call. */
void intercept_trace_continue(pid_t tid, bool calls);

/* Whether `status` is the stop before a new program's first instruction; or at a call's end. */
bool intercept_trace_is_exec(int status);
bool intercept_trace_is_stop(int status);

/* Whether it is the stop at the start or end of a system call. */
bool intercept_trace_is_call(int status);

/* After an exec: the number that the process's one thread had before. */
pid_t intercept_trace_former(pid_t pid);

/* Reads the registers and the blocked signals of a stopped process; blocks all signals. */
MUST_CHECK int intercept_trace_save(pid_t tid, struct trace_state *s);

/* Puts them back. */
void intercept_trace_restore(pid_t tid, const struct trace_state *s);

/* Whether a call can be made to happen in a process that has made `arch` calls. */
bool intercept_trace_can_call(const struct trace_state *s, uint32_t arch);

enum trace_call { TRACE_WRITE, TRACE_EXIT, TRACE_EXECVEAT };

/* Makes the process repeat its last system call, with another number and these arguments. */
MUST_CHECK int intercept_trace_call(pid_t tid, const struct trace_state *s, enum trace_call call,
                                    const uint64_t args[5]);

/* An address on the process's stack for `n` bytes, below what it uses; and writing there. */
uint64_t intercept_trace_room(const struct trace_state *s, size_t n);
MUST_CHECK int intercept_trace_write(pid_t tid, uint64_t at, const void *p, size_t n);

/* Whether it is a 32-bit program (pointers on its stack have 4 bytes). */
bool intercept_trace_is_narrow(const struct trace_state *s);
