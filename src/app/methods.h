#pragma once
/* The table of the protocol's methods. */

#include "rpc/rpc.h"

extern const struct rpc_method methods_table[];
extern const size_t methods_count;

#define METHODS_WEB 1 /* methods at the beginning of the table that need the HTTP program */
