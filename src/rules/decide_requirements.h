#pragma once
/* The operator's requirements.toml: its [rules] as the text of a `.rules` file. */

#include "base/buf.h"
#include "base/err.h"
#include "toml/toml.h"

/*
 * Parses a file of settings. With `rules`, appends its [rules] prefix_rules as calls of
 * prefix_rule(). 0; -EINVAL with a text that names the file; -ENOMEM with e set.
 */
MUST_CHECK int decide_requirements(const char *path, struct str text, struct buf *rules,
                                   struct err *e);
