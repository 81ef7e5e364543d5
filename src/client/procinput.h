#pragma once
/*
 * The stdin of a process: writes go out in the order of the calls, each byte once. A write is cut
 * into pieces; each is a request with a writeId of its own, at most PROCHUB_INPUT_MAX unanswered. A
 * resume repeats the unanswered ones, with their ids and in their order.
 */

#include "client/prochub.h"

/* Bytes with a place in the queue. `done` runs once, unless procinput_drop() was called. */
struct procinput_write {
    struct list node; /* in p->writes while something is left to be sent */
    struct xs_process *p;
    const char *data; /* borrowed until `done` */
    size_t n, at;
    bool close; /* and then close stdin */
    size_t unanswered;
    bool failed;
    struct xs_error error;
    /* error: NULL, or why; it may be moved. Inside the loop. */
    void (*done)(struct procinput_write *w, struct xs_error *error);
};

void procinput_init(struct xs_process *p);
void procinput_fini(struct xs_process *p);

/* Queues a write. 0; XS_ENOTSUP with *e if it shall close a pipe and the server cannot. */
int procinput_put(struct xs_process *p, struct procinput_write *w, struct xs_error *e);

/* Gives up the rest of a write. Pieces that were sent are still delivered in their order. */
void procinput_drop(struct procinput_write *w);

int procinput_call_write(struct xs_process *p, const void *data, size_t n, struct xs_call *k);
int procinput_call_close(struct xs_process *p, struct xs_call *k);
