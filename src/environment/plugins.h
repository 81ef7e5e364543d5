#pragma once
/*
 * Where capabilities/discoverV2 looks: the user's skills, and the plugins that Codex has installed
 * at plugins/cache/MARKETPLACE/NAME/VERSION of its home directory. Of a plugin only one version is
 * active: "local", or else the highest.
 */

#include "environment/discover.h"

#define PLUGINS_PLACES_MAX 512
#define PLUGINS_NOTE_MAX (16u << 10) /* bytes of the file that names a remote plugin */
#define PLUGINS_REMOTE_ID_MAX 1024
#define PLUGINS_ARENA_MAX (32u << 20)

struct plugins_place {
    struct discover_path root;
    const char *skills;             /* the id of a directory of skills; NULL: a plugin */
    struct str id, version, remote; /* of a plugin; remote.p NULL: it is not remote */
};

struct plugins_places {
    struct arena arena;
    struct plugins_place *place; /* PLUGINS_PLACES_MAX and those of skills */
    size_t count;
    bool incomplete; /* something could not be read, or was too much */
};

/*
 * Finds the places: plugins by their ids, then skills. `home` may be NULL. 0; 1: to be made again;
 * -errno: out of memory, or nobody is interested. Free *p in any case.
 */
MUST_CHECK int plugins_find(const struct discover_source *s, const char *codex_home,
                            const char *home, struct plugins_places *p);
void plugins_fini(struct plugins_places *p);

/* Whether version `a` comes before `b`: as Semantic Versioning has it, if both are such. */
bool plugins_version_less(struct str a, struct str b);
