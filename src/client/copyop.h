#pragma once
/*
 * What all copies share: options, progress, warnings, and the jobs, of which some run at a time.
 * A job copies one thing. What cannot be copied inside a tree is named and left out; what concerns
 * the whole copy (the session, a full disk) ends it.
 */

#include "client/blockio.h"
#include "client/localtree.h"
#include "client/meter.h"
#include "client/rawfile.h"

#define COPYOP_SMALL (256u << 10)  /* bytes of a file that is copied in one message */
#define COPYOP_JOBS_MAX 32         /* at a time */
#define COPYOP_HELD_MAX (2u << 20) /* bytes of small files in their messages */
#define COPYOP_LARGE_MAX 2         /* files in blocks at a time */
#define COPYOP_WARNINGS_MAX 64     /* the caller has not heard; then no job begins */

enum copyop_links { COPYOP_COPY, COPYOP_FOLLOW, COPYOP_SKIP };

struct copyop;

struct copyjob {
    struct list node;
    struct copyop *c;
    size_t held;   /* of COPYOP_HELD_MAX */
    bool is_large; /* one of COPYOP_LARGE_MAX */
    void (*free)(struct copyjob *j);
};

struct copyop {
    struct op op; /* first */
    struct xs_fs *fs;
    bool recursive, preserve, resume, atomic, sync, in_tree;
    enum copyop_links links;
    unsigned in_flight;
    unsigned raw_failed; /* transfers of raw bytes that blocks went on with */
    mode_t mask;         /* of this process */
    struct pace pace;
    struct meter meter;
    char *name; /* what is being copied, for the progress; owned */
    /* Begins what there is room for: calls copyop_add(). Returns false when there is nothing left
     * to begin, now or ever: the copy ends with its last job. */
    bool (*more)(struct copyop *c);
    /* Frees what the larger struct owns. */
    void (*end)(struct copyop *c);
    /* private */
    struct list jobs;
    unsigned n_jobs, n_large, left_out;
    size_t held;
    bool pumping, finishing, failed;
    struct list warnings; /* struct warning */
    unsigned n_warnings;
    unsigned said; /* enum copyop_once */
    xs_progress_fn *progress;
    void *user;
    struct notice notice;
    bool *gone;
};

enum copyop_once {
    COPYOP_NO_MODE = 1,
    COPYOP_NO_TIMES = 2,
    COPYOP_NOT_ATOMIC = 4,
    COPYOP_NO_SYNC = 8,
};

/* A new copy of `size` bytes that begin with a struct copyop, with its options. 0, or as op_new();
 * XS_EINVAL for a bad option. */
MUST_CHECK int copyop_new(struct xs_client *c, const struct xs_options *o, size_t size,
                          xs_progress_fn *progress, void *user, struct xs_call *k, void *out);

/* Whether another job may begin; `bytes` is the size of its file, 0 if unknown. */
bool copyop_has_room(const struct copyop *c, uint64_t bytes);

/* Counts a job in; `free` frees it when the copy ends before it. */
void copyop_add(struct copyop *c, struct copyjob *j, void (*free)(struct copyjob *j));

/* The job is over: takes it out and frees it, and begins others. The copy may be over then. */
void copyop_done(struct copyjob *j);

/* ... it failed. `what` is the name for the user. */
void copyop_job_failed(struct copyjob *j, const char *what, struct xs_error *e);

/* Begins jobs, ends the copy. Call it when something has changed that `more` waits for. */
void copyop_pump(struct copyop *c);

/* Ends the copy with an error. */
void copyop_fail(struct copyop *c, struct xs_error *e);

/* Names what was left out (`counts`), or what differs. */
void copyop_warn(struct copyop *c, bool counts, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same for what needs to be said once. */
void copyop_warn_once(struct copyop *c, enum copyop_once what, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Progress: the file in work, its bytes, a file that is complete. */
void copyop_name(struct copyop *c, const char *name);
void copyop_bytes(struct copyop *c, uint64_t n, bool sent);
void copyop_file(struct copyop *c);

/* A transfer of [at, end) as raw bytes, to be started; NULL: the file goes in blocks. */
struct rawfile *copyop_raw(struct copyop *c, const char *remote, uint64_t at, uint64_t end,
                           bool write);
/* Its end: 0; 1: blocks go on; or a failure of this side, which e has. */
int copyop_raw_ended(struct copyop *c, const char *shown, int err, const struct xs_error *e);

/* A request of a job: the object with `path`, or `sourcePath` and `destinationPath`, is open. */
struct params copyop_begin(struct copyop *c, struct calls_request *r, const char *method,
                           const char *path, const char *to);
/* Closes the object and sends. 0, or a failure in e. */
MUST_CHECK int copyop_send(struct copyop *c, struct calls_request *r, struct params *p,
                           void (*done)(struct calls_request *, int, const struct json_node *,
                                        struct xs_error *),
                           struct xs_error *e);

/* Whether an error of one job ends the whole copy. */
bool copyop_is_fatal(int err, const struct xs_error *e);

/* A/B; owned by the caller; NULL without memory. An empty b gives a. */
char *copyop_join(const char *a, const char *b);
