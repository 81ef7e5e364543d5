#pragma once
/*
 * Lines of JSON over two descriptors, in both directions. The descriptors become non-blocking.
 *
 * Maxima: a line of input has MCP_LINES_MAX bytes; of a longer one the owner hears once, and it is
 * skipped. While more than MCP_LINES_HIGH bytes wait to be sent, nothing is read. A peer that has
 * MCP_LINES_OUT bytes waiting is taken as gone.
 */

#include "base/buf.h"
#include "loop/loop.h"

#define MCP_LINES_MAX (64u << 20)
#define MCP_LINES_HIGH (4u << 20)
#define MCP_LINES_OUT (256u << 20)
#define MCP_LINES_CHUNK 65536

struct mcp_lines;

struct mcp_lines_ops {
    void (*line)(struct mcp_lines *l, struct str text);
    void (*too_long)(struct mcp_lines *l);
    void (*ended)(struct mcp_lines *l); /* the input has ended, or the peer takes nothing; once */
};

struct mcp_lines {
    struct loop *loop;
    const struct mcp_lines_ops *ops;
    struct loop_io in, out; /* borrowed descriptors */
    struct loop_task more;  /* reads a file that epoll does not know, or the rest of a burst */
    struct buf input, output;
    size_t scanned; /* of input, without a newline */
    bool skipping;  /* until the next newline */
    bool plain_file, input_ended, over;
};

/* 0 or -errno. */
MUST_CHECK int mcp_lines_init(struct mcp_lines *l, struct loop *loop, int in, int out,
                              const struct mcp_lines_ops *ops);

/* Sends what it can without waiting, and forgets the rest. */
void mcp_lines_fini(struct mcp_lines *l);

/* Queues a line; a newline is added. Without memory the peer is taken as gone. */
void mcp_lines_send(struct mcp_lines *l, struct str text);
