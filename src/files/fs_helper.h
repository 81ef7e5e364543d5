#pragma once
/*
 * Helpers make file calls in a sandbox. They are processes, started on demand and kept for later
 * calls. A session has one per policy, at most FS_HELPERS_MAX, and all sessions FS_HELPERS_TOTAL:
 * to make room, the least recently used one that makes no call ends. A helper also ends after
 * FS_HELPER_IDLE_MS without a call, and with its session.
 *
 * A helper makes one call at a time; the thread that asks it waits for the answer. Before each call
 * the thread compares what is on disk at the policy's paths (confine/fs_places.h) with what was
 * there at the start. After a change another helper takes its place, so that every answer is that
 * of a fresh one.
 *
 * The server does not trust a helper: a hostile file may have taken it over. The server checks its
 * answers, and gives it no descriptor but its channel.
 */

#include "fs/fs_call.h"
#include "sandbox/policy/plan.h"
#include "process/session.h"

#include <pthread.h>

#define FS_HELPERS_MAX 8
#define FS_HELPERS_TOTAL 256                    /* of all sessions */
#define FS_HELPERS_ALIVE (2 * FS_HELPERS_TOTAL) /* ending ones included; then -EAGAIN */
#define FS_HELPER_IDLE_MS 60000

struct fs_helper;

/* Returns the session's helper for the plan, maybe not started, with a reference for the caller.
 * NULL with e set. */
struct fs_helper *fs_helper_get(struct session *s, const struct plan *p, struct err *e);

/*
 * Ends h, which is useless, and returns a helper in its place, with a reference. The caller still
 * gives back that of h. NULL with e set.
 */
struct fs_helper *fs_helper_renew(struct session *s, struct fs_helper *h, struct err *e);

/* Whether another must take its place (fs_helper_renew()). */
bool fs_helper_is_useless(const struct fs_helper *h);

/* Starts it if the last call said FS_HELPER_START. 0 or -errno with e set. */
MUST_CHECK int fs_helper_start(struct fs_helper *h, struct err *e);

void fs_helper_unref(struct fs_helper *h);

/* Ends all helpers of a session. */
void fs_helper_end_all(struct session *s);

/* -- in a thread -- */

struct fs_helper_reply {
    struct buf bytes; /* owned; not checked */
    int fd;           /* owned, not checked; -1: none */
};

enum fs_helper_outcome {
    FS_HELPER_DONE,
    FS_HELPER_START,   /* start it first (fs_helper_start()) */
    FS_HELPER_RENEW,   /* it is useless (fs_helper_renew()) */
    FS_HELPER_RETIRED, /* it ended to make room (fs_helper_renew()) */
};

/*
 * Makes an encoded call; `data` is a memfd or -1. An outcome, or -errno with e set: the call or the
 * helper failed; such a helper is useless.
 */
MUST_CHECK int fs_helper_call(struct fs_helper *h, struct str call, int data,
                              struct fs_helper_reply *reply, struct err *e);

/* Its reply was no result of that call, so it is useless. Returns -EIO with e set. */
int fs_helper_distrust(struct fs_helper *h, struct err *e);
