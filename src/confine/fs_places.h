#pragma once
/*
 * What is on disk where the paths of a policy lead, and what is mounted: a helper in a sandbox was
 * made for that and for nothing else. Two looks tell whether it has changed: by device and inode,
 * mount and time of birth (inode numbers are used again), and by the kernel's count of changes of
 * the mount table.
 */

#include "sandbox/policy/plan.h"

struct fs_places;

/* Looks; the first look of a helper also remembers the mount table. Owned; NULL without memory. */
struct fs_places *fs_places_look(const struct plan *p, bool first);
void fs_places_free(struct fs_places *p);

/* Whether another look, `now`, shows the same as the first. False once for each change of the
 * mount table: do not ask again then. */
bool fs_places_same(const struct fs_places *first, const struct fs_places *now);
