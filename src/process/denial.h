#pragma once
/*
 * Guesses whether its sandbox made a command fail. Clients expect this guess: the command did not
 * exit with 0, and its output has one of a few phrases, or SIGSYS ended it. They expect it also for
 * a sandbox object that allows everything.
 */

#include "proc/outlog.h"

#include <stdbool.h>

#define DENIAL_SEARCH_MAX (1u << 20) /* bytes to search: the newest whole chunks that fit */

/* Searches each stream, and all streams in order of arrival; ignores case. */
bool denial_seen(const struct outlog *log, int exit_code);
