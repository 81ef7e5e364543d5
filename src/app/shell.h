#pragma once
/* Chooses the shell that the server names to clients, and to commands on a terminal. */

#include "base/util.h"

/*
 * The shell that clients run their scripts with: the login shell if it is an executable bash, zsh
 * or sh; else the first bash in `path` (NULL = none; entries that are not absolute are skipped),
 * else /bin/bash, else /bin/sh. A login shell such as nologin or python would fail every command.
 * Owned by the caller; NULL when out of memory.
 */
MUST_CHECK char *shell_for_clients(const char *login, const char *path);

/* SHELL of a terminal without one: the login shell if it is executable, else /bin/sh. Borrowed. */
const char *shell_for_terminals(const char *login);
