#pragma once
/* Writes a parsed value back as compact JSON. */

#include "base/buf.h"
#include "json/json.h"

/* Appends the value; NULL is `null`. Numbers keep their text. 0 or as buf_reserve(). */
MUST_CHECK int json_put(struct buf *b, const struct json_node *v);
