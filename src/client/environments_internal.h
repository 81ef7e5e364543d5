#pragma once
/* Rules for single values, for environments*.c. */

#include "client/environments.h"

/* Checks an id. 0, or -EINVAL with the reason. */
MUST_CHECK int environments_check_id(const struct toml_value *id, struct err *e);

/* Checks a URL without blanks around it. 0, or -EINVAL with the reason. */
MUST_CHECK int environments_check_url(struct str url, struct err *e);

/* Checks that a token can be sent to a URL, which is checked already: as a header, and not in clear
 * text over a network. 0, or -EINVAL with the reason, which does not quote the token. */
MUST_CHECK int environments_check_token(struct str token, struct str url, struct err *e);
