#pragma once
/*
 * Part files and their notes. A copy to NAME writes to a part file beside it and renames that at
 * the end. The note says what the part is a part of, so that a later copy can go on with it.
 * A note is foreign text: it never names a file. It has tokens, and the names come from NAME.
 */

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define PARTNOTE_NAME_MAX 255  /* bytes of a name that we make */
#define PARTNOTE_TOKEN_LEN 16  /* lower-case hex digits */
#define PARTNOTE_SOURCE_LEN 64 /* the same; see partnote_source() */
#define PARTNOTE_TEXT_MAX 1024 /* bytes of a note */

struct partnote {
    char source[PARTNOTE_SOURCE_LEN + 1]; /* which file is copied */
    uint64_t bytes;                       /* its size */
    int64_t modified_ns;                  /* its time of modification, since 1970 */
    /* The part has the first token that exists; "" is the part without a token. The second one is
     * where a copy that was interrupted while it took the part over may have left it. */
    char token[PARTNOTE_TOKEN_LEN + 1], older[PARTNOTE_TOKEN_LEN + 1];
    bool has_older;
};

/* A random token. */
void partnote_token(char out[PARTNOTE_TOKEN_LEN + 1]);

/* The digest of a source: a URI or another text that tells two sources apart. */
void partnote_source(struct str text, char out[PARTNOTE_SOURCE_LEN + 1]);

/*
 * The name of the part of a copy to `name`: `.NAME.xs-part`, with a token `.NAME.xs-part-TOKEN`.
 * A name that is too long is cut and told apart by a digest.
 */
void partnote_part_name(struct str name, const char *token, char out[PARTNOTE_NAME_MAX + 1]);

/* Whether `leaf` is a part of a copy to `name`, with a token, which is set. */
bool partnote_part_token(struct str name, const char *leaf, char token[PARTNOTE_TOKEN_LEN + 1]);

/* The name of the note: `.NAME.xs-part.json`. */
void partnote_note_name(struct str name, char out[PARTNOTE_NAME_MAX + 1]);

/* Appends the text of a note. 0 or as buf_reserve(). */
MUST_CHECK int partnote_write(struct buf *b, const struct partnote *note);

/* Reads a note. 0; -EINVAL if the text is none; -ENOMEM. */
MUST_CHECK int partnote_read(struct partnote *note, struct str text);

/* Whether a part with this note is a part of the source that `want` describes. */
bool partnote_matches(const struct partnote *note, const struct partnote *want);
