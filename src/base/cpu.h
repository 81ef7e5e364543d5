#pragma once
/*
 * What the processor can do. The C library has asked it already; the compiler's own way to know
 * asks again whenever the program starts, and in a virtual machine each question costs
 * microseconds.
 */

#include <stdbool.h>

#if defined(__x86_64__)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>

static inline bool cpu_has_avx2(void) {
    return CPU_FEATURE_ACTIVE(AVX2);
}
#else
static inline bool cpu_has_avx2(void) {
    return __builtin_cpu_supports("avx2");
}
#endif
#endif
