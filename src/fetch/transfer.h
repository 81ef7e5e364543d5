#pragma once
/*
 * One request: its message, the curl handle that sends it, and the frames about its answer.
 *
 * A transfer pauses while the outbox is full; transfer_resume() lets it go on. What a paused
 * transfer keeps: one piece of TRANSFER_READ bytes in curl, and, of an HTTP/2 connection, what the
 * peer may send unasked (curl's window of 32 MiB).
 */

#include "fetch/head.h"
#include "fetch/message.h"
#include "fetch/outbox.h"
#include "fetch/trust.h"

#include "base/list.h"

#define TRANSFER_READ (96l << 10) /* bytes that curl reads at a time */

/* What the transfers of the program share. */
struct transfer_host {
    CURLM *multi;
    struct outbox *out;
    const struct trust *trust;
    struct list all; /* struct transfer */
    CURL *spare;     /* a handle that has ended its transfer, and was reset; NULL: none. Owned */
};

struct transfer {
    struct list node;
    struct transfer_host *host;
    uint32_t id;
    struct message message;
    struct head head;
    CURL *easy; /* NULL: the body has not arrived yet */
    struct curl_slist *lines;
    bool moving; /* the answer is a redirect that the message follows */
    bool paused;
    bool went_well;   /* curl's handle may serve another transfer */
    struct err fault; /* the reason to end with, if code is set */
    char why[CURL_ERROR_SIZE];
};

/* Makes a transfer of a decoded request; it begins when its body is complete. NULL: the request is
 * not as the server promises, or no memory. */
struct transfer *transfer_new(struct transfer_host *h, uint32_t id,
                              const struct http_wire_request *q);

/* Ends it without a word, and frees it. */
void transfer_free(struct transfer *t);

/* NULL: there is none with that id. */
struct transfer *transfer_find(struct transfer_host *h, uint32_t id);

/* Takes a piece of its body. 0 or as message_add_body(). */
MUST_CHECK int transfer_body(struct transfer *t, struct str bytes);

/* Sends the request if its body is complete. It may end in this. */
void transfer_begin(struct transfer *t);

/* curl is done with it: follows a redirect, or tells the end and frees it. */
void transfer_done(struct transfer *t, CURLcode result);

/* Goes on with those that paused, while the outbox has room. Whether there was one. */
bool transfer_resume(struct transfer_host *h);
