#pragma once
/*
 * Raw system calls, for code that must not touch the C library: the supervisor runs in the server's
 * memory, where errno and locks are the server's. Each returns the result or -errno.
 */

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

static inline long sys5(long n, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return r;
}

#elif defined(__aarch64__)

static inline long sys5(long n, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}

#else
#error "exec-server runs on x86-64 and aarch64"
#endif

static inline long sys0(long n) {
    return sys5(n, 0, 0, 0, 0, 0);
}

static inline long sys1(long n, long a) {
    return sys5(n, a, 0, 0, 0, 0);
}

static inline long sys2(long n, long a, long b) {
    return sys5(n, a, b, 0, 0, 0);
}

static inline long sys3(long n, long a, long b, long c) {
    return sys5(n, a, b, c, 0, 0);
}

static inline long sys4(long n, long a, long b, long c, long d) {
    return sys5(n, a, b, c, d, 0);
}

/* The kernel's sigaction. */
struct sys_sigaction {
    uintptr_t handler; /* SIG_DFL is 0, SIG_IGN 1 */
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

/* Gives every signal its default action, also the two that the C library keeps to itself. */
static inline void sys_default_signals(void) {
    struct sys_sigaction dfl = {0};
    for (int n = 1; n <= 64; n++)
        sys4(SYS_rt_sigaction, n, (long)&dfl, 0, sizeof dfl.mask);
}

static inline void sys_ignore_signal(int n) {
    struct sys_sigaction ign = {.handler = 1};
    sys4(SYS_rt_sigaction, n, (long)&ign, 0, sizeof ign.mask);
}
