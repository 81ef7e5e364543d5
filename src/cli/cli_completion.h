#pragma once
/* Completions for shells, generated from the table. */

#include <stdbool.h>
#include <stdio.h>

/* Prints the script for `bash`, `zsh` or `fish`; false for another name. The scripts call
 * `xs completion complete KIND WORD` for what only the program knows: KIND is host, name, remote
 * or both. */
bool cli_completion_print(FILE *out, const char *shell);
