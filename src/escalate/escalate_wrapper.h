#pragma once
/*
 * The execve wrapper: a patched shell runs `codex-execve-wrapper FILE ARGV...` instead of each
 * program. It asks the server, and runs the program itself, lets the server run it, or ends.
 */

#include <stdbool.h>

/* Whether this process was started under the wrapper's name. */
bool escalate_wrapper_is(const char *argv0);

/* Does it all; the exit status if the program does not take this process over. */
int escalate_wrapper_main(int argc, char **argv);
