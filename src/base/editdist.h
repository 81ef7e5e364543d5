#pragma once
/* How far two words are apart, to guess what a wrong one was meant to be. */

#include "base/str.h"

#define EDITDIST_MAX 64  /* bytes of a word that can be compared */
#define EDITDIST_FAR 3   /* at this distance two words have nothing to do with each other */
#define EDITDIST_LEAST 3 /* letters of a word for which a guess makes sense */

/* How many letters must be changed, added or removed to turn one word into the other; EDITDIST_MAX
 * if one of them is longer than that. */
size_t editdist(struct str a, struct str b);
