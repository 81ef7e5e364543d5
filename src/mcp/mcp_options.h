#pragma once
/* The command line of the MCP server. */

#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>

enum mcp_options_intercept {
    MCP_INTERCEPT_AUTO,
    MCP_INTERCEPT_NOTIFY,
    MCP_INTERCEPT_WRAPPER,
    MCP_INTERCEPT_OFF,
};

/* Strings are borrowed from the command line or the environment. */
struct mcp_options {
    enum mcp_options_intercept intercept;
    const char *bash;   /* NULL: none was given */
    const char *execve; /* the wrapper; NULL: beside this program */
    bool whole_paths;   /* --preserve-program-paths */
    bool compat;
    bool escalate_descendants;
    bool trust_loads;       /* do not compare what the kernel has loaded with what was decided */
    const char *audit_log;  /* NULL: none */
    const char *system_dir; /* of the operator's files */
    enum log_level log_level;
};

enum mcp_options_result {
    MCP_OPTIONS_RUN,
    MCP_OPTIONS_EXIT,  /* help or version was printed */
    MCP_OPTIONS_USAGE, /* the error was printed */
};

/* "auto", "notify", "wrapper", "off" */
const char *mcp_options_intercept_name(enum mcp_options_intercept i);

/* Reads the command line from argv[0] on, the name of the program or command. `old`: by the old
 * server's name, whose options alone it takes and as which it behaves. */
enum mcp_options_result mcp_options_parse(int argc, char **argv, bool old, struct mcp_options *o,
                                          FILE *out, FILE *err);
