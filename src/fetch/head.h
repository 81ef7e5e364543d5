#pragma once
/*
 * The head of an answer, from the lines that curl hands over one by one. Heads of interim answers
 * (1xx) are forgotten; what follows the final one is a trailer, and ignored.
 */

#include "base/arena.h"
#include "http/http_fields.h"

#include <stdint.h>

#define HEAD_BYTES_MAX (256u << 10) /* of an answer's header fields */

enum head_step {
    HEAD_MORE,  /* go on */
    HEAD_DONE,  /* this was the end of the final head */
    HEAD_WRONG, /* this is no HTTP, or too much of it */
};

struct head {
    struct arena arena; /* owns the texts of the fields */
    unsigned status;
    struct http_field *fields; /* in the arena; lower-case names; grouped when it is done */
    size_t count, room;        /* of `fields`, at most HTTP_FIELDS_MAX */
    size_t bytes;
    bool done;
    struct str location; /* of the first such field, any bytes; p NULL: none */
};

void head_init(struct head *h);
void head_fini(struct head *h);

/* Takes a line, with its line end. */
enum head_step head_line(struct head *h, struct str line);
