#pragma once
/*
 * What the launcher is to enforce: a permission profile with everything filled in that depends on
 * the request (native paths, one entry per workspace root, the temporary directory). It crosses to
 * the launcher, a fresh process, as bytes. Nobody has looked its paths up on disk yet.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PLAN_BYTES_MAX (4u << 20) /* bytes of an encoded plan */
#define PLAN_ENTRIES_MAX 4096     /* entries, and as many globs */
#define PLAN_PORTS_MAX 1024
#define PLAN_PROXY_PORTS_MAX 2

enum plan_access { PLAN_READ, PLAN_WRITE, PLAN_DENY };

struct plan_entry {
    const char *path; /* absolute, normalised */
    enum plan_access access;
};

/* A pattern whose matches are denied. */
struct plan_glob {
    const char *pattern; /* absolute */
    uint32_t fixed;     /* its first bytes: the literal directory to look in (it may contain '*') */
    uint32_t max_depth; /* levels below that directory; 0 = no limit */
};

/* The network a command gets; each has a seccomp filter. */
enum plan_network {
    PLAN_NET_RESTRICTED, /* own namespace, no sockets but AF_UNIX pairs */
    PLAN_NET_ENABLED,    /* the host's */
    PLAN_NET_MANAGED,    /* own namespace, loopback to the named ports of the host only */
};

struct plan {
    bool confine_files; /* false: every file is writable; only the network is restricted */
    bool full_read;     /* everything is readable except where entries and globs deny it */
    bool minimal;       /* the platform's directories are readable */
    enum plan_network network;
    bool all_unix_sockets; /* PLAN_NET_MANAGED: AF_UNIX sockets too */
    bool inherit_pids;     /* no pid namespace of its own (--linux-sandbox-pid-namespace inherit) */
    const uint16_t *ports; /* PLAN_NET_MANAGED: ports of the host's loopback */
    size_t port_count;
    unsigned proxy_ports; /* the first so many of them belong to the server's proxy instead */
    const struct plan_entry *entries; /* sorted by path, one each; none denies "/" */
    size_t entry_count;
    const struct plan_glob *globs;
    size_t glob_count;
    const char *cwd; /* of the command; "/" for file calls */
};

/* The platform directories that a `minimal` plan makes readable where they exist. */
#define PLAN_PLATFORM 8
extern const char *const plan_platform[PLAN_PLATFORM];

/* Read-only in every writable root: programs that run later, unconfined, trust their contents. */
#define PLAN_PROTECTED 4
extern const char *const plan_protected[PLAN_PROTECTED];

/* The socket directory of a local Codex, which would run anything for its user. Denied if it
 * exists. */
#define PLAN_DAEMON_MAX 64
void plan_daemon(char out[PLAN_DAEMON_MAX]);

/* Appends the encoded plan. 0; -ENOBUFS above a maximum of this header; or as buf_reserve(). */
MUST_CHECK int plan_encode(const struct plan *p, struct buf *b);

/* Decodes into p; strings and arrays come from `a` or point into `bytes`. 0, -EINVAL, -ENOMEM. */
MUST_CHECK int plan_decode(struct str bytes, struct arena *a, struct plan *p);
