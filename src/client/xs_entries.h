#pragma once
/* Collects the answers of fs/walk and fs/readDirectory for the caller. */

#include "client/client_internal.h"

/* 0, XS_EPROTO or XS_ENOMEM. `root` as in fsanswer_walk(); NULL: the answer of fs/readDirectory. */
MUST_CHECK int xs_entries_new(const struct json_node *result, const char *root,
                              struct xs_entries **out);
