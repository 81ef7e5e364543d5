#pragma once
/*
 * TOML 1.0.0 writer. Tables that are members of tables get headers, as do arrays of tables; what is
 * inside other arrays is written inline. In a table plain values come first, then tables, each in
 * the order of the tree. Reading the text again gives the same values.
 */

#include "base/buf.h"
#include "toml/toml.h"

/* Appends the text of a table. 0 or as buf_reserve(); then a part may have been appended. */
MUST_CHECK int toml_write(struct buf *b, const struct toml_value *root);
