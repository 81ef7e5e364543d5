#pragma once
/*
 * Helpers that make file calls in a sandbox: processes of their own, started on demand and kept
 * for the calls that follow. One for each policy of a session, at most FS_HELPERS_MAX of them and
 * FS_HELPERS_TOTAL of all sessions: the one used least recently, of those that make no call, ends
 * for another. They end when nobody has used them for FS_HELPER_IDLE_MS, and with their session.
 *
 * A helper makes one call at a time; the thread of the pool that asks it waits for the answer. What
 * is on disk where the policy's paths lead is looked at before a helper is started and before every
 * call (confine/fs_places.h). When that has changed another one takes its place, so that it answers
 * as a fresh one would.
 *
 * What a helper says is not trusted: it handles what others have put on disk, and might have been
 * taken over by that. Its answers are checked, and it has nothing of the server's but its channel.
 */

#include "fs/fs_call.h"
#include "sandbox/policy/plan.h"
#include "process/session.h"

#include <pthread.h>

#define FS_HELPERS_MAX 8
#define FS_HELPERS_TOTAL 256                    /* of all sessions */
#define FS_HELPERS_ALIVE (2 * FS_HELPERS_TOTAL) /* with those that are ending; then -EAGAIN */
#define FS_HELPER_IDLE_MS 60000

struct fs_helper;

/* The helper of the session for the plan, not necessarily started; used by the caller from now on.
 * NULL with e set. */
struct fs_helper *fs_helper_get(struct session *s, const struct plan *p, struct err *e);

/*
 * One in the place of h, which has become useless and still is the caller's to give back: h ends,
 * unless it has. NULL with e set.
 */
struct fs_helper *fs_helper_renew(struct session *s, struct fs_helper *h, struct err *e);

/* Whether another must take its place. */
bool fs_helper_is_useless(const struct fs_helper *h);

/* Starts it, if that is what the last call asked for. 0, or -errno with e set. */
MUST_CHECK int fs_helper_start(struct fs_helper *h, struct err *e);

void fs_helper_unref(struct fs_helper *h);

/* Ends all of a session. */
void fs_helper_end_all(struct session *s);

/* -- in a thread -- */

struct fs_helper_reply {
    struct buf bytes; /* owned; not checked */
    int fd;           /* owned, not checked; -1: none */
};

enum fs_helper_outcome {
    FS_HELPER_DONE,
    FS_HELPER_START,   /* it is to be started first (fs_helper_start()) */
    FS_HELPER_RENEW,   /* it is useless: another must take its place (fs_helper_renew()) */
    FS_HELPER_RETIRED, /* the same, but nothing is wrong: another was in need of its place */
};

/*
 * Makes a call, encoded; `data` is a memfd or -1. An outcome, or -errno with e set: an error of the
 * call, or one of the helper, which is of no use any more then.
 */
MUST_CHECK int fs_helper_call(struct fs_helper *h, struct str call, int data,
                              struct fs_helper_reply *reply, struct err *e);

/* Its reply was no result of that call: the helper is of no use any more. Returns -EIO, e set. */
int fs_helper_distrust(struct fs_helper *h, struct err *e);
