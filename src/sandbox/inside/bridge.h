#pragma once
/*
 * The way out of a managed network: inside, listeners on the loopback ports that are allowed; the
 * launcher, which is outside, accepts what connects to them and connects to the same port of the
 * host's loopback, copying both ways. Nothing else leads out, and the bytes are not looked at.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/policy/plan.h"

#include <sys/types.h>

#define BRIDGE_CONNECTIONS_MAX 256 /* at once; others wait in the listener's queue */
#define BRIDGE_BUFFER 16384        /* bytes in flight, each way */

/*
 * For init, in the new network namespace and with capabilities: brings loopback up, listens, and
 * sends the listeners over `sock` (a stream socket). 0, or -errno with the fault noted.
 */
MUST_CHECK int bridge_listen(const struct plan *p, int sock, struct fault *f);

/* For the launcher: takes the listeners from `sock`, serves them until `pid`, its child, ends. */
void bridge_serve(int sock, pid_t pid);
