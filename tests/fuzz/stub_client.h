#pragma once
/* A client of a server under test that says anything and takes nothing but well-formed answers. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CLIENT_STREAMS 16         /* processes whose events are followed */
#define CLIENT_IN_MAX (16u << 20) /* bytes of what was received and not understood yet */

/* Says what was wrong: with another root no symbols are found for the place. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct client {
    int fd;         /* -1: none */
    bool lazy;      /* reads nothing */
    bool upgrading; /* the answer to the upgrade is outstanding */
    bool framed;    /* it was upgraded: frames come */
    bool closed;    /* a close frame came: nothing may follow */
    struct buf in;
    struct buf message; /* fragments of one so far */
    bool in_message;
    size_t sent, answered; /* texts that may be requests, and answers */
    struct client_stream {
        char id[64];
        uint64_t seq; /* last seen; 0: unused */
    } streams[CLIENT_STREAMS];
};

/* Over a connected socket, which it owns from now on. */
void client_open(struct client *c, int fd, bool upgrade);
void client_close(struct client *c);
void client_half_close(struct client *c);

/* Reads what is there and checks it. */
void client_read(struct client *c);

/* What does not fit into the socket is lost, and the connection cut. */
void client_text(struct client *c, struct str text);
void client_frame(struct client *c, struct str hex_and_payload);
void client_raw(struct client *c, struct str escaped);
