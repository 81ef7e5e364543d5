#pragma once
/* Case of letters beyond ASCII: the simple lower-case mappings of Unicode 17. No locale. */

#include <stdint.h>

/* The lower-case form of code point c; c itself if it has none, or one of several code points. */
uint32_t unicase_lower(uint32_t c);
