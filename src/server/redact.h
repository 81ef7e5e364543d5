#pragma once
/*
 * Takes secrets out of a command line that is to be logged. It goes by names: the value of an
 * option, assignment, header or JSON member whose name contains one of a few words (token, secret,
 * key, password, ...), the user part of a URL and what follows the word "Bearer" become
 * REDACT_MARK. It rather hides too much than too little, but a secret that nothing names cannot be
 * told from other text.
 */

#include "base/buf.h"

#include <stdbool.h>

#define REDACT_MARK "[redacted]"

/* What is known about the next argument; all false before the first. */
struct redact {
    bool hide;   /* it is the value of an option that names a secret */
    bool script; /* it is the text behind a -c: a shell will split it into words */
};

/*
 * Appends what may be shown of one argument (any bytes), at most `max` bytes of it, and notes in *r
 * what follows from it for the next. 0, 1 when it was cut, or -ENOMEM.
 */
MUST_CHECK int redact_arg(struct redact *r, struct str arg, size_t max, struct buf *out);
