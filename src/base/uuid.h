#pragma once
/* UUIDs as text. */

#include "base/str.h"

#include <stdbool.h>

#define UUID_LEN 36

/* A random (version 4) UUID, lower case, NUL-terminated. */
void uuid_random(char out[UUID_LEN + 1]);

/* Parses the hyphenated form, alone, in braces or behind "urn:uuid:", or 32 hex digits; *out
 * becomes the lower-case hyphenated form. False for all else. */
bool uuid_parse(struct str s, char out[UUID_LEN + 1]);
