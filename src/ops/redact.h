#pragma once
/*
 * Takes secrets out of a command line that is to be logged. REDACT_MARK takes the place of:
 *  - the value of an option, assignment, header, element or member whose name contains one of a few
 *    words (token, secret, key, pass, ...), with its quotes, substitutions and further lines;
 *  - the user part of a URL, what follows the word "Bearer", blocks of PEM;
 *  - here-documents and here-strings, whatever they hold: a command reads them;
 *  - the value of one-letter options of well-known programs that take a password.
 * It rather hides too much than too little, but a secret that nothing names cannot be told from
 * other text.
 */

#include "base/buf.h"

#include <stdbool.h>

#define REDACT_MARK "[redacted]"

/* What is known about the next argument; all false before the first. */
struct redact {
    bool hide;           /* it is the value of an option that names a secret */
    bool script;         /* it is the text behind a -c: a shell will split it into words */
    const char *letters; /* options of the program that take a secret; NULL: none. Static */
};

/*
 * Appends what may be shown of one argument (any bytes), at most `max` bytes of it, and notes in *r
 * what follows from it for the next. 0, 1 when it was cut, or -ENOMEM.
 */
MUST_CHECK int redact_arg(struct redact *r, struct str arg, size_t max, struct buf *out);
