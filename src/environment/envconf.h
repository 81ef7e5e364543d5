#pragma once
/*
 * The configuration files of this host, for environmentConfig/read. Layers, lowest first: system
 * (/etc/codex/config.toml), user, projects (the root of the project first), the legacy
 * managed_config.toml; and the operator's requirements. Of each, a client gets only the values that
 * it selects, as TOML.
 *
 * A project's layer counts only if the user or the operator trusts the project (envconf_trust.h);
 * it then lacks the keys that would send credentials elsewhere or run a program.
 */

#include "base/err.h"
#include "json/jsonw.h"
#include "toml/toml.h"

#include <stdatomic.h>

#define ENVCONF_PATHS_MAX 1024          /* paths of one request, each kind */
#define ENVCONF_PROJECTS_MAX 64         /* directories of a project that may hold a layer */
#define ENVCONF_RESULT_MAX (16u << 20)  /* bytes of the answer */
#define ENVCONF_SYSTEM_DIR "/etc/codex" /* of the operator's files */

/* The way to a value: the keys of tables. */
struct envconf_path {
    const struct str *keys;
    size_t count; /* at least 1 */
};

struct envconf_paths {
    const struct envconf_path *path;
    size_t count;
};

/* A request, and where this host keeps what it asks for. Everything is borrowed. */
struct envconf {
    const char *cwd;        /* native, absolute; may be missing */
    const char *home;       /* NULL: unknown */
    const char *codex_home; /* $CODEX_HOME; NULL or empty: .codex in home */
    const char *system_dir;
    struct envconf_paths config, requirements;
    const atomic_bool *stop; /* nobody is interested any more */
};

/* In a thread: appends the answer's JSON. 0, or -errno with e set. */
MUST_CHECK int envconf_read(const struct envconf *c, struct buf *result, struct err *e);

/*
 * Finds the directory of the user's configuration. The path is to be freed. 0, or -errno with e
 * set: $CODEX_HOME names none, or the home directory is unknown.
 */
MUST_CHECK int envconf_codex_home(const struct envconf *c, char **path, struct err *e);
