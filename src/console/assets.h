#pragma once
/*
 * The files of the page: built into the program, or read once from a directory that
 * tools/console-assets has written. All are compressed with gzip and sent as they are.
 *
 * Maxima: ASSETS_MAX files, ASSETS_BYTES_MAX bytes in all.
 */

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define ASSETS_MAX 64
#define ASSETS_BYTES_MAX (8u << 20)
#define ASSETS_MANIFEST "manifest"
#define ASSETS_TAG_LEN 16

struct asset {
    const char *path; /* "/", "/app.js" */
    const char *type; /* of the content */
    const uint8_t *data;
    size_t n;
};

/* What was built in; defined by the program that has a page, else empty. */
const struct asset *assets_builtin(size_t *count);

struct assets {
    struct assets_file {
        struct asset asset;
        char tag[ASSETS_TAG_LEN + 1]; /* of the content, in hexadecimal */
    } * files;                        /* owned */
    size_t count;
    char *text;     /* owned: the manifest, which names them; NULL: they are built in */
    uint8_t **data; /* owned: their bytes; likewise */
};

/* Takes those built in (`dir` NULL), or those of a directory. 0, or -errno with e set. */
MUST_CHECK int assets_load(struct assets *a, const char *dir, struct err *e);
void assets_fini(struct assets *a);

/* Whether the program has a page. */
bool assets_are_builtin(void);

/* The file for a path of a request, or NULL. */
const struct assets_file *assets_find(const struct assets *a, struct str path);
