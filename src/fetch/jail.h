#pragma once
/*
 * Confines the HTTP program for good: no exec, no new processes, no file is written or changed, few
 * are read, no sockets but those of the internet, no capabilities, no core files.
 */

#include "base/util.h"

#include <stddef.h>

/* 0 or -errno: it must not go on. Landlock is used where the kernel has it; the rest must hold. The
 * `more` paths (NULL: none) can be read besides those that every program of this kind needs. */
MUST_CHECK int jail_enter(const char *const *more, size_t n);
