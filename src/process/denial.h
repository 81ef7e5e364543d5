#pragma once
/*
 * Whether a command with a sandbox object seems to have failed because of its sandbox. Nobody can
 * know; clients expect this guess: it did not exit with 0, and its output has one of a few phrases,
 * or SIGSYS ended it. They expect it also of an object that allows everything.
 */

#include "proc/outlog.h"

#include <stdbool.h>

#define DENIAL_SEARCH_MAX (1u << 20) /* bytes looked at: the newest whole chunks within this */

/* Looks at each stream, and at all in the order of arrival; letters of either case are the same. */
bool denial_seen(const struct outlog *log, int exit_code);
