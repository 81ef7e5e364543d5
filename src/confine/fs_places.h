#pragma once
/*
 * What exists at a policy's paths, and what is mounted: a file helper is made for exactly that. Two
 * looks tell whether it has changed: by device and inode, mount and time of birth (inode numbers
 * are reused), and by the kernel's counter of mount table changes. An empty directory with a
 * protected name counts as missing.
 */

#include "sandbox/policy/plan.h"

struct fs_places;

/* Looks; a helper's first look also remembers the mount table. Owned; NULL without memory. */
struct fs_places *fs_places_look(const struct plan *p, bool first);
void fs_places_free(struct fs_places *p);

/* Whether another look, `now`, equals the first. False once for each change of the mount table: do
 * not ask again then. */
bool fs_places_same(const struct fs_places *first, const struct fs_places *now);
