#pragma once
/*
 * The exec-servers that a user has configured, from environments.toml in the Codex home or from
 * CODEX_EXEC_SERVER_URL. Keys, rules and the texts of most errors are those of the Codex client, so
 * that both accept one file. Stricter than there: NUL bytes and impossible names of environment
 * variables are refused here, not when the program starts; entries are tables, never arrays.
 */

#include "toml/toml.h"

#define ENVIRONMENTS_FILE "environments.toml"
#define ENVIRONMENTS_MAX 1024                 /* entries of a file */
#define ENVIRONMENTS_ID_MAX 64                /* bytes of an id */
#define ENVIRONMENTS_URL_MAX 65534            /* bytes of a URL */
#define ENVIRONMENTS_TIMEOUT_MS 10000         /* if a file sets no time limit */
#define ENVIRONMENTS_TIMEOUT_MAX_MS INT32_MAX /* longer time limits are cut */

struct environments_variable {
    const char *name, *value;
};

/* Either a URL or a program; the other is NULL. All strings belong to the arena. */
struct environments_entry {
    const char *id;
    const char *url;   /* ws:// or wss://, without blanks around it */
    const char *token; /* a secret, for `authorization: Bearer`; NULL: none. Only with a URL */

    const char *program;     /* talks on its standard streams; without blanks around it */
    const char *const *args; /* without the program; NULL-terminated */
    size_t arg_count;
    const struct environments_variable *env; /* added to the environment */
    size_t env_count;
    const char *cwd; /* relative ones were below the directory of the file. NULL: unchanged */

    uint32_t connect_ms, initialize_ms; /* time limits */
};

struct environments {
    const struct environments_entry *entries;
    size_t count;
    bool from_file;         /* environments.toml exists; CODEX_EXEC_SERVER_URL does not count */
    bool include_local;     /* commands may run on this machine, under the id `local` */
    const char *default_id; /* of an entry, or "local"; NULL: none */
    bool default_named;     /* by the file or the variable; else it is `local` for want of one */
};

/*
 * Reads environments.toml in the directory `home`. If the file does not exist, `variable` counts,
 * the value of CODEX_EXEC_SERVER_URL (NULL: unset): one entry `remote` that replaces `local`. Empty
 * means only `local`, `none` nothing at all. 0, or -errno with a message in e, code
 * ERR_INVALID_PARAMS; *out is then undefined. The arena needs TOML_ARENA_MAX for every file.
 */
MUST_CHECK int environments_load(const char *home, const char *variable, struct arena *a,
                                 struct environments *out, struct err *e);

/* Reads the text of the file `path`, whose name is needed for messages and relative directories. As
 * environments_load(). */
MUST_CHECK int environments_read(struct str text, const char *path, struct arena *a,
                                 struct environments *out, struct err *e);

/* The Codex home: `codex_home` ($CODEX_HOME), or .codex in `home` ($HOME). NULL if neither is set
 * or memory is short. */
const char *environments_home(const char *codex_home, const char *home, struct arena *a);

/* The entry with an id, or NULL. */
const struct environments_entry *environments_find(const struct environments *list, const char *id);
