#pragma once
/*
 * Which projects may configure. `projects."PATH".trust_level` of the user's or the operator's
 * configuration says so: for the directory with the layer, else for the root of the project, else
 * for the main work tree of the repository. A path counts as written or with its links resolved.
 */

#include "environment/envconf.h"

#define ENVCONF_MARKER_MAX 4096 /* bytes of the name of a project's root marker */

/* What the sources of trust say, the highest first; an absent one is NULL. */
struct envconf_trust {
    const struct toml_value *layers[3];
    char *root;       /* owned: the root of the project, cwd or above */
    char *repository; /* owned: the main work tree of the repository, or NULL */
};

/* Checks the layers and finds the roots. In a thread. 0, or -errno with e set. Free *t in any
 * case. */
MUST_CHECK int envconf_trust_init(struct envconf_trust *t, const char *cwd, struct err *e);
void envconf_trust_fini(struct envconf_trust *t);

/* Whether a layer in that directory counts. */
bool envconf_trust_is(const struct envconf_trust *t, const char *dir);

/* Cuts the last name off an absolute path. False at "/". */
bool envconf_trust_up(char *path);
