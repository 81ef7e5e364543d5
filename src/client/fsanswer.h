#pragma once
/*
 * Reads the answers to fs requests. The server is not trusted: whatever has the wrong shape is
 * -EPROTO, and a path outside the directory that was asked about is left out of no count but
 * refused. The values borrow from the document unless their comment says more.
 */

#include "base/buf.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

enum fsanswer_kind { FSANSWER_OTHER, FSANSWER_FILE, FSANSWER_DIRECTORY, FSANSWER_LINK };

struct fsanswer_stat {
    enum fsanswer_kind kind; /* of the target, if links were followed */
    bool is_link;            /* the last component is a link */
    bool has_mode;
    unsigned mode; /* 07777 */
    uint64_t bytes;
    int64_t created_ms, modified_ms;
};

/* fs/getMetadata. 0 or -EPROTO. */
MUST_CHECK int fsanswer_stat(const struct json_node *result, struct fsanswer_stat *out);

/*
 * A member with Base64 (dataBase64, chunk), decoded in place: the text of the document changes. At
 * most max bytes; data borrows. 0 or -EPROTO.
 */
MUST_CHECK int fsanswer_data(const struct json_node *result, const char *member, size_t max,
                             struct str *data);

/* fs/readBlock of `len` bytes. The data borrows. 0 or -EPROTO; an empty block that is not the end,
 * or a short one, is -EPROTO too. */
MUST_CHECK int fsanswer_block(const struct json_node *result, size_t len, struct str *data,
                              bool *eof);

/* A member that is a path (canonicalize, watch). *path is owned. 0, -EPROTO, -ENOMEM. */
MUST_CHECK int fsanswer_path(const struct json_node *result, char **path);

/* fs/readLink: the exact bytes of the target, without NUL, 1 to 4,095 of them. *target is owned. */
MUST_CHECK int fsanswer_target(const struct json_node *result, char **target);

/* fs/watchMissing. */
MUST_CHECK int fsanswer_watching(const struct json_node *result, bool *watching);

struct fsanswer_item {
    const char *name; /* relative to the directory asked about, without empty, "." and ".." parts */
    enum fsanswer_kind kind;
    const char *target;  /* of a link; NULL if the server did not say */
    const char *message; /* not NULL: the server could not look at `name`, "" is the root */
};

/*
 * fs/walk and fs/readDirectory: calls fn for each entry and each error; `root` is the path that was
 * asked about, absolute and normalised. What fn gets is valid during the call. If fn returns a
 * negative value, they stop and return it. A path that is not below root: -EPROTO.
 */
typedef int fsanswer_fn(void *user, const struct fsanswer_item *item);
MUST_CHECK int fsanswer_walk(const struct json_node *result, const char *root, fsanswer_fn *fn,
                             void *user, bool *truncated);
MUST_CHECK int fsanswer_list(const struct json_node *result, fsanswer_fn *fn, void *user);

/* The notifications fs/changed and fs/missingChanged. */
struct fsanswer_change {
    const struct json_node *id;    /* string or number */
    const struct json_node *paths; /* array of strings, or NULL */
    bool overflow;
};
MUST_CHECK int fsanswer_change(const struct json_node *params, struct fsanswer_change *out);

/* The errno in the text "... (os error N)" of an error answer, or 0. */
int fsanswer_errno(struct str message);
