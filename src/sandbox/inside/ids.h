#pragma once
/* Users and groups in a user namespace. */

#include "base/util.h"

#include <sys/types.h>

/*
 * Maps one user and one group, under their own numbers, into this process's new user namespace; uid
 * and gid are the effective ones from before. 0, or -errno with *what, a constant text. The process
 * must be dumpable, else it does not own its files in /proc.
 */
MUST_CHECK int ids_map(uid_t uid, gid_t gid, const char **what);
