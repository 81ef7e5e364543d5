#pragma once
/* Builds the environment of a command: inherits, filters, sets and injects variables. */

#include "base/arena.h"
#include "json/json.h"

#include <stdbool.h>

enum env_inherit { ENV_CORE, ENV_ALL, ENV_NONE };

/* The `envPolicy` of a start; nodes are borrowed, checked arrays and maps of strings. */
struct env_policy {
    enum env_inherit inherit;
    bool ignore_default_excludes;
    const struct json_node *exclude, *set, *include_only;
};

/* A variable of the server's own making. */
struct env_variable {
    const char *name, *value;
};

struct env_request {
    const struct env_policy *policy;  /* NULL: exactly `env` */
    const struct json_node *env;      /* map of strings */
    struct str thread_id;             /* p NULL = none */
    bool no_thread_id;                /* remove a thread id from every source */
    struct str tool_call_id;          /* p NULL = none */
    const struct env_variable *extra; /* override every source */
    size_t extra_count;
    const char *shell; /* added as SHELL if there is none; NULL = never */
};

#define ENV_MATCH_STEPS 500000 /* most characters compared with patterns in one start */

/*
 * Builds the "NAME=VALUE" array, sorted by name, NULL-terminated, in the arena. `inherited` is the
 * server's environment. 0 and *out; -EINVAL when a name or value holds a NUL; -E2BIG when matching
 * the patterns takes more than ENV_MATCH_STEPS; -ENOMEM.
 */
MUST_CHECK int env_build(struct arena *a, const struct env_request *r, char *const *inherited,
                         char ***out);

/* Whether `name` matches a pattern: the whole name, case ignored, `*` any run, `?` one. */
bool env_match(struct str pattern, struct str name);

/* The value of `name` in an array of "NAME=VALUE", or NULL. */
const char *env_get(char *const *envp, const char *name);
