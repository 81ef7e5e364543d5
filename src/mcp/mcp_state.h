#pragma once
/* The sandbox state of a client: which policy holds for commands, and where. A client sends it once
 * (`codex/sandbox-state/update`) or with each call (`_meta`). */

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"
#include "sandbox/policy/plan.h"

#include <stdbool.h>

#define MCP_STATE_MAX (1u << 20) /* bytes of a state */

struct mcp_state {
    struct buf text; /* the policy, as profile_decode() takes it; empty: no state was given */
    char *cwd;       /* owned, absolute; NULL: none was given */
    bool open;       /* nothing is confined, whatever the policy says of the network */
    bool network;    /* commands may use the network */
};

#define MCP_STATE_INIT ((struct mcp_state){.text = BUF_INIT(MCP_STATE_MAX)})

void mcp_state_fini(struct mcp_state *s);

/*
 * Takes a state: an object with `sandboxPolicy` or `permissionProfile`, and `sandboxCwd` (a path or
 * a file URI). `needs_cwd`: without the latter it is refused. `doc` is scratch. 0; -EINVAL with e
 * set and the state unchanged.
 */
MUST_CHECK int mcp_state_take(struct mcp_state *s, const struct json_node *v, bool needs_cwd,
                              struct json_doc *doc, struct err *e);

/* What a plan depends on besides the state. */
struct mcp_state_place {
    const char *cwd;   /* of the command */
    char *const *envp; /* of the command */
    const char *home;  /* of the user; may be NULL */
};

/*
 * Makes the plan of a command; without a state, everything is read-only. *confined is false if
 * nothing has to be confined. 0, or -errno with e set.
 */
MUST_CHECK int mcp_state_plan(const struct mcp_state *s, const struct mcp_state_place *where,
                              struct json_doc *doc, struct arena *a, struct plan *plan,
                              bool *confined, struct err *e);
