#pragma once
/* The methods of the protocol. */

#include "rpc/rpc.h"

extern const struct rpc_method methods_table[];
extern const size_t methods_count;
