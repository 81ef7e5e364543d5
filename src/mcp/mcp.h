#pragma once
/*
 * The MCP server: the tools `shell` and `write_stdin` on stdin and stdout. It takes everything that
 * it has started with it when it ends: at the end of its input, on SIGTERM, SIGINT and SIGHUP.
 */

#include <stdbool.h>
#include <sys/resource.h>

/* Whether the command line asks for it: `exec-server mcp`, or the old server's name. */
bool mcp_is(int argc, char **argv);

/* Runs it; `nofile` are the descriptor limits of commands. The exit status. */
int mcp_main(int argc, char **argv, struct rlimit nofile);
