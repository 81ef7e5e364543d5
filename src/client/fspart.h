#pragma once
/* What the file calls of one client share: its file systems, handles and watches. */

#include "client/client_internal.h"

struct files {
    struct client_part part;
    struct xs_client *client;
    bool ending;              /* the client is being freed: nothing is sent */
    struct list spaces;       /* struct xs_fs.node */
    struct list handles;      /* struct fshandle.node */
    struct list watches;      /* struct xs_watch.node */
    struct list opened;       /* struct xs_file.node */
    uint64_t next_id;         /* of a handle or watch */
    uint64_t missing_id;      /* the last one of fs/watchMissing: they must grow */
    struct xs_watch *missing; /* the one watch of fs/watchMissing, or NULL; borrowed */
};

/* The client's, made at the first call. NULL without memory. */
struct files *fspart_get(struct xs_client *c);

struct xs_fs {
    struct list node;
    struct files *files;
    struct xs_options *options; /* what xs_fs_new() got, with a sandbox in it; owned; or NULL */
    unsigned users;             /* the caller, and each handle, watch and operation */
};

/* One user more, or less: the last one frees it. */
struct xs_fs *fspart_hold(struct xs_fs *f);
void fspart_release(struct xs_fs *f);

/* A file system in the sandbox of the options, with one user; NULL without memory. */
struct xs_fs *fspart_space(struct xs_client *c, const struct xs_options *sandbox);

/* Whether its calls are confined. */
bool fspart_is_confined(const struct xs_fs *f);

/* Appends the member `sandbox`, if it has one. */
void fspart_sandbox(const struct xs_fs *f, struct params *p);

/* The path as the server understands it: absolute, normalised. 0 and *out, owned; XS_EINVAL with
 * the reason in e; XS_ENOMEM. */
MUST_CHECK int fspart_path(struct xs_client *c, const char *path, char **out, struct xs_error *e);
