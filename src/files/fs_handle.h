#pragma once
/* An open file of a connection, by the id that its client chose. */

#include "fs/fs_file.h"
#include "files/fs_job.h"

#define FS_HANDLES_MAX 128  /* per connection */
#define FS_HANDLE_ID_MAX 32 /* bytes */

struct fs_handle {
    struct list node;
    struct files_host *host;
    struct fs_conn *conn; /* NULL: out of the table; it lives while it is busy */
    char id[FS_HANDLE_ID_MAX];
    size_t id_len;
    struct fs_file file;       /* fd -1: still being opened */
    unsigned busy;             /* jobs that use it */
    struct fs_job *closing;    /* to be run when it is no longer busy */
    struct file_event *report; /* owned; of one that is written, told when it ends, or NULL */
};

/* The handle with that id, or NULL. */
struct fs_handle *fs_handle_find(const struct fs_conn *f, struct str id);

/* A new one, in the table, without a file. NULL with e set (out of memory). */
struct fs_handle *fs_handle_new(struct fs_conn *f, struct str id, struct err *e);

/* Keeps it open for the job, until the job is freed. */
void fs_handle_use(struct fs_handle *h, struct fs_job *j);

/* A job that used it was freed. */
void fs_handle_unuse(struct fs_handle *h);

/* Takes it out of the table: its id is free again. The file is closed when nothing uses it. */
void fs_handle_drop(struct fs_handle *h);

/* Like fs_handle_drop(), for fs/close: answers the call when the file is closed. */
enum rpc_outcome fs_handle_close(struct fs_handle *h, struct rpc_call *c, struct buf *result,
                                 struct err *e);
