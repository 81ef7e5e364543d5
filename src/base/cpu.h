#pragma once
/* Features of the processor. The C library has asked for them already. The compiler's own check
 * asks again at every start of the program, which costs microseconds in a virtual machine. */

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
