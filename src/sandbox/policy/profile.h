#pragma once
/*
 * The `sandbox` object of a request: today's shape and the older ones (PROTOCOL.md, "Sandbox").
 * profile_decode() checks shapes only (-32602). Later questions are whether a call needs a sandbox
 * at all, and by which plan; then paths that this host cannot have become errors too.
 */

#include "base/arena.h"
#include "json/json.h"
#include "sandbox/policy/plan.h"

/* Bytes that one profile may take. */
#define PROFILE_ARENA_MAX (16u << 20)

enum profile_call { PROFILE_PROCESS, PROFILE_FILES };

enum profile_need {
    PROFILE_DIRECT,   /* nothing to confine: run it */
    PROFILE_CONFINED, /* make a plan and enforce it */
};

struct profile; /* lives in the arena it was decoded into */

/*
 * Decodes `v`. NULL or a JSON null gives *out = NULL: no sandbox. 0; -EINVAL with -32602 and the
 * reference's text; -ENOMEM with -32603. PROFILE_FILES also refuses a profile that depends on a cwd
 * and has none ("file system sandbox context with dynamic permissions requires cwd").
 */
MUST_CHECK int profile_decode(const struct json_node *v, enum profile_call call, struct arena *a,
                              struct profile **out, struct err *e);

/* For a file call: whether a read (or, with `write`, a change) needs the sandbox. NULL: direct. */
enum profile_need profile_files_need(const struct profile *p, bool write);

/* For a process: direct only if nothing is restricted, not even the network. NULL: direct. */
enum profile_need profile_process_need(const struct profile *p);

/* What a plan depends on besides the profile. */
struct profile_context {
    enum profile_call call;
    const char *cwd;    /* native: the process's, or the server's; for a profile that has none */
    const char *tmpdir; /* TMPDIR of the command (for file calls: of the server), or NULL */
    const char *home;   /* replaces "~" in a glob: HOME, else the user's; NULL: "~" stays */
    bool inherit_pids;
};

/*
 * Makes the plan; its memory comes from `a`. 0; -ENOMEM with -32603; or -EINVAL with
 * - the reference's text and code (-32602 for a process, -32600 for a file call) for a path that is
 *   foreign to this host, or windowsSandboxLevel mxc;
 * - -32602 for a policy that a plan cannot hold;
 * - -32603 for a glob that names no directory to look in.
 * The caller fills in the managed network.
 */
MUST_CHECK int profile_plan(const struct profile *p, const struct profile_context *c,
                            struct arena *a, struct plan *plan, struct err *e);
