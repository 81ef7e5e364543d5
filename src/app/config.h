#pragma once
/*
 * The config file: one JSON object whose members are the options under their camelCase names. It
 * names files with secrets, and never holds a secret itself.
 */

#include "base/arena.h"
#include "app/options_table.h"

#define CONFIG_FILE_MAX (1u << 20) /* bytes */

/*
 * Reads the file into what argv and the environment have left open; nothing when path is NULL.
 * Strings are kept in `strings`. --ws-auth in argv sets all authentication members aside, and each
 * of --ws-token-file and --ws-token-sha256 the member of the other. 0, or -errno with the file, and
 * where there is one the member, named in e; args may then be half filled.
 */
MUST_CHECK int config_load(const char *path, struct options_args *args, struct arena *strings,
                           struct err *e);

/*
 * Prints what holds as a config file. 0, or -EINVAL when a path is not UTF-8, which JSON cannot
 * express. Errors of `out` are the caller's to look at.
 */
MUST_CHECK int config_print(const struct options_args *args, FILE *out, struct err *e);
