#pragma once
/*
 * Adds rules to a user's file of rules, as the reference does after its user has said "always".
 *
 * The file is $CODEX_HOME/rules/default.rules. Writers exclude each other with flock(2), as the
 * reference does. A rule is one line and one write(2) behind the end: a reader, or the next writer
 * after a kill, finds all of it or nothing. A write that came short is taken back.
 */

#include "base/err.h"
#include "rules/execpolicy.h"

#define AMEND_FILE_MAX (4u << 20) /* bytes of the file: what the reader of rules takes */
#define AMEND_LINE_MAX (1u << 20) /* bytes of a rule */

/*
 * Allows the commands that begin with these words (at least one, UTF-8), below `user_dir`, which
 * exists. `line`, unless NULL, gets the rule without its newline. 1: added; 0: it was there; or
 * -errno with e set, and the file as it was.
 */
MUST_CHECK int amend_allow(const char *user_dir, const struct execpolicy_words *words,
                           struct buf *line, struct err *e);
