#pragma once
/* The tools: their definitions and the decoding of their arguments. */

#include "base/buf.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

#define MCP_TOOLS_TIMEOUT_MS 10000
#define MCP_TOOLS_YIELD_MS 1000 /* write_stdin */
#define MCP_TOOLS_OUTPUT 65536  /* bytes of output in a result */
#define MCP_TOOLS_COMMAND_MAX (1u << 20)

enum mcp_tools_name { MCP_TOOLS_SHELL, MCP_TOOLS_WRITE_STDIN };

/* Arguments; strings are borrowed from the document. */
struct mcp_tools_args {
    /* shell */
    struct str command;
    struct str workdir; /* p NULL: not given */
    bool has_timeout;
    uint64_t timeout_ms;
    bool login, tty;
    uint64_t max_output;
    /* both */
    bool has_yield;
    uint64_t yield_ms;
    /* write_stdin */
    uint64_t session;
    struct str chars;
    int signal; /* 0: none */
};

/* Appends the array of definitions: the one of the old server, or ours. 0 or as buf_reserve(). */
MUST_CHECK int mcp_tools_put(struct buf *b, bool compat);

/* The tool of that name, or -ENOENT. */
int mcp_tools_find(struct str name, bool compat);

/* Decodes the arguments (NULL: none). 0, or -EINVAL with the old server's texts. */
MUST_CHECK int mcp_tools_decode(enum mcp_tools_name tool, const struct json_node *v, bool compat,
                                struct mcp_tools_args *out, struct err *e);
