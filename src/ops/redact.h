#pragma once
/*
 * Takes secrets out of a command line for the log. REDACT_MARK replaces:
 *  - the value of an option, assignment, header, element or member whose name contains one of a few
 *    words (token, secret, key, pass, ...), with its quotes, substitutions and further lines;
 *  - the user part of a URL, the text after the word "Bearer", PEM blocks;
 *  - all here-documents and here-strings: a command reads them;
 *  - the value of one-letter options of well-known programs that take a password.
 * When in doubt it hides. A secret that nothing names looks like other text and stays.
 */

#include "base/buf.h"

#include <stdbool.h>

#define REDACT_MARK "[redacted]"

/* Facts about the next argument; all false before the first. */
struct redact {
    bool hide;           /* it is the value of an option that names a secret */
    bool script;         /* it follows a -c: a shell will split it into words */
    const char *letters; /* options of the program that take a secret; NULL: none. Static */
};

/*
 * Appends one argument (any bytes) without its secrets, at most `max` bytes, and updates *r for the
 * next one. 0; 1: it was cut; or -ENOMEM.
 */
MUST_CHECK int redact_arg(struct redact *r, struct str arg, size_t max, struct buf *out);
