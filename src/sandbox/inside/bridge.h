#pragma once
/*
 * The only way out of a managed network. Inside, listeners wait on the allowed loopback ports. The
 * launcher, outside, accepts their connections, connects to the same port of the host's loopback
 * and copies both ways without looking at the bytes.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/policy/plan.h"

#include <sys/types.h>

#define BRIDGE_CONNECTIONS_MAX 256 /* at once; others wait in the listener's queue */
#define BRIDGE_BUFFER 16384        /* bytes in flight, each way */

/* For init, in the new network namespace and with capabilities: brings loopback up, listens, and
 * sends the listeners over `sock` (a stream socket). 0, or -errno with the fault noted. */
MUST_CHECK int bridge_listen(const struct plan *p, int sock, struct fault *f);

/* For the launcher: takes the listeners from `sock` and serves them until `pid`, its child, ends.
 * */
void bridge_serve(int sock, pid_t pid);
