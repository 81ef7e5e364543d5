// The same work done by the least code that can do it, as the machine's own limit.
#pragma once

#include "measure.h"

// vfork and exec of `/bin/true` with two pipes, until both are at their end and it is reaped.
void machine_spawn(const struct measure_options *o);

// A 60-byte request and a 60-byte answer over a loopback connection.
void machine_status(const struct measure_options *o);

// One byte over a loopback connection, through `cat` and back, with a bare relay in the middle.
void machine_echo(const struct measure_options *o);

// Output of the generator read by a bare relay, turned into base64 and written to a loopback
// connection.
void machine_bulk(const struct measure_options *o);
