#pragma once
/* What the files of copyup share: one upload, its requests, and its part. */

#include "client/copyup.h"
#include "client/fsanswer.h"
#include "client/partnote.h"

#define COPYUP_SWEEP_MAX 16 /* parts of dead copies that one upload removes */

struct copyup {
    struct copyjob job; /* first */
    char *remote, *shown;
    int fd;
    struct stat st;
    bool exists, has_old_mode; /* what has the name there */
    unsigned old_mode;
    char *data; /* owned: the content of a small file, or room for a block */
    struct calls_request request;
    void (*then)(struct copyup *u, int err, const struct json_node *result, struct xs_error *e);
    /* In blocks. */
    struct partnote note, found;
    bool alone;    /* without a note: the part was taken away once */
    bool has_note; /* ours is there */
    bool raw_complete;
    char *part; /* path; owned */
    uint64_t kept;
    uint64_t counted;
    struct fshandle *handle;
    struct blockio io;
    struct rawfile *raw; /* owned; or NULL */
    struct fshandle_io tail;
    int tries;
    struct xs_error why; /* while the part is being removed */
    /* Parts of dead copies. */
    char sweep[COPYUP_SWEEP_MAX][PARTNOTE_TOKEN_LEN + 1];
    size_t sweep_n;
    int64_t sweep_before_ms;
    void (*swept)(struct copyup *u, int err, const struct json_node *result, struct xs_error *e);
};

/* What an answer is for: err 0 and the result, or a failure in e. */
typedef void copyup_after(struct copyup *u, int err, const struct json_node *result,
                          struct xs_error *e);

static inline struct xs_client *copyup_client(const struct copyup *u) {
    return u->job.c->op.client;
}

/* copyup.c: --------------------------------------------------------------------------------- */

/* The job is over, and has failed. */
void copyup_failed(struct copyup *u, struct xs_error *e);
void copyup_no_memory(struct copyup *u);

/* One request at a time: begin, add params, ask. One that cannot be sent fails the job. */
struct params copyup_begin(struct copyup *u, const char *method, const char *path, const char *to);
void copyup_ask(struct copyup *u, struct params *p, copyup_after *then);
void copyup_ask_path(struct copyup *u, const char *method, const char *path, copyup_after *then);

/* Reads up to n bytes of the source. Bytes read, less only at its end, or -errno. */
ssize_t copyup_read(int fd, char *to, size_t n, uint64_t offset);

/* Whether the server can rename. */
bool copyup_can_rename(const struct copyup *u);

/* Opens the part, which has u->kept bytes that stay; goes on with the data. */
void copyup_open_part(struct copyup *u);

/* copyup_part.c: ---------------------------------------------------------------------------- */

/* Finds the part of an earlier copy or begins a new one; copyup_open_part() follows. */
void copyup_part_begin(struct copyup *u);

/* Removes a file; `then` comes whether it was there or not. */
void copyup_part_remove(struct copyup *u, const char *path, copyup_after *then);

/* Removes our note, if there is one. */
void copyup_part_drop_note(struct copyup *u, copyup_after *then);

/* The file has its name: removes what dead copies to it have left, then our note. `then` comes
 * whatever happens. */
void copyup_part_sweep(struct copyup *u, copyup_after *then);
