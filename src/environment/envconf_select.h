#pragma once
/* The part of a TOML tree that a client asks for. */

#include "environment/envconf.h"

/*
 * A copy of `table`, in the arena, that holds only what `paths` select; the order stays. A path
 * that leads on through a value that is no table selects the value; one that ends at a missing
 * key selects the last table before it. `project`: without the keys that a project must not set.
 * NULL above the arena's maximum or out of memory.
 */
const struct toml_value *envconf_select(struct arena *a, const struct toml_value *table,
                                        const struct envconf_paths *paths, bool project);
