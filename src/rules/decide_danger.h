#pragma once
/*
 * Commands that look dangerous: the user is asked about them although no rule names them. A help
 * against mistakes, no protection: whoever wants to delete a file finds another way.
 */

#include "base/arena.h"
#include "base/str.h"

#define DECIDE_DANGER_DEPTH 8 /* sudo, env and shells inside one another; deeper is dangerous */

/*
 * Whether a command of at least one word looks dangerous: `rm` with a flag that forces, also behind
 * sudo, env and trap, and inside scripts of `sh -c`. With `compat`, by the heuristics of the old
 * server: `rm -f`, `rm -rf`, and git commands that lose work.
 */
bool decide_danger(const struct str *words, size_t n, bool compat, struct arena *a);
