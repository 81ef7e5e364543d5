#pragma once
/* The host of a `file:` URI in canonical form, as the messages about a foreign host show it. */

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends the canonical form of a non-empty authority: percent escapes decoded, ASCII in lower
 * case, IPv4 and IPv6 in their shortest forms, non-ASCII labels as Punycode. 0; -EINVAL with
 * ERR_INVALID_PARAMS for an authority that is not a host or above 1,024 bytes; or as buf_reserve().
 * Missing: IDNA's Unicode mapping (only the case of Latin-1 letters), and a check of labels that
 * are Punycode already.
 */
MUST_CHECK int uri_host(struct str in, struct buf *out, struct err *e);
