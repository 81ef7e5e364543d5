#pragma once
/* Reads a whole file that must be text. */

#include "base/buf.h"
#include "base/err.h"

enum textfile_result {
    TEXTFILE_READ,
    TEXTFILE_MISSING, /* there is no such file, or a parent is no directory */
    TEXTFILE_TOO_LARGE,
    TEXTFILE_NOT_TEXT, /* e has "invalid utf-8 sequence of ..." */
    TEXTFILE_FAILED,   /* e says why */
};

/*
 * Opens `path` through links and appends its text to `text`, at most `most` bytes. Never waits for
 * a peer; anything but a regular file fails. In a thread: the file system may hang.
 */
MUST_CHECK enum textfile_result textfile_read(const char *path, size_t most, struct buf *text,
                                              struct err *e);

/* Describes the first fault of a text that is not UTF-8. False: it has none. */
bool textfile_fault(struct str text, struct err *e);
