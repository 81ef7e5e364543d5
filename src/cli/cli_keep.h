#pragma once
/*
 * State files of detached processes: $XDG_STATE_HOME/exec-server/NAME.json, mode 0600, in a
 * directory of mode 0700. Each appears and changes as a whole.
 */

#include "cli/cli_state.h"

#define CLI_KEEP_NAMES_MAX 4096 /* files of the directory */

/* The directory, to be freed; NULL and a message without $XDG_STATE_HOME and $HOME. */
char *cli_keep_directory(const char *state_home, const char *home, struct err *e);

/* Writes a new file; -EEXIST if the name is taken. Makes the directories. The file appears whole.
 */
MUST_CHECK int cli_keep_create(const char *directory, const struct cli_state *s, struct err *e);

/* Replaces a file. */
MUST_CHECK int cli_keep_replace(const char *directory, const struct cli_state *s, struct err *e);

/* Reads NAME.json: a regular file of this user that nobody else can write. -ENOENT if there is
 * none. */
MUST_CHECK int cli_keep_read(const char *directory, const char *name, struct cli_state *out,
                             struct err *e);

/* Removes NAME.json if it still names the session. */
void cli_keep_remove(const char *directory, const char *name, const char *session);

/* The names of all files, sorted, NULL-terminated: free with cli_keep_names_free(). An absent
 * directory is empty. */
MUST_CHECK int cli_keep_names(const char *directory, char ***names, struct err *e);
void cli_keep_names_free(char **names);
