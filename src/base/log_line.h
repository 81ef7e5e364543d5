#pragma once
/*
 * One line of the log, built in place: for log.c only.
 *
 * As text, control characters, bytes that are not UTF-8 and the backslash are escaped; as JSON the
 * line is one valid object, however long the texts are. Under systemd's journal a line begins with
 * its priority ("<6>"), and a text has neither time nor level: the journal has both.
 */

#include "base/log.h"

struct log_line {
    char p[LOG_LINE_MAX];
    size_t n;
    enum log_format format;
    bool fields; /* it has some */
    bool cut;    /* the room is used up: nothing more is taken */
};

/* Begins a line: priority, time and level. */
void log_line_start(struct log_line *l, enum log_format format, bool journal, enum log_level level);

/* Adds the message; `whole` tells whether it is all of it. Once, before the fields. */
void log_line_message(struct log_line *l, struct str message, bool whole);

/* Adds "name=value" or a member, the value cut at LOG_VALUE_MAX bytes. Names are literals. */
void log_line_field(struct log_line *l, const char *name, struct str value);

/* Ends the line, with its newline. */
void log_line_end(struct log_line *l);
