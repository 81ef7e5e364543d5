#pragma once
/* Reads the arguments of an exec from the caller's memory. The caller waits in the kernel, but
 * other threads may write to that memory: each byte is read once. */

#include "base/arena.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A text of at most `max` bytes with its NUL. 0, -EFAULT, -ENAMETOOLONG above `max`, -ENOMEM, or
 * why the memory cannot be read. */
MUST_CHECK int intercept_read_text(pid_t tid, uint64_t at, size_t max, struct arena *a,
                                   const char **out);

/*
 * A NULL-terminated vector of texts; `narrow`: of 32-bit pointers. Address 0 is an empty vector.
 * Texts and pointers are counted in *bytes, at most `max`: beyond -E2BIG; else as
 * intercept_read_text().
 */
MUST_CHECK int intercept_read_vector(pid_t tid, uint64_t at, bool narrow, size_t max, size_t *bytes,
                                     struct arena *a, char *const **out, size_t *count);
