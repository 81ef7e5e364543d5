#pragma once
/*
 * What the manifest of a plugin says. The reference takes an array in the place of an object, with
 * the members in their order, and refuses a member that it knows and finds twice; so do we.
 */

#include "base/arena.h"
#include "json/json.h"

/* Texts are in the arena; p NULL: nothing. */
struct manifest {
    struct str name, display;
    struct str mcp; /* the MCP servers that the manifest has in itself, as JSON */
};

/* Reads the name, and with `whole` all of it. False: it is faulty, or no memory. */
bool manifest_read(struct arena *a, struct str text, bool whole, struct manifest *m);

/* The member of an object, or the element of an array; *out is NULL if there is none. False: it is
 * there twice. */
MUST_CHECK bool manifest_member(const struct json_node *v, size_t index, const char *key,
                                const struct json_node **out);
