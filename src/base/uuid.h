#pragma once
/* UUIDs as text. */

#include "base/str.h"

#include <stdbool.h>

#define UUID_LEN 36

/* A random (version 4) UUID, lower case, NUL-terminated. */
void uuid_random(char out[UUID_LEN + 1]);

/*
 * Reads the hyphenated form, 32 hex digits, either in braces, or either behind "urn:uuid:"; *out
 * becomes the lower-case hyphenated form. False when it is none of them.
 */
bool uuid_parse(struct str s, char out[UUID_LEN + 1]);
