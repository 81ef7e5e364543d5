#pragma once
/*
 * The HTTP programs of a server. Each connection that makes HTTP requests has one of its own, which
 * starts with its first request and ends with the connection, or when it was idle for a while.
 */

#include "base/list.h"
#include "base/err.h"
#include "loop/loop.h"
#include "process/session.h"

#define WEB_PROGRAMS_MAX 32 /* programs at a time; an idle one makes room for another */
#define WEB_IDLE_MS 60000   /* until an idle program ends */
#define WEB_PROGRAM "exec-server-http"

struct web_host {
    struct loop *loop;
    struct process_host *processes;
    int program; /* the executable; -1: there is none. Owned */
    char **env;  /* of the programs; owned */
    struct list
        programs; /* struct web_program that have not ended, the least recently used first */
    size_t count; /* length of `programs` */
    size_t alive; /* started, and not dead yet */
};

/*
 * Opens the program: `path`, or with NULL the one beside our own executable, which may be missing;
 * "none": no program. The caller sets `loop` and `processes` first. 0, or -errno with e set: the
 * path cannot be used.
 */
MUST_CHECK int web_host_init(struct web_host *h, const char *path, struct err *e);
void web_host_fini(struct web_host *h);

/* Whether http/request works. */
static inline bool web_host_is_ready(const struct web_host *h) {
    return h->program >= 0;
}

/* The host of the call's server. */
static inline struct web_host *web_host_of(const struct rpc_call *c) {
    return ((struct session *)c->peer->user)->host->web;
}
