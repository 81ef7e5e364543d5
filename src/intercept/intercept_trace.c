#include "intercept/intercept_trace.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

#define TRACE_RED_ZONE 256 /* bytes below the stack pointer that a program may use */
#define TRACE_STOP 128     /* PTRACE_EVENT_STOP; the C library's headers differ */

static long trace(long request, pid_t tid, uintptr_t addr, uintptr_t data) {
    return syscall(SYS_ptrace, request, tid, addr, data);
}

int intercept_trace_seize(pid_t tid) {
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
    if (trace(PTRACE_SEIZE, tid, 0, (uintptr_t)options) < 0)
        return -errno;
    return intercept_trace_interrupt(tid);
}

int intercept_trace_interrupt(pid_t tid) {
    return trace(PTRACE_INTERRUPT, tid, 0, 0) < 0 ? -errno : 0;
}

void intercept_trace_let_go(pid_t tid, int signo) {
    trace(PTRACE_DETACH, tid, 0, (uintptr_t)signo);
}

void intercept_trace_continue(pid_t tid, bool calls) {
    trace(calls ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, 0);
}

bool intercept_trace_is_exec(int status) {
    return status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

bool intercept_trace_is_stop(int status) {
    return status >> 16 == TRACE_STOP;
}

pid_t intercept_trace_former(pid_t pid) {
    unsigned long former = 0;
    return trace(PTRACE_GETEVENTMSG, pid, 0, (uintptr_t)&former) < 0 ? pid : (pid_t)former;
}

bool intercept_trace_is_call(int status) {
    return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

static int trace_get(pid_t tid, struct user_regs_struct *regs) {
#if defined(__x86_64__)
    return trace(PTRACE_GETREGS, tid, 0, (uintptr_t)regs) < 0 ? -errno : 0;
#else
    struct iovec iov = {regs, sizeof *regs};
    if (trace(PTRACE_GETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov) < 0)
        return -errno;
    return iov.iov_len == sizeof *regs ? 0 : -EOPNOTSUPP; /* a 32-bit program */
#endif
}

static int trace_set(pid_t tid, const struct user_regs_struct *regs) {
#if defined(__x86_64__)
    return trace(PTRACE_SETREGS, tid, 0, (uintptr_t)regs) < 0 ? -errno : 0;
#else
    struct iovec iov = {(void *)(uintptr_t)regs, sizeof *regs};
    int none = -1; /* do not restart the call */
    struct iovec call = {&none, sizeof none};
    if (trace(PTRACE_SETREGSET, tid, 0x404 /* NT_ARM_SYSTEM_CALL */, (uintptr_t)&call) < 0)
        return -errno;
    return trace(PTRACE_SETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov) < 0 ? -errno : 0;
#endif
}

int intercept_trace_save(pid_t tid, struct trace_state *s) {
    uint64_t all = ~(uint64_t)0;
    int r = trace_get(tid, &s->regs);
    if (r < 0)
        return r;
    if (trace(PTRACE_GETSIGMASK, tid, sizeof s->mask, (uintptr_t)&s->mask) < 0 ||
        trace(PTRACE_SETSIGMASK, tid, sizeof all, (uintptr_t)&all) < 0)
        return -errno;
    return 0;
}

void intercept_trace_restore(pid_t tid, const struct trace_state *s) {
    (void)trace_set(tid, &s->regs);
    trace(PTRACE_SETSIGMASK, tid, sizeof s->mask, (uintptr_t)&s->mask);
}

#if defined(__x86_64__)

#define TRACE_CODE32 0x23 /* code segment of a 32-bit program */

bool intercept_trace_is_narrow(const struct trace_state *s) {
    return s->regs.cs == TRACE_CODE32;
}

/* A 64-bit program may call as a 32-bit one does, but cannot pass addresses of its stack then. */
bool intercept_trace_can_call(const struct trace_state *s, uint32_t arch) {
    return (arch == AUDIT_ARCH_I386) == intercept_trace_is_narrow(s);
}

int intercept_trace_call(pid_t tid, const struct trace_state *s, enum trace_call call,
                         const uint64_t args[5]) {
    static const int wide[] = {[TRACE_WRITE] = 1, [TRACE_EXIT] = 231, [TRACE_EXECVEAT] = 322};
    static const int narrow[] = {[TRACE_WRITE] = 4, [TRACE_EXIT] = 252, [TRACE_EXECVEAT] = 358};
    struct user_regs_struct r = s->regs;
    r.rip -= 2; /* `syscall`, or `int $0x80` */
    r.orig_rax = ~0ull;
    if (intercept_trace_is_narrow(s)) {
        r.rax = (unsigned)narrow[call];
        r.rbx = args[0];
        r.rcx = args[1];
        r.rdx = args[2];
        r.rsi = args[3];
        r.rdi = args[4];
    } else {
        r.rax = (unsigned)wide[call];
        r.rdi = args[0];
        r.rsi = args[1];
        r.rdx = args[2];
        r.r10 = args[3];
        r.r8 = args[4];
    }
    return trace_set(tid, &r);
}

static uint64_t trace_stack(const struct trace_state *s) {
    return s->regs.rsp;
}

#elif defined(__aarch64__)

bool intercept_trace_is_narrow(const struct trace_state *s) {
    (void)s;
    return false;
}

bool intercept_trace_can_call(const struct trace_state *s, uint32_t arch) {
    (void)s;
    return arch == AUDIT_ARCH_AARCH64;
}

int intercept_trace_call(pid_t tid, const struct trace_state *s, enum trace_call call,
                         const uint64_t args[5]) {
    static const int numbers[] = {[TRACE_WRITE] = 64, [TRACE_EXIT] = 94, [TRACE_EXECVEAT] = 281};
    struct user_regs_struct r = s->regs;
    r.pc -= 4; /* `svc` */
    r.regs[8] = (unsigned long long)numbers[call];
    for (int i = 0; i < 5; i++)
        r.regs[i] = args[i];
    return trace_set(tid, &r);
}

static uint64_t trace_stack(const struct trace_state *s) {
    return s->regs.sp;
}

#endif

uint64_t intercept_trace_room(const struct trace_state *s, size_t n) {
    return (trace_stack(s) - TRACE_RED_ZONE - n) & ~15ull;
}

int intercept_trace_write(pid_t tid, uint64_t at, const void *p, size_t n) {
    struct iovec here = {(void *)(uintptr_t)p, n}, there = {(void *)(uintptr_t)at, n};
    return process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}
