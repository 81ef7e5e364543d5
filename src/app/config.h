#pragma once
/*
 * The config file: one JSON object whose members are the options under their camelCase names. It
 * names files with secrets and never holds a secret.
 */

#include "base/arena.h"
#include "app/options_table.h"

#define CONFIG_FILE_MAX (1u << 20) /* bytes */

/*
 * Reads the options that argv and the environment leave open; none if path is NULL. Strings go to
 * `strings`. --ws-auth in argv overrides all authentication members; --ws-token-file and
 * --ws-token-sha256 each override the other's member. 0, or -errno with a message in e that names
 * the file and, if there is one, the member; args may then be half filled.
 */
MUST_CHECK int config_load(const char *path, struct options_args *args, struct arena *strings,
                           struct err *e);

/*
 * Prints the options in effect as a config file. 0, or -EINVAL: a path is not UTF-8, which JSON
 * cannot express. The caller checks `out` for errors.
 */
MUST_CHECK int config_print(const struct options_args *args, FILE *out, struct err *e);
