#pragma once
/* Finds the simple commands in the text of a shell script; runs and expands nothing. */

#include "base/arena.h"
#include "base/str.h"

#define DECIDE_SCRIPT_NESTING 64 /* substitutions and groups inside one another */

enum decide_script_result {
    DECIDE_SCRIPT_DONE,
    DECIDE_SCRIPT_ODD,  /* not plain words, or too deeply nested; some commands may be unknown */
    DECIDE_SCRIPT_STOP, /* the callback returned false */
    DECIDE_SCRIPT_NOMEM,
};

/* A command without assignments and redirections; at least one word. False ends the search. */
typedef bool decide_script_fn(void *user, const struct str *words, size_t n);

/*
 * Calls `each` for every command: those of lists, pipelines, loops, functions, groups and
 * substitutions. Variables stay as they are written. With `plain`, anything but words, quotes and
 * the operators && || ; | makes the script odd, and `each` is called for none of it.
 */
MUST_CHECK enum decide_script_result decide_script(struct str text, bool plain, struct arena *a,
                                                   decide_script_fn *each, void *user);
