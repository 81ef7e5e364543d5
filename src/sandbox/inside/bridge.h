#pragma once
/*
 * The only way out of a managed network. Inside, listeners wait on the allowed loopback ports. The
 * launcher, outside, accepts their connections, connects to the same port of the host's loopback
 * and copies both ways without looking at the bytes. The listeners of the proxy go to the server,
 * which accepts their connections itself: no port of the host leads to a proxy.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/policy/plan.h"

#include <sys/types.h>

#define BRIDGE_CONNECTIONS_MAX 256 /* at once; others wait in the listener's queue */
#define BRIDGE_BUFFER 16384        /* bytes in flight, each way */

/* For init, in the new network namespace and with capabilities: brings loopback up, listens, and
 * sends the listeners over `sock` (a stream socket). 0, or -errno with the fault noted. */
MUST_CHECK int bridge_listen(const struct plan *p, int sock, struct fault *f);

/* For the launcher: takes the listeners from `sock`, sends those of the proxy on to the server over
 * `proxy` (launcher.h), and serves the others until `pid`, its child, ends. */
void bridge_serve(const struct plan *p, int sock, int proxy, pid_t pid);
