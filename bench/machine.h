// The work of the measured calls, done by the least code that can do it: the machine's own limit.
#pragma once

#include "measure.h"

// vfork and exec of `/bin/true` with two pipes, until both are at their end and it is reaped.
void machine_spawn(const struct measure_options *o);

// A 60-byte request and a 60-byte answer over a loopback connection.
void machine_status(const struct measure_options *o);

// A status exchange with a stat of `path`, or one that opens, reads and closes `path`.
void machine_metadata(const struct measure_options *o);
void machine_small_read(const struct measure_options *o);

// One byte over a loopback connection, through `cat` and back, with a bare relay in the middle.
void machine_echo(const struct measure_options *o);

// Output of the generator read by a bare relay, turned into base64 and written to a loopback
// connection.
void machine_bulk(const struct measure_options *o);

// The file `path` of `bytes`, read, turned into base64 and written to a loopback connection,
// `count` times.
void machine_file_read(const struct measure_options *o);

// As much as base64 of `bytes` has, received over a loopback connection; `bytes` of it written to
// the new file `path`, `count` times. Nothing is decoded.
void machine_file_write(const struct measure_options *o);

// GET of the URL `path`, of 127.0.0.1 and small, for a client that asks over a loopback connection:
// one relay takes its message, another one behind a socket pair asks the origin. As many processes
// and messages as http/request has; no HTTP, JSON or Base64 is read or written.
void machine_request(const struct measure_options *o);

// -- for the others of this kind --

// Two ends of a loopback TCP connection, as a server and its client would have.
void machine_tcp_pair(int fd[2]);

// fork(); ends the driver if it fails.
pid_t machine_fork(void);
