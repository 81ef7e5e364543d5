#pragma once
/* The host of a `file:` URI in canonical form, as the messages about a foreign host show it. */

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends the canonical form of a non-empty authority: percent escapes decoded, ASCII lower-cased,
 * IPv4 and IPv6 in their shortest forms, labels outside ASCII as Punycode. 0; -EINVAL with
 * ERR_INVALID_PARAMS for an authority that is no host; or as buf_reserve().
 * Not done: the Unicode mapping of IDNA (only the case of Latin-1 letters) and a check of labels
 * that are already Punycode.
 */
MUST_CHECK int uri_host(struct str in, struct buf *out, struct err *e);
