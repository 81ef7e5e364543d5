#pragma once
/*
 * The `sandbox` object of a request: today's shape and the older ones (PROTOCOL.md, "Sandbox").
 * profile_decode() checks shapes only (-32602). Whether a call must be confined at all, and the
 * plan to confine it by, come afterwards: then paths that this host cannot have are errors too.
 */

#include "base/arena.h"
#include "json/json.h"
#include "sandbox/policy/plan.h"

/* Entries and paths, bytes; what an arena for one profile may take. */
#define PROFILE_ARENA_MAX (16u << 20)

enum profile_call { PROFILE_PROCESS, PROFILE_FILES };

enum profile_need {
    PROFILE_DIRECT,   /* nothing to confine: do it */
    PROFILE_CONFINED, /* make a plan and confine it */
};

struct profile; /* lives in the arena it was decoded into */

/*
 * Decodes `v`. NULL or a JSON null gives *out = NULL: no sandbox. 0, -EINVAL with -32602 (the
 * reference's texts), -ENOMEM with -32603. PROFILE_FILES also refuses a profile that depends on a
 * cwd and has none ("file system sandbox context with dynamic permissions requires cwd").
 */
MUST_CHECK int profile_decode(const struct json_node *v, enum profile_call call, struct arena *a,
                              struct profile **out, struct err *e);

/* For a file call: whether reading (or, with `write`, changing) needs the sandbox. NULL: direct. */
enum profile_need profile_files_need(const struct profile *p, bool write);

/* For a process: direct only when nothing is restricted, the network included. NULL: direct. */
enum profile_need profile_process_need(const struct profile *p);

/* What a plan depends on besides the profile. */
struct profile_context {
    enum profile_call call;
    const char *cwd; /* native: the process's, or the server's; used where the profile has none */
    const char *tmpdir; /* TMPDIR of the command (or of the server, for file calls), or NULL */
    const char *home;   /* what "~" stands for in a glob: HOME, else the user's; NULL: itself */
    bool inherit_pids;
};

/*
 * Makes the plan; its memory comes from `a`. 0; -EINVAL with the reference's text and code
 * (-32602 for a process, -32600 for a file call) for a path that is foreign to this host or
 * windowsSandboxLevel mxc, -32602 for a policy beyond the limits of a plan, -32603 for a glob that
 * names no directory to look in; -ENOMEM with -32603. The fields of a managed network are the
 * caller's.
 */
MUST_CHECK int profile_plan(const struct profile *p, const struct profile_context *c,
                            struct arena *a, struct plan *plan, struct err *e);
